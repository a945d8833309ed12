package redis

import (
	"context"
	"errors"
	"fmt"
	"strings"

	goredis "github.com/redis/go-redis/v9"
)

// What makes a server unfit as a member of a quorum.
var (
	errReplica  = errors.New("it is a replica, which takes no locks")
	errEviction = errors.New("it may evict locks")
)

// Identity says which server this is: its run_id, which a restart changes.
// It is empty, with a nil error, where there is no such thing: for clients of
// several servers, and for simulated servers.
//
// A server that is unfit as a member of a quorum is an error: a replica, and one
// that evicts keys at a memory limit (any maxmemory-policy but noeviction).
func (b *Backend) Identity(ctx context.Context) (string, error) {
	b.advised.Store(true) // the caller hears of it
	if b.guard == nil {
		return b.identity(ctx)
	}
	id, err := b.guard.identity(ctx)
	if err != nil {
		err = fmt.Errorf("identify %s: %w", b.name, cause(ctx, err))
	}
	return id, err
}

func (b *Backend) identity(ctx context.Context) (string, error) {
	switch b.client.(type) {
	case *goredis.ClusterClient, *goredis.Ring:
		return "", nil
	}
	info, err := await(ctx, &b.calls, nil, func() (string, error) {
		return b.client.Info(quiet{ctx}).Result()
	})
	if err == nil {
		err = unfit(info)
	}
	if err != nil {
		return "", fmt.Errorf("identify %s: %w", b.name, cause(ctx, err))
	}
	return field(info, "run_id"), nil
}

func unfit(info string) error {
	limit, policy := field(info, "maxmemory"), field(info, "maxmemory_policy")
	switch {
	case field(info, "role") == "slave":
		return errReplica
	case limit != "" && limit != "0" && policy != "noeviction":
		return fmt.Errorf("%w: maxmemory is set and maxmemory-policy is %s, not noeviction", errEviction, policy)
	}
	return nil
}

// advise looks once, beside the first acquire, whether the server may lose
// locks by itself.
func (b *Backend) advise(ctx context.Context) {
	if b.advised.Load() || !b.advised.CompareAndSwap(false, true) || b.calls.begin() != nil {
		return
	}
	ctx = context.WithoutCancel(ctx)
	go func() {
		defer b.calls.wg.Done()
		if _, err := b.identity(ctx); err != nil && !errors.Is(err, goredis.ErrClosed) {
			b.warn(ctx, err)
		}
	}()
}

func (b *Backend) warn(ctx context.Context, err error) {
	b.log.WarnContext(ctx, "distmutex: a lock server may be unfit", "server", b.name, "error", err)
}

// field reads one line of INFO.
func field(info, name string) string {
	for line := range strings.Lines(info) {
		if v, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(v)
		}
	}
	return ""
}
