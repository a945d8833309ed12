package redistest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// slots is how many there are in a cluster.
const slots = 16384

// replicating makes a replica's first copy begin at once.
var replicating = []string{"--repl-diskless-sync-delay", "0"}

// Cluster is servers that share the slots of a Redis Cluster. They suspect each
// other only after minutes, so that a busy machine causes no failover; see
// [Cluster.Hurry].
type Cluster struct {
	Masters  []*Server
	Replicas []*Server // the i-th is of the i-th master, and has caught up

	tb testing.TB
}

// StartCluster starts a cluster of so many masters, of which the first have a
// replica each, and waits until every server knows all.
func StartCluster(tb testing.TB, f Flavour, masters, replicas int, args ...string) *Cluster {
	tb.Helper()
	NeedsControl(tb, f)
	args = append(slices.Concat(replicating, []string{"--cluster-enabled", "yes", "--cluster-node-timeout", "1000", "--cluster-replica-validity-factor", "0"}), args...)
	all := Start(tb, f, masters+replicas, args...)
	c := &Cluster{Masters: all[:masters], Replicas: all[masters:], tb: tb}
	c.meet(all)
	c.await("all servers know each other", all, func(s *Server) bool {
		info := admin(tb, s, "cluster", "info")
		return field(info, "cluster_known_nodes") == strconv.Itoa(len(all)) && field(info, "cluster_state") == "ok"
	})
	c.patience(300_000)
	for i, s := range c.Replicas {
		admin(c.tb, s, "cluster", "replicate", c.id(c.Masters[i]))
	}
	c.await("the replicas have caught up", c.Replicas, func(s *Server) bool {
		return field(admin(tb, s, "info", "replication"), "master_link_status") == "up"
	})
	c.await("all servers know the replicas", all, func(s *Server) bool {
		return strings.Count(admin(tb, s, "cluster", "nodes"), "slave ") == replicas
	})
	return c
}

// meet shares out the slots and makes everyone known to everyone.
func (c *Cluster) meet(all []*Server) {
	c.tb.Helper()
	for i, s := range all {
		if n := len(c.Masters); i < n {
			admin(c.tb, s, "cluster", "addslotsrange", i*slots/n, (i+1)*slots/n-1)
		}
		admin(c.tb, s, "cluster", "set-config-epoch", i+1)
	}
	for i, s := range all {
		for _, other := range all[i+1:] {
			host, port, _ := strings.Cut(other.Addr, ":")
			admin(c.tb, s, "cluster", "meet", host, port)
		}
	}
}

// Hurry makes the servers that run suspect a silent one soon, as is needed for
// a failover.
func (c *Cluster) Hurry() { c.patience(1000) }

func (c *Cluster) patience(milliseconds int) {
	c.tb.Helper()
	for _, s := range c.running() {
		admin(c.tb, s, "config", "set", "cluster-node-timeout", milliseconds)
	}
}

// Owner is the master that has a key's slot, as the first running server sees it.
func (c *Cluster) Owner(key string) *Server {
	c.tb.Helper()
	return c.OwnerBy(c.running()[0], key)
}

// OwnerBy is the same as one server sees it.
func (c *Cluster) OwnerBy(by *Server, key string) *Server {
	c.tb.Helper()
	slot := c.slot(key)
	for line := range strings.Lines(admin(c.tb, by, "cluster", "nodes")) {
		fields := strings.Fields(line)
		if len(fields) < 9 || !slices.ContainsFunc(fields[8:], func(r string) bool { return within(slot, r) }) {
			continue
		}
		addr, _, _ := strings.Cut(fields[1], "@")
		for _, s := range slices.Concat(c.Masters, c.Replicas) {
			if s.Addr == addr {
				return s
			}
		}
	}
	c.tb.Fatalf("nobody has slot %d", slot)
	return nil
}

func within(slot int, slotRange string) bool {
	from, to, ok := strings.Cut(slotRange, "-")
	if !ok {
		to = from
	}
	low, err1 := strconv.Atoi(from)
	high, err2 := strconv.Atoi(to)
	return err1 == nil && err2 == nil && low <= slot && slot <= high
}

