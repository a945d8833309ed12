package redistest_test

import (
	"crypto/tls"
	"testing"

	"github.com/distmutex/distmutex/internal/redistest"
	goredis "github.com/redis/go-redis/v9"
)

func TestClusterMovesSlots(t *testing.T) {
	redistest.Each(t, func(t *testing.T, f redistest.Flavour) {
		c := redistest.StartCluster(t, f, 3, 1)
		client := goredis.NewClusterClient(&goredis.ClusterOptions{Addrs: redistest.Addrs(c.Masters)})
		defer client.Close()
		if err := client.Set(t.Context(), "k", "v", 0).Err(); err != nil {
			t.Fatal(err)
		}
		from := c.Owner("k")
		m := c.Migrate("k")
		m.Keys(nil)
		m.End()
		if to := c.Owner("k"); to != m.To || to == from || get(t, to.Client(), "k") != "v" {
			t.Errorf("the slot is at %s, came from %s and was to go to %s", to.Addr, from.Addr, m.To.Addr)
		}
		if f == redistest.Redis7 {
			return // it moves slots key by key only
		}
		if to := c.MigrateAtonce("k"); to == m.To || get(t, to.Client(), "k") != "v" {
			t.Errorf("the slot is at %s, and was to leave it", to.Addr)
		}
	})
}

func TestSentinelsPromote(t *testing.T) {
	redistest.Each(t, func(t *testing.T, f redistest.Flavour) {
		s := redistest.StartSentinels(t, f, 1, 3)
		if got := s.Promoted(); got != s.Primary.Addr {
			t.Errorf("the primary is %s, want %s", got, s.Primary.Addr)
		}
		s.Primary.Kill()
		s.Hurry()
		s.AwaitPromotion()
		set(t, s.Replicas[0].Client(), "k", "v")
	})
}

func TestServersWithTLS(t *testing.T) {
	redistest.Each(t, func(t *testing.T, f redistest.Flavour) {
		ca := redistest.NewCA(t)
		_, port := redistest.StartTLS(t, f, ca)
		c := goredis.NewClient(&goredis.Options{Addr: "localhost:" + port, TLSConfig: &tls.Config{RootCAs: ca.Pool}})
		defer c.Close()
		set(t, c, "k", "v")
	})
}
