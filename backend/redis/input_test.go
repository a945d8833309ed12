package redis_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/backend/redis"
	"github.com/distmutex/distmutex/internal/redistest"
)

func TestServerThatIsAway(t *testing.T) {
	real(t, func(t *testing.T, s *redistest.Server) {
		b := newBackend(t, s.Client())
		warm(t, b)
		s.Kill()
		for op, call := range verbs(b, lease("k", time.Second)) {
			err := call(t.Context())
			var e *backend.Error
			var n net.Error
			if !errors.As(err, &e) || e.Op != op || e.Key != "k" || e.Node != s.Addr || !errors.As(err, &n) {
				t.Errorf("%s: got %v, want a network error that names verb, key and server", op, err)
			}
		}
	})
}

// A time-out of the client's own is not the caller's deadline.
func TestTimeoutOfTheClientIsNotTheCallersDeadline(t *testing.T) {
	real(t, func(t *testing.T, s *redistest.Server) {
		clients := map[string]func(*goredis.Options){
			"read": func(o *goredis.Options) { o.ReadTimeout = 20 * time.Millisecond },
			"pool": func(o *goredis.Options) {
				o.ReadTimeout, o.PoolSize, o.PoolTimeout = 2*time.Second, 1, 100*time.Millisecond
			},
			"dial": func(o *goredis.Options) {
				o.Addr, o.DialTimeout, o.DialerRetries = "192.0.2.1:6379", time.Nanosecond, 1
			},
		}
		backends := map[string]*redis.Backend{}
		for name, edit := range clients {
			backends[name] = newBackend(t, worst(t, s.Addr, func(o *goredis.Options) { o.MaxRetries = -1 }, edit))
			if name != "dial" {
				warm(t, backends[name])
			}
		}
		s.Freeze()
		defer s.Thaw()
		short, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		_, _ = backends["pool"].Acquire(short, lease("first", time.Second)) // has the only connection
		for name, b := range backends {
			for op, call := range verbs(b, lease("k", time.Second)) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				err := call(ctx)
				cancel()
				if err == nil || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
					t.Errorf("%s, %s: got %v, want a time-out that is not the caller's", name, op, err)
				}
			}
		}
	})
}

func TestBadInputIsNotSent(t *testing.T) {
	everywhere(t, func(t *testing.T, s *redistest.Server) {
		p := redistest.NewProxy(t, s.Addr)
		p.Refuse(true)
		b := newBackend(t, redistest.NewClient(t, p.Addr))
		for field, edit := range map[string]func(*backend.Lease){
			"Key":   func(l *backend.Lease) { l.Key = "a\x00b" },
			"Owner": func(l *backend.Lease) { l.Owner = "" },
			"Token": func(l *backend.Lease) { l.Token = backend.MaxToken + 1 },
			"TTL":   func(l *backend.Lease) { l.TTL = 30*time.Second + time.Millisecond },
		} {
			l := lease("k", time.Second)
			edit(&l)
			for op, call := range verbs(b, l) {
				var e *backend.InvalidError
				if err := call(t.Context()); !errors.As(err, &e) || e.Field != field {
					t.Errorf("%s: got %v, want an InvalidError of %s", op, err, field)
				}
			}
		}
	})
}

func TestNewRefusesBadInput(t *testing.T) {
	var none *goredis.Client
	c := goredis.NewClient(&goredis.Options{})
	defer c.Close()
	for _, tc := range []struct {
		field  string
		client goredis.UniversalClient
		o      *redis.Options
	}{
		{"client", nil, nil},
		{"client", none, nil},
		{"MaxTTL", c, &redis.Options{MaxTTL: -1}},
		{"MaxTTL", c, &redis.Options{MaxTTL: time.Millisecond}},
		{"MaxTTL", c, &redis.Options{MaxTTL: 25 * time.Hour}},
		{"MaxTTL", c, &redis.Options{MaxTTL: time.Second + time.Microsecond}},
	} {
		var e *backend.InvalidError
		if _, err := redis.New(tc.client, tc.o); !errors.As(err, &e) || e.Field != tc.field {
			t.Errorf("got %v, want an InvalidError of %s", err, tc.field)
		}
	}
}
