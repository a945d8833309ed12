// Quickstart shows why a lock needs fencing: three workers increment a counter
// under a lock, one of them stalls past its lease, another takes over, and the
// late write of the first is refused.
//
//	go run ./examples/quickstart
//	go run ./examples/quickstart -redis localhost:6379
//	go run ./examples/quickstart -redis r1:6379,r2:6379,r3:6379,r4:6379,r5:6379
//
// Servers of a quorum that have just started count after half a minute, or at
// once with -new, which says that they have never held a lock.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/backend/memory"
	"github.com/distmutex/distmutex/backend/redis"
)

const (
	term  = time.Second           // of a lease
	stall = 2 * time.Second       // well past it
	pause = 20 * time.Millisecond // between reading the counter and writing it
)

func main() {
	servers := flag.String("redis", "", "addresses of Redis or Valkey `servers`, separated by commas: "+
		"one, or several independent ones for a quorum (default: a lock in memory)")
	isNew := flag.Bool("new", false, "the servers of the quorum have never held a lock")
	flag.Parse()
	if err := run(context.Background(), os.Stdout, *servers, *isNew); err != nil {
		fmt.Fprintln(os.Stderr, "quickstart:", err)
		os.Exit(1)
	}
}

// run tells the story on the servers, or in memory if there are none.
func run(ctx context.Context, out io.Writer, servers string, isNew bool) (err error) {
	if servers == "" {
		return tell(ctx, out, memory.New(nil))
	}
	var urls []string
	for addr := range strings.SplitSeq(servers, ",") {
		switch addr = strings.TrimSpace(addr); {
		case addr == "":
			return fmt.Errorf("an address is empty: %q", servers)
		case !strings.Contains(addr, "://"):
			addr = "redis://" + addr
		}
		urls = append(urls, addr)
	}
	b, err := redis.Open(ctx, nil, urls...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close(ctx)) }()
	if q, ok := b.(*redis.Quorum); ok && isNew {
		if err := q.DeclareNew(ctx); err != nil {
			return err
		}
	}
	return tell(ctx, out, b)
}

func tell(ctx context.Context, out io.Writer, b backend.Backend) error {
	var c counter
	log := &timeline{out: out, begin: time.Now()}
	ann, err1 := join("ann", true, b, &c, log)
	bob, err2 := join("bob", false, b, &c, log) // will stall: a paused process renews nothing
	cid, err3 := join("cid", true, b, &c, log)
	if err := errors.Join(err1, err2, err3); err != nil {
		return err
	}

	// All goes well: one after the other.
	g, gctx := errgroup.WithContext(ctx)
	for _, w := range []*worker{ann, bob, cid} {
		g.Go(func() error { return w.work(gctx, nil) })
	}
	if err := g.Wait(); err != nil {
		return err
	}

	// Bob stalls while he has the lock, and the others come for it.
	var others sync.WaitGroup
	err := bob.work(ctx, func() {
		for _, w := range []*worker{ann, cid} {
			others.Go(func() { w.err = w.work(ctx, nil) })
		}
		time.Sleep(stall)
		others.Wait() // a slow machine may take longer
	})
	others.Wait()
	if err := errors.Join(err, ann.err, cid.err); err != nil {
		return err
	}
	return log.verdict(6, c.n)
}
