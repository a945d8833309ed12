package redistest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Sentinels is a primary, its replicas, and the sentinels that watch them under
// the name [Watched]. They suspect a silent primary only after minutes, so that
// a busy machine causes no failover; see [Sentinels.Hurry].
type Sentinels struct {
	Primary   *Server
	Replicas  []*Server
	Sentinels []*Server

	tb testing.TB
}

// Watched is the name of the primary among sentinels.
const Watched = "locks"

// StartSentinels starts a primary with replicas, which have caught up, and
// sentinels, of which more than half must agree on a failover.
func StartSentinels(tb testing.TB, f Flavour, replicas, sentinels int) *Sentinels {
	tb.Helper()
	NeedsControl(tb, f)
	all := Start(tb, f, 1+replicas, replicating...)
	s := &Sentinels{Primary: all[0], Replicas: all[1:], tb: tb}
	host, port, _ := strings.Cut(s.Primary.Addr, ":")
	for _, r := range s.Replicas {
		admin(tb, r, "replicaof", host, port)
		within30(tb, "a replica has caught up", func() bool {
			return field(admin(tb, r, "info", "replication"), "master_link_status") == "up"
		})
	}
	conf := fmt.Sprintf("sentinel monitor %[1]s %[2]s %[3]s %[4]d\nsentinel down-after-milliseconds %[1]s 300000\n",
		Watched, host, port, sentinels/2+1)
	s.Sentinels = startSentinels(tb, f, sentinels, conf)
	for _, w := range s.Sentinels {
		within30(tb, "the sentinels know all", func() bool {
			return strings.Contains(admin(tb, w, "info", "sentinel"), fmt.Sprintf("slaves=%d,sentinels=%d", replicas, sentinels))
		})
	}
	return s
}

func startSentinels(tb testing.TB, f Flavour, n int, conf string, args ...string) []*Server {
	tb.Helper()
	var ps []*process
	for range n {
		p := &process{bin: found().bins[f], args: append([]string{"--sentinel"}, args...), dir: tb.TempDir()}
		p.conf = filepath.Join(p.dir, "sentinel.conf")
		if err := os.WriteFile(p.conf, []byte(conf), 0o600); err != nil {
			tb.Fatal(err)
		}
		ps = append(ps, p)
	}
	return run(tb, f, ps)
}

// Hurry makes the sentinels suspect a silent primary soon, and fail over.
func (s *Sentinels) Hurry() {
	s.tb.Helper()
	for _, w := range s.Sentinels {
		admin(s.tb, w, "sentinel", "set", Watched, "down-after-milliseconds", 1000)
	}
}

// AwaitPromotion waits until every sentinel has another primary, which takes
// writes.
func (s *Sentinels) AwaitPromotion() {
	s.tb.Helper()
	for _, w := range s.Sentinels {
		within30(s.tb, "a replica is promoted", func() bool { return promoted(s.tb, w) != s.Primary.Addr })
	}
	for _, r := range s.Replicas {
		if r.Addr == s.Promoted() {
			within30(s.tb, "the replica is a primary", func() bool {
				return field(admin(s.tb, r, "info", "replication"), "role") == "master"
			})
		}
	}
}

// Promoted is the address of the primary that the first sentinel knows.
func (s *Sentinels) Promoted() string {
	s.tb.Helper()
	return promoted(s.tb, s.Sentinels[0])
}

func promoted(tb testing.TB, sentinel *Server) string {
	tb.Helper()
	addr := admin(tb, sentinel, "sentinel", "get-master-addr-by-name", Watched)
	return strings.ReplaceAll(strings.Trim(addr, "[]"), " ", ":")
}