// Migration is a slot on its way from one master to another, a step at a time.
type Migration struct {
	From, To *Server

	c    *Cluster
	slot int
}

// Migrate begins to move a key's slot, with all that is in it, to another master.
func (c *Cluster) Migrate(key string) *Migration {
	c.tb.Helper()
	m := &Migration{From: c.Owner(key), c: c, slot: c.slot(key)}
	m.To = c.Masters[(slices.Index(c.Masters, m.From)+1)%len(c.Masters)]
	admin(c.tb, m.To, "cluster", "setslot", m.slot, "importing", c.id(m.From))
	admin(c.tb, m.From, "cluster", "setslot", m.slot, "migrating", c.id(m.To))
	return m
}

// Keys moves the keys that are in the slot now, or only those that pick names.
func (m *Migration) Keys(pick func(key string) bool) {
	m.c.tb.Helper()
	keys, err := m.From.Client().ClusterGetKeysInSlot(m.c.tb.Context(), m.slot, 1000).Result()
	if err != nil {
		m.c.tb.Fatal(err)
	}
	host, port, _ := strings.Cut(m.To.Addr, ":")
	for _, k := range keys {
		if pick == nil || pick(k) {
			admin(m.c.tb, m.From, "migrate", host, port, k, 0, 10_000)
		}
	}
}

// End gives the slot to its new master, and tells all others.
func (m *Migration) End() {
	m.c.tb.Helper()
	order := append([]*Server{m.To, m.From}, m.c.Masters...)
	for _, s := range order {
		admin(m.c.tb, s, "cluster", "setslot", m.slot, "node", m.c.id(m.To))
	}
}

// MigrateAtonce has the servers themselves move a key's slot to another master,
// and returns that when all masters know. It takes Redis 8.4 or Valkey 9.
func (c *Cluster) MigrateAtonce(key string) *Server {
	c.tb.Helper()
	from, slot := c.Owner(key), c.slot(key)
	to := c.Masters[(slices.Index(c.Masters, from)+1)%len(c.Masters)]
	switch from.Flavour {
	case Redis8:
		admin(c.tb, to, "cluster", "migration", "import", slot, slot)
	case Valkey9:
		admin(c.tb, from, "cluster", "migrateslots", "slotsrange", slot, slot, "node", c.id(to))
	default:
		c.tb.Fatalf("%s moves slots key by key", from.Flavour)
	}
	c.await("the slot has moved", c.Masters, func(s *Server) bool { return c.OwnerBy(s, key) == to })
	return to
}

func (c *Cluster) slot(key string) int {
	n, err := c.running()[0].Client().ClusterKeySlot(c.tb.Context(), key).Result()
	if err != nil {
		c.tb.Fatal(err)
	}
	return int(n)
}

func (c *Cluster) id(s *Server) string { return admin(c.tb, s, "cluster", "myid") }

func (c *Cluster) running() (all []*Server) {
	for _, s := range slices.Concat(c.Masters, c.Replicas) {
		if s.proc.runs() {
			all = append(all, s)
		}
	}
	return all
}

func (c *Cluster) await(what string, servers []*Server, ok func(*Server) bool) {
	c.tb.Helper()
	for _, s := range servers {
		within30(c.tb, what, func() bool { return ok(s) })
	}
}

// admin sends one command on a connection of its own. Its answer is text.
func admin(tb testing.TB, s *Server, args ...any) string {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startBound)
	defer cancel()
	c := newClient(s.Addr)
	defer c.Close()
	v, err := c.Do(ctx, args...).Result()
	if err != nil && !errors.Is(err, goredis.Nil) {
		tb.Fatalf("%v on %s: %v", args, s.Addr, err)
	}
	return fmt.Sprint(v)
}

// within30 waits for what servers agree on among themselves.
func within30(tb testing.TB, what string, ok func() bool) {
	tb.Helper()
	for deadline := time.Now().Add(startBound); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			tb.Fatalf("not within %v: %s", startBound, what)
		}
	}
}
