package fencing_test

import (
	"context"
	"testing"
	"time"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/backend/memory"
	"github.com/distmutex/distmutex/fencing"
)

func TestAWaiterIsOfferedWhereThereIsOne(t *testing.T) {
	fence := fencing.Middleware(fencing.NewCounter(0))
	if _, ok := backend.As[backend.Waiter](fence(bareMemory())); ok {
		t.Error("a Waiter over a backend that has none")
	}
	for _, b := range []backend.Backend{bareWaiter(), memory.New(nil), backend.Wrap(memory.New(nil), patient())} {
		if _, ok := backend.As[backend.Waiter](fence(b)); !ok {
			t.Error("no Waiter over a backend that has one")
		}
	}
}

// Wait need not say when it granted: then it counts from the call.
func TestAGrantWithoutAnInstantCountsFromTheCall(t *testing.T) {
	b := fencing.Middleware(fencing.NewCounter(0))(vague{memory.New(nil)})
	w, _ := backend.As[backend.Waiter](b)
	asked := want("a")
	if got, err := w.Wait(t.Context(), asked); err != nil || got.Token != 1 || !got.Start.Equal(asked.Start) {
		t.Errorf("Wait: token %d from %v, %v; want 1 from %v", got.Token, got.Start, err, asked.Start)
	}
}

type vague struct{ backend.Backend }

func (v vague) Wait(ctx context.Context, want backend.Lease) (backend.Lease, error) {
	got, err := v.Acquire(ctx, want)
	got.Start = time.Time{}
	return got, err
}

func TestAHintHasNoToken(t *testing.T) {
	b := fencing.Middleware(fencing.NewCounter(0))(hinting{memory.New(nil)})
	w, _ := backend.As[backend.Waiter](b)
	got, err := w.Wait(t.Context(), want("a"))
	if err != nil || got.TTL != 0 || got.Token != 0 || got.Ticket != "7" || fencing.Remembered(b) != 0 {
		t.Errorf("Wait: term %v, token %d, ticket %q, %v; want a hint with the ticket alone", got.TTL, got.Token, got.Ticket, err)
	}
}

type hinting struct{ backend.Backend }

func (hinting) Wait(context.Context, backend.Lease) (backend.Lease, error) {
	return backend.Lease{Ticket: "7", Token: 5}, nil
}
