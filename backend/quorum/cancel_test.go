package quorum_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/distmutex/distmutex/backend"
)

// A release whose context has ended says so, though the nodes' answers may be here
// before anybody looks: it is carried out all the same.
func TestReleaseWithADeadContextSaysSoHoweverQuickTheNodesAre(t *testing.T) {
	q, ctx := ofMemory(t), t.Context()
	held, err := q.Acquire(ctx, backend.Lease{Key: "k", Owner: "holder", TTL: time.Minute, Start: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	dead, cancel := context.WithCancel(ctx)
	cancel()
	for range 3000 {
		other := backend.Lease{Key: "k", Owner: "another", TTL: time.Minute, Token: held.Token, Start: time.Now()}
		if err := q.Release(dead, other); !errors.Is(err, context.Canceled) || errors.Is(err, backend.ErrLost) {
			t.Fatalf("got %v, want an error that is context.Canceled alone", err)
		}
	}
	if err := q.Release(dead, held); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	next := backend.Lease{Key: "k", Owner: "next", TTL: time.Minute}
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		if _, err := q.Acquire(ctx, next); err == nil {
			return
		} else if time.Now().After(deadline) {
			t.Fatalf("the release was not carried out: %v", err)
		}
		next.Owner += "+"
	}
}
