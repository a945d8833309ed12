package redis_test

import (
	"context"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/backend/redis"
	"github.com/distmutex/distmutex/conformance"
	"github.com/distmutex/distmutex/internal/redistest"
)

// mutant is a script with a mistake, and who notices it: a case of the
// conformance suite, or a test below by its name.
type mutant struct {
	script, text, with string
	by                 string
}

var mutants = map[string]mutant{
	"M01 a grant whoever holds":          {"acquire", "if holder and holder ~= ARGV[1] then", "if false then", "exclusion/one-holder"},
	"M02 no expiry":                      {"acquire", "redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])", "redis.call('SET', KEYS[1], ARGV[1])", "term/ends"},
	"M03 milliseconds taken for seconds": {"acquire", "redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])", "redis.call('SET', KEYS[1], ARGV[1], 'EX', ARGV[2])", "term/ends"},
	"M18 tokens from clocks alone":       {"acquire", "math.max(last + 1, hint, token)", "math.max(hint, token)", "tokens/fast-clock"},
	"M24 a counter that is not stored":   {"acquire", "redis.call('SET', KEYS[2], token, 'PX', ARGV[6])", "", "tokens/exact"},
	"M25 tokens of fourteen digits":      {"acquire", "token = string.format('%.0f', token)", "token = token .. ''", "tokens/exact"},
	"M31 a token for each repeat":        {"acquire", "if not holder or last == 0 then", "if true then", "acquire/repeat"},
	"a repeat that shortens":             {"acquire", "elseif redis.call('PTTL', KEYS[1]) < tonumber(ARGV[2]) then", "else", "acquire/repeat-never-shortens"},
	"a repeat that does not renew":       {"acquire", "elseif redis.call('PTTL', KEYS[1]) < tonumber(ARGV[2]) then", "elseif false then", "acquire/repeat-renews"},
	"a floor that is ignored":            {"acquire", "math.max(last, tonumber(ARGV[4]))", "last", "raise/larger"},
	"T8 tombstones that are ignored":     {"acquire", "if redis.call('ZSCORE', KEYS[3], ARGV[1]) then", "if false then", "tombstone"},
	"a client's clock that is believed":  {"acquire", "math.min(math.max(tonumber(ARGV[3]), now - reach), now + reach)", "tonumber(ARGV[3])", "clamp"},
	"M05 a Renew of whoever holds":       {"renew", "if holder ~= ARGV[1] then", "if false then", "renew/foreign"},
	"M28 a Renew that re-creates":        {"renew", "return {0}", "redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2]) return {1}", "renew/after-release"},
	"a Renew that is not done":           {"renew", "redis.call('PEXPIRE', KEYS[1], ARGV[2])", "", "renew/extends"},
	"M05 a Release of whoever holds":     {"release", "if holder == ARGV[1] then", "if holder then", "release/foreign"},
	"a Release that is not done":         {"release", "redis.call('DEL', KEYS[1])", "", "release/frees"},
	"M42 a loss that is not told":        {"release", "status = -1", "status = 0", "release/spares-next"},
	"T8 no tombstones":                   {"release", "bury(KEYS[2], ARGV[1], ARGV[2])", "", "tombstone"},

	"M05 passed on by whoever releases":      {"pass", "if holder == ARGV[1] then", "if holder then", "release/foreign"},
	"nobody in line, and it is not released": {"pass", "redis.call('DEL', KEYS[1])", "", "release/frees"},
	"M42 a loss that is not told, in line":   {"pass", "status = -1", "status = 0", "release/spares-next"},
	"T8 no tombstones, in line":              {"bury", "redis.call('ZADD', tombs, string.format('%.0f', now + ms), owner)", "", "tombstone"},
	"a place that is kept after all":         {"pass", "redis.call('ZREM', KEYS[4], ARGV[4])", "", "place"},
	"M48 passed on without a token":          {"line", "math.max(last + 1, now, floor)", "math.max(last, floor)", "wait/grant"},
	"a waiter's floor that is ignored":       {"line", "math.max(last + 1, now, floor)", "math.max(last + 1, now)", "floor"},
	"M48 passed on for ever":                 {"line", "redis.pcall('SET', KEYS[1], owner, 'PX', term)", "redis.pcall('SET', KEYS[1], owner)", "line/dead-head"},
	"told for longer than it is":             {"line", "{id, token, term, stamp}", "{id, token, term + 1500, stamp}", "wait/term"},
	"M01 had by whoever stands in line":      {"stand", "if not holder then\n  local token", "if true then\n  local token", "wait/grant"},

	"a queue by the text of tickets":     {"queue", "string.match(ARGV[2], '^%d+'), ARGV[2])", "0, ARGV[2])", "turns"},
	"a place that nobody takes":          {"queue", "redis.call('ZADD', KEYS[2], string.match(ARGV[2], '^%d+'), ARGV[2])", "", "turns"},
	"whoever looks is the first":         {"queue", "if not turn or not before(turn, ARGV[2]) then", "if true then", "turns"},
	"one who was told stays in front":    {"before", "redis.pcall('ZPOPMIN', queue)[1]", "redis.call('ZRANGE', queue, 0, 0)[1]", "turns"},
	"a turn that is not kept":            {"before", "redis.pcall('SET', turn, first, 'PX', ms)", "", "turns"},
	"a turn that is kept for ever":       {"before", "redis.pcall('SET', turn, first, 'PX', ms)", "redis.pcall('SET', turn, first)", "turns"},
	"a turn that is not told":            {"before", "redis.pcall('PUBLISH', channel, first)", "", "turns"},
	"yielded, and not released":          {"yield", "redis.call('DEL', KEYS[1])", "", "turns"},
	"yielded by whoever releases":        {"yield", "if holder == ARGV[1] then", "if holder then", "turns"},
	"a turn that is kept after all":      {"yield", "redis.call('DEL', KEYS[4])\n  free = true", "", "turns"},
	"a place that is kept, in the queue": {"yield", "redis.call('ZREM', KEYS[3], ARGV[4])", "", "turns"},
}

