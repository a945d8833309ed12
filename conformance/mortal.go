package conformance

import (
	"context"
	crand "crypto/rand"
	"fmt"
	"runtime/pprof"
	"strings"
	"sync"
	"testing"
	"time"
)

// mortal is a client that ends before its case does: the testing.TB that it is
// made with runs what was left to Cleanup when end is called.
//
// Its goroutines have a label, which those that they start inherit. So they are
// told from all that others do meanwhile, as tests that run in parallel.
type mortal struct {
	testing.TB
	b     *recorded
	trial *trial
	name  string

	ctx    context.Context
	cancel context.CancelFunc
	ended  chan struct{} // closed when Cleanup has returned; nil: it has not begun

	mu       sync.Mutex
	cleanups []func()
}

// mortal makes a client, for a key of its own.
func (t *trial) mortal() *mortal {
	t.Helper()
	m := &mortal{TB: t.TB, trial: t, name: crand.Text()}
	t.key += "/" + m.name
	m.ctx, m.cancel = context.WithCancel(t.TB.Context())
	t.atEnd = append(t.atEnd, func() { m.hasEnded() }) // if the case does not come so far
	m.lives(func() { m.b = &recorded{t.h.New(m), "one that ends", &t.history} })
	return m
}

func (m *mortal) Cleanup(f func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cleanups = append(m.cleanups, f)
}

func (m *mortal) Context() context.Context { return m.ctx }

const label = "conformance client"

// lives has what f starts counted as the client's.
func (m *mortal) lives(f func()) {
	pprof.Do(m.trial.ctx, pprof.Labels(label, m.name), func(context.Context) { f() })
}

// ending begins to end the client, once.
func (m *mortal) ending() {
	if m.ended == nil {
		m.ended = make(chan struct{})
		go m.lives(func() { defer close(m.ended); m.cleanUp() })
	}
}

// cleanUp runs what was left to Cleanup, the last first.
func (m *mortal) cleanUp() {
	m.cancel()
	m.mu.Lock()
	last := len(m.cleanups) - 1
	if last < 0 {
		m.mu.Unlock()
		return
	}
	f := m.cleanups[last]
	m.cleanups = m.cleanups[:last]
	m.mu.Unlock()
	defer m.cleanUp() // though f may end its goroutine, as Fatal does
	f()
}

// end ends the client. Nobody says how long that may take: as long as a store
// may to serve again.
func (m *mortal) end() {
	m.trial.Helper()
	if !m.hasEnded() {
		m.trial.Fatalf("what New left to Cleanup is not back after %v", recovery)
	}
}

func (m *mortal) hasEnded() bool {
	m.ending()
	return inNaps(recovery, func() bool { return !m.lingers() })
}

// lingers says that the client has begun to end, and has not ended.
func (m *mortal) lingers() bool {
	select {
	case <-m.ended:
		return false
	default:
		return true
	}
}

// inNaps waits until ok, which need not be soon. What it counts is how long it
// meant to sleep: a machine that stalls meanwhile uses up no more than one nap.
func inNaps(bound time.Duration, ok func() bool) bool {
	nap := time.Millisecond
	for slept := time.Duration(0); slept < bound; slept += nap {
		if ok() {
			return true
		}
		time.Sleep(nap)
		nap = min(2*nap, 100*time.Millisecond)
	}
	return ok()
}

// haveEnded expects that nothing stays of clients that were ended.
func (t *trial) haveEnded(all []*mortal) {
	t.Helper()
	var left []string
	if !inNaps(patience, func() bool { left = leftBy(all); return len(left) == 0 }) {
		t.Fatalf("%d clients were ended one after the other, and each has left this goroutine behind, for %v:\n%s",
			len(all), patience, strings.Join(left, "\n"))
	}
}

// leftBy is the goroutines that every one of the clients has left behind, each
// as its stack at one of them.
func leftBy(all []*mortal) []string {
	var text strings.Builder
	_ = pprof.Lookup("goroutine").WriteTo(&text, 1) // a Builder takes all
	stacks := make(map[string]map[string]string)    // by function and client
	for record := range strings.SplitSeq(text.String(), "\n\n") {
		head, stack, _ := strings.Cut(record, "\n#\t")
		for _, m := range all {
			if strings.Contains(head, fmt.Sprintf("%q:%q", label, m.name)) {
				f := begins(stack)
				if stacks[f] == nil {
					stacks[f] = make(map[string]string)
				}
				stacks[f][m.name] = stack
			}
		}
	}
	var left []string
	for _, of := range stacks {
		if len(of) == len(all) {
			left = append(left, of[all[0].name])
		}
	}
	return left
}

// begins is the function with which a goroutine of the profile began.
func begins(stack string) (name string) {
	for line := range strings.Lines(stack) {
		fields := strings.Fields(strings.TrimPrefix(line, "#"))
		if len(fields) < 2 {
			continue
		}
		f, _, _ := strings.Cut(fields[1], "+0x")
		if name == "" || !strings.HasPrefix(f, "sync.") && !strings.HasPrefix(f, "golang.org/x/sync/") {
			name = f // the caller of the one before
		}
	}
	return name
}
