package redis

import (
	"context"
	crand "crypto/rand"
	"errors"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/distmutex/distmutex/backend"
)

// native is which commands a server has that compare and act in one; they cost it
// a fifth of a script. Redis has DELEX from 8.4, Valkey DELIFEQ and SET … IFEQ
// from 9. The server is asked, not its version.
//
// SET … IFEQ of Redis is left alone. As of 8.6.3 it finds the key, looks at it a
// second time, and writes to where it was before; the second look may have moved
// it, while a table is being resized. Other keys are lost then, or the server.
//
// What a server said is good for the connections that there are. When one has
// been thrown away, another server may answer at the address, and is asked anew.
type native struct {
	known atomic.Pointer[commands]
}

// commands are what a server has of them. The zero value is none.
type commands struct {
	renew   bool   // SET key owner IFEQ owner PX term, and GETEX
	release string // DELEX, DELIFEQ, or empty
	epoch   uint32 // of the connections
}

// errBrief is for a lease whose renewal for less may still reach the server, and
// would shorten what is asked for now.
var errBrief = errors.New("a renewal for a shorter term may still be on its way")

// commands returns what the server has, and asks it if that is not known. Where
// the client reaches several servers, that is nothing.
func (b *Backend) commands(ctx context.Context, key string) commands {
	if _, one := b.client.(*goredis.Client); !one {
		return commands{}
	}
	epoch := b.client.PoolStats().StaleConns
	if c := b.native.known.Load(); c != nil && c.epoch == epoch {
		return *c
	}
	c, ok := b.askCommands(ctx, key)
	if ok {
		c.epoch = epoch
		b.native.known.Store(&c)
	}
	return c
}

// askCommands tries the commands with an owner that nobody has, so nothing comes
// of them; and not with a real one, since servers repeat the arguments of what
// they do not know. ok says whether the answers are good for other keys too.
func (b *Backend) askCommands(ctx context.Context, key string) (c commands, ok bool) {
	nobody := crand.Text()
	pipe := b.client.Pipeline()
	delex := pipe.Do(ctx, "delex", key, "IFEQ", nobody)
	delifeq := pipe.Do(ctx, "delifeq", key, nobody)
	all := []*goredis.Cmd{delex, delifeq}
	if !b.plain {
		all = append(all, pipe.Do(ctx, "getex", counterKey(key)))
	}
	settle(pipe.Exec(ctx)) // each has its own error

	has := func(cmd *goredis.Cmd) bool { return cmd.Err() == nil || errors.Is(cmd.Err(), goredis.Nil) }
	switch {
	case has(delifeq): // Valkey, which has SET … IFEQ for longer
		c.release, c.renew = "delifeq", has(all[len(all)-1])
	case has(delex):
		c.release = "delex"
	}
	return c, !slices.ContainsFunc(all, func(cmd *goredis.Cmd) bool { return !has(cmd) && !lacking(cmd.Err()) })
}

// lacking says whether a server answered that it does not have a command, or
// does not let this user have it.
func lacking(err error) bool {
	return goredis.HasErrorPrefix(err, "unknown command") || goredis.HasErrorPrefix(err, "syntax error") ||
		goredis.HasErrorPrefix(err, "NOPERM")
}

// answered says whether err is a server's answer.
func answered(err error) bool {
	var answer goredis.Error
	return errors.As(err, &answer)
}

// renew starts a term anew: by a native command if that is all it takes, else
// by a script, or by what there is instead.
func (b *Backend) renew(ctx context.Context, held backend.Lease) (reply, error) {
	if b.commands(ctx, held.Key).renew {
		if r, done, err := b.renewNatively(ctx, held); done || err != nil {
			return r, err
		}
	}
	if b.plain {
		return b.renewPlainly(ctx, held)
	}
	return b.eval(ctx, renewScript, []string{held.Key, counterKey(held.Key)}, &secret{owner: held.Owner},
		held.TTL.Milliseconds(), int64(held.Token), (held.TTL + counterLife).Milliseconds())
}

