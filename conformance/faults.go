package conformance

import (
	"errors"
	"testing"
	"time"

	"github.com/distmutex/distmutex/backend"
)

// Faults are what a harness can do to the store, and to a client's way there. Each
// is optional: a harness that offers one is held to the laws under it, and the
// report names those that it does not offer. The cases that use them run at the
// end, one after the other. Clients are given as New and Peer returned them.
type Faults struct {
	// LoseReply has the next request of b for the lease carried out, and its
	// reply lost. Not more than this reply need be lost; b may have several, if
	// it has several servers.
	LoseReply func(t testing.TB, b backend.Backend, l backend.Lease)

	// Hold keeps what b sends from the store until deliver is called: then it
	// arrives, in the order in which it was sent. It takes a Peer, whose
	// requests go on.
	Hold func(t testing.TB, b backend.Backend) (deliver func())

	// Pause makes the store stand still for all clients until resume is called,
	// as SIGSTOP does.
	Pause func(t testing.TB, b backend.Backend) (resume func())

	// Minority makes as many nodes sick, dead or frozen say, as the backend
	// claims not to notice, until heal is called.
	Minority func(t testing.TB, b backend.Backend) (heal func())

	// Crash ends as much of the store, without warning, as the backend claims to
	// bear without losing a lease: a server that has its data on disk, or a
	// minority of others. Restart starts it again.
	Crash func(t testing.TB, b backend.Backend) (restart func())

	// Forget ends as much of the store as the backend claims to bear without a
	// token going back, and starts it again without its data. Leases may get
	// lost.
	Forget func(t testing.TB, b backend.Backend)

	// MoveClock moves the store's clock, from where it is now, as far as the
	// backend claims to bear without a token going back.
	MoveClock func(t testing.TB, b backend.Backend, by time.Duration)
}

// missing is the fault that a case needs and the harness does not offer.
func (f *Faults) missing(n needs, peer bool) string {
	for _, x := range []struct {
		need    needs
		offered bool
		name    string
	}{
		{losing, f.LoseReply != nil, "LoseReply"},
		{holding, f.Hold != nil, "Hold"},
		{pausing, f.Pause != nil, "Pause"},
		{sickness, f.Minority != nil, "Minority"},
		{crashing, f.Crash != nil, "Crash"},
		{forgetting, f.Forget != nil, "Forget"},
		{clock, f.MoveClock != nil, "MoveClock"},
	} {
		switch {
		case n&x.need == 0:
		case !x.offered:
			return "no Faults." + x.name
		case x.need == holding && !peer:
			return "no Peer, which Faults.Hold takes"
		}
	}
	return ""
}

// fault notes in the history what the harness is about to do.
func (t *trial) fault(what string) { t.faultOf(what, "") }

func (t *trial) faultOf(what, owner string) {
	t.history.end(t.history.begin(what, "fault", backend.Lease{Key: t.key, Owner: owner}), backend.Lease{}, nil)
}

func (t *trial) loseReply(b backend.Backend, l backend.Lease) {
	t.faultOf("a reply is lost, to", l.Owner)
	t.h.Faults.LoseReply(t.TB, raw(b), l)
}

// during makes a fault that lasts, and returns what ends it: once, if the case
// does not come so far, when it ends.
func (t *trial) during(what string, begin func(testing.TB, backend.Backend) func(), b backend.Backend) (end func()) {
	t.fault(what)
	stop, ended := begin(t.TB, raw(b)), false
	end = func() {
		if !ended {
			ended = true
			stop()
			t.fault("it is over")
		}
	}
	t.atEnd = append(t.atEnd, end)
	return end
}

// recovery is how long a store may take until it serves again.
const recovery = 40 * time.Second

// recovered waits until both clients are served again after a fault. It says
// false if a lease that was taken before may have run out by then.
func (t *trial) recovered(before ...backend.Lease) bool {
	t.Helper()
	deadline := time.Now().Add(recovery)
	for _, b := range []backend.Backend{t.b, t.peer} {
		for {
			probe := t.lease(long)
			probe.Key += "~"
			got, err := b.Acquire(t.ctx, probe)
			if err == nil {
				err = b.Release(t.ctx, got)
			} else {
				t.note(probe)
				_ = b.Release(t.ctx, probe)
			}
			if err == nil {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("the store does not serve %v after the fault was over: %v", recovery, err)
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
	for _, l := range before {
		if time.Until(l.Until()) < soon {
			t.Logf("not judged: the store took too long to serve again")
			return false
		}
	}
	return true
}

// returns has a call made under a fault, which ends with its context. If it does
// not, that is said, the fault ended, and the call awaited.
func (t *trial) returns(what string, call func() error, end func()) error {
	t.Helper()
	answer := make(chan error, 1)
	go func() { answer <- call() }()
	select {
	case err := <-answer:
		return err
	case <-time.After(soon):
		t.Errorf("%s did not return with its context, nor for %v", what, soon)
		end()
		return <-answer
	}
}

// answersNothing expects that a call's outcome is unknown.
func (t *trial) answersNothing(what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) || errors.Is(err, backend.ErrHeld) || errors.Is(err, backend.ErrLost) {
		t.Errorf("%s: %v, want %v and no answer", what, err, want)
	}
}
