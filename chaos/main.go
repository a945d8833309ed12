// Chaos has processes work under locks on real servers, five, three or one, while a nemesis
// kills, wipes, freezes and partitions them, moves their clocks, and loses,
// delays and repeats their messages. Then it judges what everybody saw: did two
// ever hold one lock, did tokens rise, did the fenced resource take a stale
// write.
//
//	go run ./chaos -flavour redis8 -seed 1 -acquisitions 20000
//	go run ./chaos -nodes 1
//	go run ./chaos -client redlock,redsync -mode beyond
//	go run ./chaos -load 10000 -for 10m
//
// It needs Linux, gcc, and servers as internal/redistest finds them. A failure
// of ours inside its promise ends it with status 1; pictures of what happened
// are in the folder of -out.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/redis/go-redis/v9/logging"

	"github.com/distmutex/distmutex/internal/redistest"
)

func main() {
	logging.Disable() // of go-redis: what fails here is meant to
	if text := os.Getenv(clientEnv); text != "" {
		if err := clientMain(text); err != nil {
			fmt.Fprintln(os.Stderr, "chaos client:", err)
			os.Exit(1)
		}
		return
	}
	all := &command{}
	flags().run(all)
	if all.Failed() {
		os.Exit(1)
	}
}

// request is what the command line asks for.
type request struct {
	config
	flavours, nodes, makes, modes, only string
	load                                int
}

func flags() *request {
	r := new(request)
	c := &r.config
	flag.StringVar(&r.flavours, "flavour", "all", "redis7, redis8, valkey9, several with commas, or all")
	flag.StringVar(&r.nodes, "nodes", "5", "servers: 5 or 3, a quorum; 1, where who waits stands in line; or several with commas")
	flag.StringVar(&r.makes, "client", ours, "ours, unguarded, eager, redlock, redsync, or several with commas")
	flag.StringVar(&r.modes, "mode", minority, "minority: faults under which exclusion is promised; beyond: more; or both with a comma")
	flag.StringVar(&r.only, "only", "", "names of `faults`, with commas; empty: all")
	flag.Uint64Var(&c.Seed, "seed", 1, "what the faults are drawn from")
	flag.IntVar(&c.Acquisitions, "acquisitions", 20000, "how many end a run")
	flag.DurationVar(&c.Limit, "for", 30*time.Minute, "how long a run lasts at most")
	flag.IntVar(&c.Clients, "clients", 8, "client processes")
	flag.IntVar(&c.Workers, "workers", 6, "workers in each client process")
	flag.IntVar(&c.Keys, "keys", 24, "locks that all contend for")
	flag.IntVar(&c.Long, "long", 5, "how many of a hundred holds last for most of a term, or several")
	flag.DurationVar(&c.TTL, "ttl", time.Second, "term of a lease; with -load, a tenth of it")
	flag.StringVar(&c.Dir, "out", filepath.Join(os.TempDir(), "distmutex-chaos"), "`folder` for histories, results and pictures")
	flag.IntVar(&r.load, "load", 0, "instead of all that: so many holds, renewed on the nodes while one after the other is killed")
	flag.Parse()
	return r
}

func (r *request) run(all *command) {
	if r.only != "" {
		r.Only = strings.Split(r.only, ",")
	}
	flavours := redistest.Known()
	if r.flavours != "all" {
		flavours = nil
		for f := range strings.SplitSeq(r.flavours, ",") {
			flavours = append(flavours, redistest.Flavour(f))
		}
	}
	for _, r.Flavour = range flavours {
		for nodes := range strings.SplitSeq(r.nodes, ",") {
			if r.Nodes = map[string]int{"1": 1, "3": 3, "5": 5}[nodes]; r.Nodes == 0 {
				all.Errorf("%q is not a number of servers that there are faults for", nodes)
				return
			}
			r.each(all)
		}
	}
	if r.load == 0 {
		printTable(os.Stdout, all.results)
	}
}

// each runs one flavour with all makes and modes, or its load.
func (r *request) each(all *command) {
	if r.load > 0 {
		c := r.config
		c.TTL *= 10 // as by default
		all.sub(func(tb *command) { runLoad(tb, c, r.load) })
		return
	}
	for mode := range strings.SplitSeq(r.modes, ",") {
		for client := range strings.SplitSeq(r.makes, ",") {
			c := r.config
			c.Make, c.Mode = client, mode
			c.Dir = filepath.Join(c.Dir, c.name())
			all.sub(func(tb *command) {
				found := run(tb, c)
				s := found.summary()
				tb.results = append(tb.results, s)
				fmt.Fprintf(os.Stderr, "%s: %d acquisitions in %v, two in: %d, stale refused: %d, lost updates: %d, longest wait %v, Jain %.2f\n",
					c.name(), found.granted, found.took.Round(time.Second), len(found.twoIn)+len(found.undue), found.seen.Stale, found.seen.Lost,
					found.longest.Round(ms), s.Jain)
				for _, f := range found.failures() {
					tb.Errorf("%s: %s", c.name(), f)
				}
			})
		}
	}
}