// renewNatively reads the counter in the same round trip, and gives it its life.
// If it is not at the token at least, as after an eviction, the lease is not
// renewed before a script has put that right.
func (b *Backend) renewNatively(ctx context.Context, held backend.Lease) (r reply, done bool, err error) {
	value, same := &secret{owner: held.Owner}, &secret{owner: held.Owner}
	set := goredis.NewCmd(ctx, "set", held.Key, value, "IFEQ", same, "PX", held.TTL.Milliseconds())
	cmds := []goredis.Cmder{set}
	var counter *goredis.StringCmd
	if !b.plain {
		counter = goredis.NewStringCmd(ctx, "getex", counterKey(held.Key), "PX", (held.TTL + counterLife).Milliseconds())
		cmds = append(cmds, counter)
	}
	b.batch.process(ctx, cmds...) // each has its own error
	err = wasSet(set)
	if value.doubtful(err) {
		b.lanes.linger(held, b.life(held))
	}
	switch {
	case errors.Is(err, goredis.Nil):
		return reply{status: gone}, true, nil
	case err != nil && !answered(err):
		return reply{}, false, err
	case err != nil:
		b.refused(err)
		return reply{}, false, nil
	case counter == nil || b.asserted(counter, held.Token):
		return reply{status: yes}, true, nil
	}
	return reply{}, false, nil
}

// asserted says whether the counter makes the next grant exceed token.
func (b *Backend) asserted(counter *goredis.StringCmd, token backend.Token) bool {
	text, err := counter.Result()
	if err != nil {
		b.refused(err)
		return false
	}
	last, err := strconv.ParseUint(text, 10, 63)
	return err == nil && token <= backend.Token(last) && backend.Token(last) <= backend.MaxToken
}

// refused forgets what commands the server has, if it refused one of them: it is
// another server than the one that was asked.
func (b *Backend) refused(err error) {
	if lacking(err) {
		b.native.known.Store(nil)
	}
}

// giveUp releases a lease: by a native command if there is nothing to tell from
// its answer but success, else by a script, or by what there is instead. A
// tombstone is kept for as long as keep says.
func (b *Backend) giveUp(ctx context.Context, held backend.Lease, owner *secret, keep time.Duration) (reply, error) {
	if !b.ordered && !b.queued(held) && (keep == 0 || b.plain) {
		if name := b.commands(ctx, held.Key).release; name != "" {
			if done, err := b.deleteNatively(ctx, held, owner, name); done || err != nil {
				return reply{status: yes}, err
			}
		}
	}
	if b.plain {
		return b.deletePlainly(ctx, held)
	}
	if b.ordered {
		return b.passOn(ctx, held, owner, keep)
	}
	if b.queued(held) {
		if r, err := b.yield(ctx, held, owner, keep); err == nil || !answered(err) {
			return r, err
		}
		// A user who may not stand in a queue may release all the same.
	}
	return b.eval(ctx, releaseScript, []string{held.Key, tombsKey(held.Key)}, owner,
		keep.Milliseconds(), wakeChannel(held.Key))
}

// deleteNatively says whether it deleted the lock. It wakes the waiters in any
// case: they look for themselves.
func (b *Backend) deleteNatively(ctx context.Context, held backend.Lease, owner *secret, name string) (bool, error) {
	args := []any{name, held.Key}
	if name == "delex" {
		args = append(args, "IFEQ")
	}
	del := discreet{goredis.NewCmd(ctx, append(args, owner)...)}
	wake := goredis.NewIntCmd(ctx, "publish", wakeChannel(held.Key), "") // a hint, which a user may be forbidden to send
	b.batch.process(ctx, del, wake)
	err := del.Err()
	if err != nil && answered(err) {
		b.refused(err)
		err = nil
	}
	return del.Val() == int64(1), err
}

// discreet is a command that the server may not know: such answers repeat the
// arguments, and hooks see them.
type discreet struct{ *goredis.Cmd }

func (c discreet) SetErr(err error) {
	if lacking(err) {
		err = errRefused
	}
	c.Cmd.SetErr(err)
}

// refusal is a server's answer without its arguments.
type refusal string

func (r refusal) Error() string { return string(r) }
func (refusal) RedisError()     {}

const errRefused = refusal("ERR unknown command, or no permission for it")

// linger notes that a renewal of l may still reach the server. Unlike a script,
// it would shorten a term that is longer.
func (ls *lanes) linger(l backend.Lease, life time.Duration) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ln := ls.enter(l, life)
	if ln.brief == 0 || l.TTL < ln.brief {
		ln.brief = l.TTL
	}
}
