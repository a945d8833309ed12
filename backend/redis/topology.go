package redis

import (
	"context"
	"errors"
	"fmt"
	"sync"

	goredis "github.com/redis/go-redis/v9"
)

// failover is a client that sentinels lead to whichever server is primary, with
// a name that says so.
type failover struct {
	goredis.UniversalClient
	name string
}

// failoverAddr is what go-redis has for the address of such a client.
const failoverAddr = "FailoverClient"

// shardHubs are the hubs of a Ring, one for each server.
type shardHubs struct {
	mu     sync.Mutex
	m      map[*goredis.Client]*hub
	closed bool
}

// hubFor is where the wake-ups of a key arrive. The servers of a cluster pass
// them on to each other, and a primary to its replicas, so one connection hears
// all. Those of a Ring know nothing of each other.
func (b *Backend) hubFor(key string) (*hub, error) {
	ring, ok := b.client.(*goredis.Ring)
	if !ok {
		return b.hub, nil
	}
	shard, err := ring.GetShardClientForKey(key)
	if err != nil {
		return nil, err
	}
	s := &b.shards
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, goredis.ErrClosed
	}
	h := s.m[shard]
	if h == nil {
		h = newHub(b)
		h.client, h.name = shard, nameOf(shard)
		if s.m == nil {
			s.m = make(map[*goredis.Client]*hub)
		}
		s.m[shard] = h
	}
	return h, nil
}

func (b *Backend) closeHubs() {
	b.hub.close()
	s := &b.shards
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, h := range s.m {
		h.close()
	}
}

// reroute has the map of a cluster read anew after an error that was no server's
// answer: a primary may have died, and go-redis looks by itself once a minute.
func (b *Backend) reroute(err error) {
	var answer goredis.Error
	if c, ok := b.client.(*goredis.ClusterClient); ok && err != nil && !errors.As(err, &answer) {
		c.ReloadState(context.Background())
	}
}

// fit asks a server of ours, or each primary of a cluster, whether it may be
// used.
func (b *Backend) fit(ctx context.Context) error {
	c, ok := b.client.(*goredis.ClusterClient)
	if !ok {
		_, err := b.identity(ctx)
		if errors.Is(err, goredis.Nil) {
			err = fmt.Errorf("the sentinels know no primary of that name: %w", err)
		}
		return err
	}
	return c.ForEachMaster(ctx, func(ctx context.Context, primary *goredis.Client) error {
		info, err := primary.Info(ctx).Result()
		if err != nil {
			return err
		}
		return unfit(info)
	})
}
