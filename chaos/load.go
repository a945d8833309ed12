package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/backend/redis"
	"github.com/distmutex/distmutex/mutex"
)

// every is how often a server is killed under load.
const every = 20 * time.Second

// counted counts the renewals of a backend.
type counted struct {
	backend.Backend
	renewals, failed atomic.Int64
}

func (c *counted) Unwrap() backend.Backend { return c.Backend }

func (c *counted) Renew(ctx context.Context, held backend.Lease) error {
	err := c.Backend.Renew(ctx, held)
	c.renewals.Add(1)
	if err != nil {
		c.failed.Add(1)
	}
	return err
}

// runLoad holds many locks on servers, of which one after the other is
// killed and comes back with its data, and prints what that takes.
func runLoad(tb testing.TB, c config, holds int) {
	tb.Helper()
	dir := tb.TempDir()
	var hosts []*host
	for i := range c.Nodes {
		hosts = append(hosts, newHost(tb, c.Flavour, filepath.Join(dir, fmt.Sprint(i))))
	}
	q, session := openLoad(tb, c, hosts)
	all := holdMany(tb, session, holds)
	fmt.Printf("%s: %d holds of TTL %v on %d nodes, one killed and restarted every %v\n", c.Flavour, len(all), c.TTL, c.Nodes, every)
	fmt.Println("| after | lost | renewals/s | failed/s | CPU | RSS | heap | goroutines |\n|--:|--:|--:|--:|--:|--:|--:|--:|")
	stop := make(chan struct{})
	var killing sync.WaitGroup
	killing.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			case <-time.After(every):
			}
			hosts[i%c.Nodes].Kill()
			time.Sleep(time.Second)
			hosts[i%c.Nodes].Restart()
		}
	})
	watch(c.Limit, q, all)
	close(stop)
	killing.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := session.Close(ctx); err != nil {
		tb.Errorf("close: %v", err)
	}
	if lost, why := lostOf(all, true); lost > 0 {
		tb.Errorf("%d of %d holds were lost, the first: %v", lost, len(all), why)
	}
}

func openLoad(tb testing.TB, c config, hosts []*host) (*counted, *mutex.Session) {
	tb.Helper()
	var urls []string
	for _, h := range hosts {
		urls = append(urls, "redis://"+h.Addr)
	}
	b, err := redis.Open(tb.Context(), &redis.Options{Logger: slog.New(slog.DiscardHandler)}, urls...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { b.(server).Close(context.Background()) })
	if q, several := b.(*redis.Quorum); several {
		if err := q.DeclareNew(tb.Context()); err != nil {
			tb.Fatal(err)
		}
	}
	layer := &counted{Backend: b}
	session, err := mutex.NewSession(layer, &mutex.Options{TTL: c.TTL})
	if err != nil {
		tb.Fatal(err)
	}
	return layer, session
}

func holdMany(tb testing.TB, session *mutex.Session, holds int) []*mutex.Hold {
	tb.Helper()
	all := make([]*mutex.Hold, holds)
	next := atomic.Int64{}
	var wg sync.WaitGroup
	for range 32 {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < holds; i = int(next.Add(1)) - 1 {
				for begun := time.Now(); all[i] == nil; { // a busy machine leaves some outcomes unknown
					h, err := session.Mutex(fmt.Sprint("load:", i)).Hold(tb.Context())
					if err != nil && time.Since(begun) > time.Minute {
						tb.Errorf("hold %d: %v", i, err)
						return
					}
					all[i] = h
				}
			}
		})
	}
	wg.Wait()
	if tb.Failed() {
		tb.FailNow()
	}
	return all
}

// watch prints a line every half minute.
func watch(limit time.Duration, q *counted, all []*mutex.Hold) {
	begun, last := time.Now(), time.Now()
	var before, failed int64
	cpu := cpuTime()
	for time.Since(begun) < limit {
		time.Sleep(min(limit, 30*time.Second))
		now, took := time.Now(), time.Since(last).Seconds()
		r, f, used := q.renewals.Load(), q.failed.Load(), cpuTime()
		lost, _ := lostOf(all, false)
		var mem runtime.MemStats
		runtime.ReadMemStats(&mem)
		fmt.Printf("| %v | %d | %.0f | %.1f | %.0f %% | %d MB | %d MB | %d |\n", now.Sub(begun).Round(time.Second), lost,
			float64(r-before)/took, float64(f-failed)/took, 100*(used-cpu).Seconds()/took, rss()>>20, mem.HeapInuse>>20, runtime.NumGoroutine())
		last, before, failed, cpu = now, r, f, used
	}
}

// lostOf counts lost holds, and says why the first was; once the session is
// closed, those lost before.
func lostOf(all []*mutex.Hold, closed bool) (n int, why error) {
	for _, h := range all {
		err := h.Err()
		if err != nil && !(closed && strings.Contains(err.Error(), string(mutex.Closed))) {
			if n++; why == nil {
				why = err
			}
		}
	}
	return n, why
}

func cpuTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// rss is how much memory the process has, in bytes.
func rss() (bytes int64) {
	text, err := os.ReadFile("/proc/self/statm")
	var size, pages int64
	if _, scan := fmt.Sscan(string(text), &size, &pages); err != nil || scan != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
}