const mutantEnv = "DISTMUTEX_MUTANT"

// mutantFlavour is one that does all by scripts.
func mutantFlavour() redistest.Flavour {
	if slices.Contains(redistest.Flavours(), redistest.Redis7) {
		return redistest.Redis7
	}
	return redistest.Miniredis
}

// changed sends a mutant in the place of a script.
type changed struct {
	goredis.Hook // what is not below

	texts map[string]string // by the hash of what they replace
}

func (c changed) DialHook(next goredis.DialHook) goredis.DialHook { return next }
func (c changed) ProcessPipelineHook(next goredis.ProcessPipelineHook) goredis.ProcessPipelineHook {
	return next
}

func (c changed) ProcessHook(next goredis.ProcessHook) goredis.ProcessHook {
	return func(ctx context.Context, cmd goredis.Cmder) error {
		if args := cmd.Args(); args[0] == "evalsha" && c.texts[args[1].(string)] != "" {
			args[0], args[1] = "eval", c.texts[args[1].(string)]
		}
		return next(ctx, cmd)
	}
}

// client is a backend that sends the mutant.
func (m mutant) client(t testing.TB, addr string) backend.Backend {
	t.Helper()
	return overWith(t, m.sender(t, addr), &redis.Options{Unordered: m.script == "release", Logger: slog.New(slog.DiscardHandler)})
}

// quorum is a quorum of one node that sends it.
func (m mutant) quorum(t testing.TB, addr string) *redis.Quorum {
	t.Helper()
	q, err := redis.NewQuorum([]goredis.UniversalClient{m.sender(t, addr)}, &redis.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeWithin(t, q) })
	declare(t, q)
	return q
}

func (m mutant) sender(t testing.TB, addr string) *goredis.Client {
	t.Helper()
	texts := make(map[string]string)
	for _, files := range [][]string{
		{"acquire"}, {"renew"}, {"bury", "release"}, {"line", "stand"}, {"bury", "line", "pass"}, {"before", "queue"}, {"bury", "before", "yield"},
	} {
		if slices.Contains(files, m.script) {
			sound := source(t, files)
			if !strings.Contains(sound, m.text) {
				t.Fatalf("%s.lua has no %q", m.script, m.text)
			}
			texts[goredis.NewScript(sound).Hash()] = strings.Replace(sound, m.text, m.with, 1)
		}
	}
	c := goredis.NewClient(&goredis.Options{Addr: addr})
	c.AddHook(changed{texts: texts})
	return c
}

