// Package contest measures distmutex beside its peers on real servers: one run,
// in which all take turns, round by round, so that what the machine does
// meanwhile happens to all of them. Each scenario runs in processes of their own,
// which stand through all rounds.
package contest

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/distmutex/distmutex/internal/redistest"
)

// settings are the command's flags.
type settings struct {
	scenarios, peers string
	rounds           int
	length           time.Duration // of one round
	out              string
	flavour          redistest.Flavour
	reportOnly       bool
	profile          bool
	log              io.Writer
}

// Main is the main function of a command that measures, and of the processes that
// it starts, which are its binary again. The guests take part beside the peers of
// this module.
func Main(guests ...Guest) {
	invite(guests)
	if os.Getenv(childEnv) != "" {
		if err := child(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "bench process:", err)
			os.Exit(1)
		}
		return
	}
	s := parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, s, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func parse() settings {
	s := settings{log: os.Stderr}
	var names []string
	for _, sc := range scenarios {
		names = append(names, sc.name)
	}
	flag.StringVar(&s.scenarios, "scenario", "", "which, by commas; all if empty: "+strings.Join(names, ", "))
	flag.StringVar(&s.peers, "peer", "", "which, by commas; all if empty")
	flag.IntVar(&s.rounds, "rounds", 10, "rounds that count, after one that does not")
	seconds := flag.Float64("seconds", 1, "length of a round")
	flag.StringVar(&s.out, "out", "bench-out", "folder for the raw figures, the table and the plot")
	flavour := flag.String("flavour", string(redistest.Redis8), "servers: redis7, redis8 or valkey9")
	flag.BoolVar(&s.reportOnly, "report", false, "measure nothing: print what the folder has")
	flag.BoolVar(&s.profile, "profile", false, "have the first process of each peer write a profile of its CPU time and allocations")
	flag.Parse()
	s.length = time.Duration(*seconds * float64(time.Second))
	s.flavour = redistest.Flavour(*flavour)
	return s
}

// run measures what was asked for and reports all that the folder has.
func run(ctx context.Context, s settings, w io.Writer) error {
	if err := os.MkdirAll(s.out, 0o777); err != nil {
		return err
	}
	if !s.reportOnly {
		chosen, err := choose(s.scenarios)
		if err != nil {
			return err
		}
		for _, sc := range chosen {
			fmt.Fprintf(s.log, "%s: %s\n", sc.name, sc.what)
			if err := measure(ctx, s, sc); err != nil {
				return fmt.Errorf("%s: %w", sc.name, err)
			}
		}
	}
	all, err := load(s.out)
	if err != nil {
		return err
	}
	table := markdown(all)
	if _, err := io.WriteString(w, table); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(s.out, "table.md"), []byte(table), 0o666); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(s.out, "plot.svg"), []byte(plot(all)), 0o666)
}

func choose(list string) ([]scenario, error) {
	if list == "" {
		return scenarios, nil
	}
	var chosen []scenario
	for _, name := range strings.Split(list, ",") {
		i := slices.IndexFunc(scenarios, func(s scenario) bool { return s.name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no scenario %q", name)
		}
		chosen = append(chosen, scenarios[i])
	}
	return chosen, nil
}
