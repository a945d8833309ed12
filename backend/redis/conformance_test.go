package redis_test

import (
	"context"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/backend/redis"
	"github.com/distmutex/distmutex/conformance"
	"github.com/distmutex/distmutex/internal/redistest"
)

func TestConformance(t *testing.T) {
	clients := map[string]func(addr string) *goredis.Client{
		"defaults": func(addr string) *goredis.Client { return goredis.NewClient(&goredis.Options{Addr: addr}) },
		"strict": func(addr string) *goredis.Client {
			return goredis.NewClient(&goredis.Options{Addr: addr, MaxRetries: -1, ContextTimeoutEnabled: true, PoolSize: 2})
		},
	}
	for name, client := range clients {
		t.Run(name, func(t *testing.T) {
			everywhere(t, func(t *testing.T, s *redistest.Server) {
				conformance.Run(t, conformance.Harness{
					New:  func(t testing.TB) backend.Backend { return closing(t, client(s.Addr)) },
					Peer: func(t testing.TB, _ backend.Backend) backend.Backend { return closing(t, client(s.Addr)) },
				})
			})
		})
	}
}

// closing is a backend that ends with the test, and its client with it.
func closing(t testing.TB, client *goredis.Client) backend.Backend {
	t.Helper()
	b, err := redis.New(client, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := b.Close(ctx); err != nil {
			t.Error(err)
		}
		client.Close()
	})
	return b
}
