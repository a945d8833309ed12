package readme_test

import (
	"context"
	"testing"

	goredis "github.com/redis/go-redis/v9"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/backend/memory"
	"github.com/distmutex/distmutex/backend/redis"
	"github.com/distmutex/distmutex/fencing"
	"github.com/distmutex/distmutex/internal/redistest"
	"github.com/distmutex/distmutex/mutex"
)

func tokenOf(ctx context.Context, b backend.Backend, client *goredis.Client) (token fencing.Token, err error) {
	tokens, err := redis.NewTokens(client)
	if err != nil {
		return 0, err
	}
	fenced := backend.Wrap(b, fencing.Middleware(tokens))

	m, err := mutex.New(fenced, "report", nil)
	if err != nil {
		return 0, err
	}
	err = m.Do(ctx, func(ctx context.Context) error {
		token, _ = fencing.FromContext(ctx)
		return nil
	})
	return token, err
}

func TestFenced(t *testing.T) {
	client := redistest.Start(t, redistest.Flavours()[0], 1)[0].Client()
	first, err := tokenOf(t.Context(), memory.New(nil), client)
	second, err2 := tokenOf(t.Context(), memory.New(nil), client)
	if err != nil || err2 != nil || first <= 0 || second <= first {
		t.Errorf("tokens %d, %v and %d, %v; want them to rise from one backend to the next", first, err, second, err2)
	}
}
