package redis_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/distmutex/distmutex/backend/redis"
	"github.com/distmutex/distmutex/internal/redistest"
)

// What a cluster takes besides, also while a slot moves; and without it, a
// refusal.
func TestLeastRightsOnACluster(t *testing.T) {
	clusters(t, 2, 0, func(t *testing.T, c *redistest.Cluster) {
		with := func(more ...string) *redis.Backend {
			as := user(t, c.Masters, slices.Concat(scriptRights, []string{"~*"}, more)...)
			o := optionsOf(c.Masters[0], as)
			return over(t, goredis.NewClusterClient(&goredis.ClusterOptions{
				Addrs: redistest.Addrs(c.Masters), Username: o.Username, Password: o.Password, MaintNotificationsConfig: o.MaintNotificationsConfig,
			}))
		}
		if errs := drive(t, with()); !slices.ContainsFunc(errs, refusal) {
			t.Errorf("without +cluster|slots: got %v, want a refusal", errs)
		}
		b := with("+cluster|slots", "+asking")
		for _, err := range drive(t, b) {
			if err != nil {
				t.Error(err)
			}
		}
		held := mustAcquire(t, b, lease("moved", 20*time.Second))
		m := c.Migrate("moved")
		m.Keys(nil)
		if err := b.Renew(t.Context(), held); err != nil {
			t.Errorf("renew while the slot moves: %v", err)
		}
		b = with("+cluster|slots")
		if err := b.Renew(t.Context(), held); !refusal(err) {
			t.Errorf("without +asking: got %v, want a refusal", err)
		}
		m.End()
	})
}

// What a user of the sentinels needs.
func TestLeastRightsOnSentinels(t *testing.T) {
	sentinels(t, func(t *testing.T, s *redistest.Sentinels) {
		with := func(rights string) (redis.Closer, error) {
			user(t, s.Sentinels, append(strings.Fields(rights), "resetchannels", "&+switch-master", "&+replica-reconf-done")...)
			return open(t, nil, sentinelURL(s, redistest.Watched)+"?sentinel_username=app&sentinel_password=p%40ss")
		}
		b, err := with("+sentinel|get-master-addr-by-name +sentinel|sentinels +subscribe")
		if err != nil {
			t.Fatal(err)
		}
		mustRelease(t, b, mustAcquire(t, b, lease("k", time.Second)))
		if _, err := with("+sentinel|sentinels +subscribe"); !refusal(err) {
			t.Errorf("without the primary's address: got %v, want a refusal", err)
		}
	})
}
