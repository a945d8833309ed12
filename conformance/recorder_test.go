package conformance_test

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/conformance"
)

// recorder is a testing.TB whose failures are looked at and not reported.
type recorder struct {
	testing.TB
	mu              sync.Mutex
	log             []string
	failed, skipped bool
}

// record runs one case in a bubble of its own.
func record(t *testing.T, h conformance.Harness, id string) *recorder {
	r := new(recorder)
	synctest.Test(t, func(t *testing.T) {
		r.TB = t
		ended := make(chan struct{})
		go func() { // which a Fatalf of the case ends
			defer close(ended)
			conformance.Check(r, h, id)
		}()
		<-ended
		time.Sleep(5 * backend.MaxTTL) // what a fault has left behind runs out
	})
	return r
}

func (r *recorder) note(failed bool, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.log = append(r.log, text)
	r.failed = r.failed || failed
}

func (r *recorder) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.log, "\n")
}

func (r *recorder) Failed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed
}

func (r *recorder) Skipped() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.skipped
}

func (r *recorder) Helper()                           {}
func (r *recorder) Logf(format string, args ...any)   { r.note(false, fmt.Sprintf(format, args...)) }
func (r *recorder) Errorf(format string, args ...any) { r.note(true, fmt.Sprintf(format, args...)) }

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

func (r *recorder) Skip(args ...any) {
	r.note(false, fmt.Sprint(args...))
	r.skipped = true
	runtime.Goexit()
}