// source is a script that is made of these files.
func source(t testing.TB, files []string) (all string) {
	t.Helper()
	for _, name := range files {
		text, err := os.ReadFile(filepath.Join("lua", name+".lua"))
		if err != nil {
			t.Fatal(err)
		}
		all += string(text)
	}
	return all
}

// Each mutant is noticed, by who is named.
func TestMutantsOfTheScriptsAreNoticed(t *testing.T) {
	t.Parallel()
	for name, m := range mutants {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if m.by == "turns" && mutantFlavour() == redistest.Miniredis {
				t.Skip("not checked: a simulation is not guarded, and keeps no queue")
			}
			test, sign := "^TestMutant$/^"+strings.Replace(m.by, "/", "$/^", 1)+"$", "broken rule "+m.by+":"
			if !strings.Contains(m.by, "/") {
				test, sign = "^TestMutant$/^"+m.by+"$", "noticed: "
			}
			var out []byte
			for range 3 { // a machine that stalls can hide a mistake, as it must never make one
				cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.v", "-test.run", test)
				cmd.Env = append(os.Environ(), mutantEnv+"="+name)
				var err error
				if out, err = cmd.CombinedOutput(); err != nil && strings.Contains(string(out), sign) {
					return
				}
			}
			t.Errorf("%s did not notice it three times\n%s", m.by, out)
		})
	}
}

// TestMutant holds one mutant to the suite, and to the tests below, in a process
// of its own.
func TestMutant(t *testing.T) {
	name := os.Getenv(mutantEnv)
	if name == "" {
		t.Skip("not a test of its own: TestMutantsOfTheScriptsAreNoticed runs it")
	}
	m := mutants[name]
	addr := redistest.Start(t, mutantFlavour(), 1)[0].Addr
	t.Run("tombstone", func(t *testing.T) { honoursTombstones(t, m.client(t, addr), m.client(t, addr)) })
	t.Run("clamp", func(t *testing.T) { clampsClocks(t, m.client(t, addr)) })
	t.Run("floor", func(t *testing.T) { honoursFloors(t, m.client(t, addr), m.client(t, addr)) })
	t.Run("place", func(t *testing.T) { givesPlacesUp(t, m.client(t, addr), redistest.NewClient(t, addr)) })
	t.Run("turns", func(t *testing.T) {
		tellsTurns(t, m.quorum(t, addr), m.quorum(t, addr), redistest.NewClient(t, addr))
	})
	conformance.Run(t, conformance.Harness{
		New:  func(t testing.TB) backend.Backend { return m.client(t, addr) },
		Peer: func(t testing.TB, _ backend.Backend) backend.Backend { return m.client(t, addr) },
	})
}

// What is sound is not noticed: so it was the mistake that was.
func TestScriptsThatNoticersPass(t *testing.T) {
	t.Parallel()
	addr, same := redistest.Start(t, mutantFlavour(), 1)[0].Addr, mutant{script: "acquire"}
	honoursTombstones(t, same.client(t, addr), same.client(t, addr))
	clampsClocks(t, same.client(t, addr))
	honoursFloors(t, same.client(t, addr), same.client(t, addr))
	givesPlacesUp(t, same.client(t, addr), redistest.NewClient(t, addr))
	if mutantFlavour() != redistest.Miniredis {
		addr := redistest.Start(t, mutantFlavour(), 1)[0].Addr // a new one, which counts at once
		tellsTurns(t, same.quorum(t, addr), same.quorum(t, addr), redistest.NewClient(t, addr))
	}
}

// honoursTombstones has an Acquire arrive that another way has overtaken.
func honoursTombstones(t *testing.T, b, other backend.Backend) {
	late := lease("tombstone", 10*time.Second)
	if err := b.Release(t.Context(), late); err != nil {
		t.Fatal(err)
	}
	if _, err := other.Acquire(t.Context(), late); err == nil {
		t.Error("noticed: an Acquire that arrives after its Release is granted")
	}
}

// clampsClocks asks with a clock that runs a year ahead.
func clampsClocks(t *testing.T, b backend.Backend) {
	fast := lease("clamp", 10*time.Second)
	fast.Start = fast.Start.AddDate(1, 0, 0)
	got, err := b.Acquire(t.Context(), fast)
	if err != nil {
		t.Fatal(err)
	}
	if ahead := time.Until(time.UnixMicro(int64(got.Token))); ahead > time.Hour {
		t.Errorf("noticed: a client's clock moved a token by %v", ahead)
	}
}
