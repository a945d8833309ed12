package redis_test

import (
	"strings"
	"testing"

	goredis "github.com/redis/go-redis/v9"

	"github.com/distmutex/distmutex/backend/redis"
	"github.com/distmutex/distmutex/internal/redistest"
)

// plainly is plain mode, with the rights that doc/security.md lists. UNWATCH is
// not among those that must be: go-redis ignores that it is refused, and then has
// connections on which a transaction may fail for nothing.
var plainly = mode{
	rights: strings.Fields("+set +get +pttl +pexpire +watch +multi +exec +del"),
	plain:  true,
	nodes:  1,
	spare: func(right string, f redistest.Flavour) bool {
		return right == "+pexpire" && f == redistest.Valkey9 // SET … IFEQ takes its place
	},
	open: func(t testing.TB, s []*redistest.Server, as func(*goredis.Options)) redis.Closer {
		return asUser(t, s[0], &redis.Options{Plain: true}, as)
	},
}

func TestLeastRightsOfPlainMode(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, f redistest.Flavour) {
		t.Run("enough", func(t *testing.T) { plainly.enough(t, f) })
		t.Run("one less", func(t *testing.T) { plainly.oneLess(t, f) })
	})
}
