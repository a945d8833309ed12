package redis

import (
	"context"
	_ "embed"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/distmutex/distmutex/backend"
)

var (
	//go:embed lua/acquire.lua
	acquireLua string
	//go:embed lua/renew.lua
	renewLua string
	//go:embed lua/release.lua
	releaseLua string
	//go:embed lua/wait.lua
	waitLua string
	//go:embed lua/bury.lua
	buryLua string
	//go:embed lua/line.lua
	lineLua string
	//go:embed lua/stand.lua
	standLua string
	//go:embed lua/pass.lua
	passLua string
	//go:embed lua/before.lua
	beforeLua string
	//go:embed lua/queue.lua
	queueLua string
	//go:embed lua/yield.lua
	yieldLua string

	acquireScript = script{goredis.NewScript(acquireLua), acquireAnswers}
	renewScript   = script{goredis.NewScript(renewLua), statusAnswers}
	releaseScript = script{goredis.NewScript(buryLua + releaseLua), statusAnswers}
	waitScript    = script{goredis.NewScript(waitLua), answers{yes: "", gone: "l"}}
	standScript   = script{goredis.NewScript(lineLua + standLua), answers{yes: "tc", gone: "lpac", otherwise: ""}}
	passScript    = script{goredis.NewScript(buryLua + lineLua + passLua), statusAnswers}
	queueScript   = script{goredis.NewScript(beforeLua + queueLua), answers{yes: "", gone: "lp"}}
	yieldScript   = script{goredis.NewScript(buryLua + beforeLua + yieldLua), statusAnswers}
)

// script is a script with what it answers.
type script struct {
	*goredis.Script
	answers answers
}

// counterLife is how long a token counter outlives the last lease of its key.
// Once it has gone, the clocks of the servers keep tokens increasing, as long
// as they are not set back by this much less a quarter of MaxTTL.
const counterLife = 24 * time.Hour

// side names what is kept beside a lock. It has a version, so that releases of
// this package can run side by side. It holds NUL, as no key of a lock does, so
// it is never one. It has the hash tag of the key, or the key as its tag, so
// that a cluster keeps both in one slot. A key that has '}' but no tag can't be
// one; a number with the same slot stands for it.
func side(kind, key string) string {
	tag, rest := key, ""
	if t, ok := hashTag(key); ok {
		tag, rest = t, key
	} else if strings.Contains(key, "}") {
		tag, rest = slotTag(key), key
	}
	return "distmutex:1:" + kind + "\x00{" + tag + "}\x00" + rest
}

func counterKey(key string) string  { return side("token", key) }
func tombsKey(key string) string    { return side("dead", key) }
func lineKey(key string) string     { return side("line", key) }
func queueKey(key string) string    { return side("queue", key) }
func turnKey(key string) string     { return side("turn", key) }
func wakeChannel(key string) string { return side("wake", key) }

// secret is an owner on its way to the server. Hooks that write commands into
// logs or spans see a placeholder. It counts how often it was written: more than
// once means that the client sent the command again.
type secret struct {
	owner string
	sent  atomic.Int32
}

func (s *secret) MarshalBinary() ([]byte, error) {
	s.sent.Add(1)
	return []byte(s.owner), nil
}

func (s *secret) String() string   { return "<owner>" }
func (s *secret) GoString() string { return "<owner>" }

// doubtful says whether the command may still be on its way after it ended with
// err: it was sent twice and answered once, or sent and not answered.
func (s *secret) doubtful(err error) bool {
	var answer goredis.Error
	n := s.sent.Load()
	return n > 1 || n == 1 && err != nil && !errors.As(err, &answer)
}

// evalSha sends a script's name; to one server, together with what others ask
// of it.
func (b *Backend) evalSha(ctx context.Context, s *goredis.Script, keys []string, args []any) *goredis.Cmd {
	if b.batch == nil {
		return s.EvalSha(ctx, b.client, keys, args...)
	}
	all := make([]any, 0, 3+len(keys)+len(args))
	all = append(all, "evalsha", s.Hash(), len(keys))
	for _, k := range keys {
		all = append(all, k)
	}
	cmd := goredis.NewCmd(ctx, append(all, args...)...)
	b.batch.process(ctx, cmd)
	return cmd
}

// eval runs a script, wherever its text has gone meanwhile (SCRIPT FLUSH, a
// restart, another node of the cluster).
func (b *Backend) eval(ctx context.Context, s script, keys []string, owner *secret, args ...any) (reply, error) {
	args = append([]any{owner}, args...)
	cmd := b.evalSha(ctx, s.Script, keys, args)
	if goredis.HasErrorPrefix(cmd.Err(), "NOSCRIPT") {
		owner.sent.Add(-1) // this one did not run
		cmd = s.Eval(ctx, b.client, keys, args...)
	}
	vs, err := cmd.Slice()
	if err != nil {
		b.reroute(err)
		return reply{}, err
	}
	return s.answers.read(vs)
}

func acquireArgs(want backend.Lease, maxTTL time.Duration) []any {
	start := want.Start
	if start.IsZero() {
		start = time.Now()
	}
	return []any{
		want.TTL.Milliseconds(),
		start.UnixMicro(),
		int64(want.Token),
		(maxTTL / 4).Microseconds(),
		(want.TTL + counterLife).Milliseconds(),
	}
}
