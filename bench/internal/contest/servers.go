package contest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	goredis "github.com/redis/go-redis/v9"

	"github.com/distmutex/distmutex/internal/redistest"
)

// host is what redistest takes for a test: it collects what has to be undone.
// What would end a test ends the measurement by a panic that end turns into an
// error.
type host struct {
	testing.TB
	undo []func()
	errs []error
}

type ended struct{ err error }

func newHost() *host { return &host{} }

func (h *host) Helper()                         {}
func (h *host) Name() string                    { return "bench" }
func (h *host) Context() context.Context        { return context.Background() }
func (h *host) Cleanup(f func())                { h.undo = append(h.undo, f) }
func (h *host) Failed() bool                    { return len(h.errs) > 0 }
func (h *host) Logf(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }
func (h *host) Errorf(format string, args ...any) {
	h.errs = append(h.errs, fmt.Errorf(format, args...))
}
func (h *host) FailNow()                          { panic(ended{errors.Join(h.errs...)}) }
func (h *host) Fatalf(format string, args ...any) { h.Errorf(format, args...); h.FailNow() }
func (h *host) Fatal(args ...any)                 { h.Fatalf("%s", fmt.Sprint(args...)) }
func (h *host) Skipf(format string, args ...any)  { h.Fatalf(format, args...) }

func (h *host) TempDir() string {
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		h.Fatal(err)
	}
	h.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// end undoes everything. It is to be deferred.
func (h *host) end(err *error) {
	why := recover()
	for i := len(h.undo) - 1; i >= 0; i-- {
		h.undo[i]()
	}
	if e, ok := why.(ended); ok {
		*err = e.err
	} else if why != nil {
		panic(why)
	} else {
		*err = errors.Join(append(h.errs, *err)...)
	}
}

// servers are those of one peer, or of all.
type servers struct {
	all     []*redistest.Server
	addrs   []string
	clients []*goredis.Client
	shared  string // a file for the processes that use them
}

func (h *host) start(f redistest.Flavour, n int) *servers {
	s := &servers{shared: h.TempDir() + "/shared"}
	if n == 0 {
		return s
	}
	redistest.NeedsControl(h, f)
	s.all = redistest.Start(h, f, n)
	s.addrs = redistest.Addrs(s.all)
	for _, one := range s.all {
		s.clients = append(s.clients, one.Client())
	}
	return s
}

// info is what a server has done so far.
type info struct {
	calls map[string]float64 // commands, those inside of scripts too
	reads float64            // times that it read from a connection
	cpu   float64            // seconds

	cycles float64 // of the clients, so far
}

func readInfo(ctx context.Context, c *goredis.Client) (info, error) {
	i := info{calls: map[string]float64{}}
	text, err := c.Info(ctx, "commandstats", "stats", "cpu").Result()
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		if cmd, ok := strings.CutPrefix(name, "cmdstat_"); ok {
			calls, _, _ := strings.Cut(strings.TrimPrefix(value, "calls="), ",")
			i.calls[cmd] = number(calls)
		}
		switch name {
		case "total_reads_processed":
			i.reads = number(value)
		case "used_cpu_user", "used_cpu_sys":
			i.cpu += number(value)
		}
	}
	delete(i.calls, "info") // our own
	return i, err
}

func number(s string) float64 {
	f, _ := strconv.ParseFloat(s, 64) // a server that says something else says 0
	return f
}

func (i info) less(before info) info {
	d := info{calls: map[string]float64{}, reads: i.reads - before.reads, cpu: i.cpu - before.cpu, cycles: i.cycles - before.cycles}
	for name, n := range i.calls {
		if n -= before.calls[name]; n > 0 {
			d.calls[name] = n
		}
	}
	return d
}

func (i info) plus(j info) info {
	s := info{calls: map[string]float64{}, reads: i.reads + j.reads, cpu: i.cpu + j.cpu, cycles: i.cycles + j.cycles}
	for _, calls := range []map[string]float64{i.calls, j.calls} {
		for name, n := range calls {
			s.calls[name] += n
		}
	}
	return s
}

func (i info) total() float64 {
	sum := 0.0
	for _, n := range i.calls {
		sum += n
	}
	return sum
}
