// Package table keeps leases in a table. Here it is a map under a mutex; in
// SQL, change is a transaction that begins with SELECT … FOR UPDATE.
package table

import (
	"context"
	"sync"
	"time"

	"github.com/distmutex/distmutex/backend"
)

type row struct { // of one key; it stays, so that tokens go on
	owner string // empty: free
	token backend.Token
	ends  time.Time // by the clock of the table, never of a client
}

// Backend is a table of leases.
type Backend struct {
	mu   sync.Mutex
	rows map[string]row
}

func New() *Backend { return &Backend{rows: make(map[string]row)} }

func (b *Backend) Acquire(ctx context.Context, want backend.Lease) (backend.Lease, error) {
	err := b.change(ctx, "acquire", want, func(r *row, now time.Time) error {
		if r.owner == "" {
			*r = row{want.Owner, r.token + 1, now}
		} else if r.owner != want.Owner { // else a repeated call, or a raise
			return backend.ErrHeld
		}
		r.token = max(r.token, want.Token)
		if end := now.Add(want.TTL); end.After(r.ends) {
			r.ends = end
		}
		want.Token = r.token
		return nil
	})
	return want, err
}

func (b *Backend) Renew(ctx context.Context, held backend.Lease) error {
	return b.change(ctx, "renew", held, func(r *row, now time.Time) error {
		if r.owner != held.Owner {
			return backend.ErrLost
		}
		r.token, r.ends = max(r.token, held.Token), now.Add(held.TTL)
		return nil
	})
}

func (b *Backend) Release(ctx context.Context, held backend.Lease) error {
	return b.change(ctx, "release", held, func(r *row, now time.Time) error {
		switch {
		case r.owner == held.Owner:
			r.owner = ""
		case held.Token != 0 && (r.owner != "" || held.Ended(now)):
			return backend.ErrLost // else the call is repeated, or nothing was granted
		}
		return nil
	})
}

// change makes one change to the row of a key, alone, or none.
func (b *Backend) change(ctx context.Context, op string, l backend.Lease, verb func(*row, time.Time) error) error {
	if err := l.Validate(); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	r, now, err := b.rows[l.Key], time.Now(), ctx.Err()
	if !now.Before(r.ends) {
		r.owner = ""
	}
	if err == nil {
		err = verb(&r, now)
	}
	if err != nil {
		return &backend.Error{Op: op, Key: l.Key, Err: err}
	}
	b.rows[l.Key] = r
	return nil
}
