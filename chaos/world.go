package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/backend/redis"
	"github.com/distmutex/distmutex/chaos/internal/history"
	"github.com/distmutex/distmutex/chaos/internal/network"
	"github.com/distmutex/distmutex/internal/redistest"
)

// config is one run.
type config struct {
	Flavour      redistest.Flavour
	Nodes        int // servers: a quorum of five or three, or one, which has a line
	Make         string
	Mode         string
	Seed         uint64
	Acquisitions int           // the run ends after so many
	Least        time.Duration // but not before
	Limit        time.Duration // and not later
	Clients      int
	Workers      int // in each client
	Keys         int
	Long         int // how many of a hundred holds are long
	TTL          time.Duration
	Dir          string   // what was seen is kept here
	Only         []string // names of faults; empty: all that the mode has
}

// world is all that takes part in a run.
type world struct {
	config
	tb       testing.TB
	clock    history.Clock
	counts   network.Counts
	resource *resource
	clients  []*slot
	moves    bool // the servers' clocks can be set

	mu    sync.Mutex
	hosts []*host
	spare *host
}

// delay is for how long a node of ours does not count after it may have
// forgotten locks.
func (c config) delay() time.Duration { return c.TTL + backend.Drift(c.TTL) + 2*time.Second }

// newWorld starts everything but the clients' processes.
func newWorld(tb testing.TB, c config) *world {
	tb.Helper()
	w := &world{config: c, tb: tb, clock: history.NewClock()}
	if err := errors.Join(os.RemoveAll(c.Dir), os.MkdirAll(c.Dir, 0o700)); err != nil {
		tb.Fatal(err)
	}
	file, err := os.Create(filepath.Join(c.Dir, "resource.log"))
	if err != nil {
		tb.Fatal(err)
	}
	if w.resource, err = newResource(history.NewLog(file, w.clock)); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(w.resource.close)
	servers := tb.TempDir()
	for i := range c.Nodes {
		w.hosts = append(w.hosts, newHost(tb, c.Flavour, filepath.Join(servers, fmt.Sprint(i))))
	}
	w.spare = newHost(tb, c.Flavour, filepath.Join(servers, "spare"))
	w.moves = true
	for _, h := range append(slices.Clone(w.hosts), w.spare) {
		if err := h.FixedClock(); err != nil {
			tb.Logf("not checked: what comes of clocks that are moved: %v", err)
			w.moves = false
			break
		}
	}
	if err := w.declare(); err != nil {
		tb.Fatal(err)
	}
	for i := range c.Clients {
		w.clients = append(w.clients, w.newSlot(i))
	}
	return w
}

// declare tells ours that the servers of a quorum are new.
func (w *world) declare() error {
	if w.Nodes == 1 {
		return nil
	}
	var clients []goredis.UniversalClient
	for _, h := range w.hosts {
		clients = append(clients, goredis.NewClient(&goredis.Options{Addr: h.Addr}))
	}
	q, err := redis.NewQuorum(clients, serverOptions(w.TTL))
	if err != nil {
		return err
	}
	errs := []error{q.DeclareNew(w.tb.Context()), q.Close(w.tb.Context())}
	for _, c := range clients {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

func (w *world) newSlot(number int) *slot {
	s := &slot{number: number, clock: w.clock, deaths: make(map[string]int64)}
	s.config = clientConfig{
		Make: w.Make, Resource: w.resource.addr(), Keys: w.Keys, Workers: w.Workers, Long: w.Long, TTL: w.TTL,
		Sleeps: sleeps(number), Seed: w.Seed*1000 + uint64(number)*100,
	}
	for i, h := range w.hosts {
		p, err := network.New(h.Addr, w.Seed*1000+uint64(number*w.Nodes+i), &w.counts)
		if err != nil {
			w.tb.Fatal(err)
		}
		w.tb.Cleanup(p.Close)
		s.proxies = append(s.proxies, p)
		s.config.Nodes = append(s.config.Nodes, p.Addr)
	}
	w.tb.Cleanup(s.kill) // before its networks and the resource close
	return s
}

// host is the server that is a node now.
func (w *world) host(node int) *host {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.hosts[node]
}

// replace makes the spare server the node, which all clients reach from now on,
// and what the node was the spare.
func (w *world) replace(node int) {
	w.mu.Lock()
	w.hosts[node], w.spare = w.spare, w.hosts[node]
	addr := w.hosts[node].Addr
	w.mu.Unlock()
	for _, s := range w.clients {
		s.proxies[node].Lead(addr)
	}
}

// networks calls f for the networks between all clients and one node.
func (w *world) networks(node int, f func(*network.Proxy)) {
	for _, s := range w.clients {
		f(s.proxies[node])
	}
}
