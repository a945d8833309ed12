package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/distmutex/distmutex/chaos/internal/network"
)

// enough is how many turns each worker has in the calm.
const enough = 3

// waitForAll checks that with the faults over every key is got again, soon after
// the nodes count again; on one node, where there is a line, also that everybody
// who waits for as long as it takes has turns.
func (w *world) waitForAll(calm int64) (problems []string) {
	before := w.resource.turnsOf()
	if w.line() {
		for _, s := range w.clients {
			if err := s.patient(); err != nil {
				problems = append(problems, err.Error())
			}
		}
	}
	limit := w.delay() + 2*w.TTL + 2*time.Minute // the machine may be busy
	for deadline := time.Now().Add(limit); ; time.Sleep(20 * time.Millisecond) {
		waiting := w.ungot(calm)
		if w.line() {
			waiting = append(waiting, w.starving(before)...)
		}
		if len(waiting) == 0 {
			return problems
		}
		if time.Now().After(deadline) {
			return append(problems, fmt.Sprintf("I5 %v within %v after the faults were over", waiting, limit))
		}
	}
}

// line says that who waits for a lock stands in line.
func (c config) line() bool { return c.Nodes == 1 && c.own() }

func (w *world) ungot(since int64) (waiting []string) {
	entered := w.resource.entered()
	for i := range w.Keys {
		if key := fmt.Sprint("k", i); entered[key] < since {
			waiting = append(waiting, "nobody got "+key)
		}
	}
	return waiting
}

func (w *world) starving(before map[string]int) (waiting []string) {
	now := w.resource.turnsOf()
	for _, s := range w.clients {
		for i := range w.Workers {
			name := fmt.Sprintf("%s/%d", s.id(), i)
			if n := now[name] - before[name]; n < enough {
				waiting = append(waiting, fmt.Sprintf("%s had only %d turns", name, n))
			}
		}
	}
	return waiting
}

// lineLife is how long a line outlasts the last who came or asked.
const lineLife = time.Minute

// residue looks for what is left when everybody has gone: locks, as soon as those
// of the faults have ended by themselves; lines in which somebody stood since the
// faults were over; and what would never go.
func (w *world) residue(calm int64) (problems []string) {
	if !w.own() {
		return nil
	}
	longer := time.Duration(0)
	if w.Nodes == 1 && w.Mode == beyond {
		longer = 8 * w.TTL // for which a clock that was set back prolongs what is there
	}
	// A message that was late to a node which forgot, or copied another, in the
	// meantime makes a lock that nobody releases.
	faulty := time.Duration(calm-w.clock.Now()) + network.Latest + w.TTL
	time.Sleep(max(w.TTL/4, faulty) + longer)
	for i := range w.Nodes {
		left, err := ask(w.host(i), leftover)
		if err != nil {
			problems = append(problems, fmt.Sprintf("node %d at the end: %v", i, err))
		}
		since := time.Duration(w.clock.Now() - calm)
		for key, life := range left {
			switch {
			case life == -2: // it has gone
			case !strings.Contains(key, "\x00"):
				problems = append(problems, fmt.Sprintf("I6 node %d still has the lock %q, for %v", i, key, life))
			case life == -1 && key != "distmutex:1:node\x00":
				problems = append(problems, fmt.Sprintf("I6 node %d has %q for ever", i, key))
			case strings.HasPrefix(key, "distmutex:1:line\x00") && life > lineLife+longer-since:
				problems = append(problems, fmt.Sprintf("I6 node %d still has %q, for %v: somebody stood in it %v ago", i, key, life, lineLife-life))
			}
		}
	}
	return problems
}

// leftover is all keys and for how long they last: -1 for ever, -2 gone.
func leftover(ctx context.Context, c *goredis.Client) (map[string]time.Duration, error) {
	lives := make(map[string]*goredis.DurationCmd)
	pipe := c.Pipeline()
	scan := c.Scan(ctx, 0, "*", 1000).Iterator()
	for scan.Next(ctx) {
		lives[scan.Val()] = pipe.PTTL(ctx, scan.Val())
	}
	if err := scan.Err(); err != nil || len(lives) == 0 {
		return nil, err
	}
	_, err := pipe.Exec(ctx)
	left := make(map[string]time.Duration)
	for key, life := range lives {
		left[key] = life.Val()
	}
	return left, err
}
