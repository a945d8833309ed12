package redis_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/backend/redis"
	"github.com/distmutex/distmutex/internal/redistest"
)

// clientLog is what go-redis itself prints, from the first test to the last: its
// logger can only be set before it is used.
var clientLog logs

type clientLogger struct{}

func (clientLogger) Printf(_ context.Context, format string, v ...any) {
	line := fmt.Sprintf(format, v...)
	fmt.Fprintln(&clientLog, line)
	fmt.Fprintln(os.Stderr, "redis:", line)
}

func init() { goredis.SetLogger(clientLogger{}) }

// tracer writes down all that a hook of a tracing library sees of commands.
type tracer struct{ *logs }

func (tr tracer) DialHook(next goredis.DialHook) goredis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := next(ctx, network, addr)
		fmt.Fprintln(tr, "dial", addr, err)
		return c, err
	}
}

func (tr tracer) ProcessHook(next goredis.ProcessHook) goredis.ProcessHook {
	return func(ctx context.Context, cmd goredis.Cmder) error {
		err := next(ctx, cmd)
		tr.write(cmd)
		return err
	}
}

func (tr tracer) ProcessPipelineHook(next goredis.ProcessPipelineHook) goredis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []goredis.Cmder) error {
		err := next(ctx, cmds)
		for _, cmd := range cmds {
			tr.write(cmd)
		}
		return err
	}
}

// write leaves out go-redis's own greeting, which has the password, whoever uses
// the client: doc/security.md says so.
func (tr tracer) write(cmd goredis.Cmder) {
	if name := cmd.Name(); name == "hello" || name == "auth" {
		return
	}
	fmt.Fprintf(tr, "%s | %v | %+v | %#v | %q | %v\n", cmd, cmd.Args(), cmd.Args(), cmd.Args(), cmd.Args(), cmd.Err())
}

const (
	secretOwner    = "sesame-the-owner"
	secretPassword = "sesame-the-password"
)

// Case 54. Whatever happens, nothing that is written down has an owner or a
// password in it: not the client's spans, no log, no error.
func TestNothingTellsAnOwnerOrAPassword(t *testing.T) {
	t.Parallel()
	redistest.Each(t, func(t *testing.T, f redistest.Flavour) {
		redistest.NeedsControl(t, f)
		servers := redistest.Start(t, f, 3, "--requirepass", secretPassword)
		var seen logs
		for name, o := range leaky(&seen) {
			tellsAll(t, &seen, servers, o)
			for _, want := range []string{"<owner>", "WRONGPASS", "held by another", "lease lost", "NOAUTH", "WRONGTYPE", "context canceled"} {
				if !strings.Contains(seen.String(), want) {
					t.Errorf("%s: nothing of %q was seen, so this checked too little", name, want)
				}
			}
		}
		for what, text := range map[string]string{"spans, logs and errors": seen.String(), "go-redis's log": clientLog.String()} {
			for line := range strings.Lines(text) {
				if strings.Contains(line, "sesame") {
					t.Errorf("%s have a secret: %s", what, line)
				}
			}
		}
	})
}

// leaky is the ways to use servers.
func leaky(seen *logs) map[string]*redis.Options {
	log := slog.New(slog.NewJSONHandler(seen, &slog.HandlerOptions{Level: slog.LevelDebug}))
	return map[string]*redis.Options{
		"fenced": {Logger: log}, // by scripts and native commands
		"plain":  {Logger: log, Plain: true, Unguarded: true},
	}
}

// tellsAll goes through what can happen, on one server and on a quorum.
func tellsAll(t *testing.T, seen *logs, servers []*redistest.Server, o *redis.Options) {
	client := func(s *redistest.Server, password string) goredis.UniversalClient {
		c := goredis.NewClient(&goredis.Options{Addr: s.Addr, Password: password, ReadTimeout: 200 * time.Millisecond, MaxRetries: -1, DialerRetries: 1})
		t.Cleanup(func() { c.Close() })
		c.AddHook(tracer{seen})
		return c
	}
	for _, password := range []string{secretPassword, "sesame-but-wrong", ""} {
		var clients []goredis.UniversalClient
		for _, s := range servers {
			clients = append(clients, client(s, password))
		}
		tellsVerbs(t, seen, overWith(t, clients[0], o), clients[0])
		q, err := redis.NewQuorum(clients, o)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(seen, q.DeclareNew(t.Context()))
		tellsVerbs(t, seen, q, clients[0])
		closeWithin(t, q)
		for _, u := range []string{"redis://:" + password + "@" + servers[0].Addr, "redis+cluster://:" + password + "@" + servers[0].Addr, "redis+sentinel://:" + password + "@" + servers[0].Addr + "/x"} {
			b, err := redis.Open(t.Context(), o, u)
			fmt.Fprintln(seen, err)
			if err == nil {
				fmt.Fprintln(seen, b.Close(t.Context()))
			}
		}
	}
	b := overWith(t, client(servers[0], secretPassword), o)
	servers[0].Freeze()
	tellsVerbs(t, seen, b, nil)
	servers[0].Kill()
	tellsVerbs(t, seen, b, nil)
	servers[0].Restart()
}

// tellsVerbs calls all verbs in all states of the key, and writes down how each
// ends.
func tellsVerbs(t *testing.T, seen *logs, b redis.Closer, admin goredis.UniversalClient) {
	ctx := t.Context()
	tell := func(what string, err error) { fmt.Fprintf(seen, "%s: %v | %+v | %#v | %q\n", what, err, err, err, err) }
	dead, cancel := context.WithCancel(ctx)
	cancel()
	all := func(ctx context.Context, l backend.Lease) {
		got, err := b.Acquire(ctx, l)
		tell("acquire", err)
		l.Token = max(l.Token, got.Token)
		tell("renew", b.Renew(ctx, l))
		if w, ok := backend.As[backend.Waiter](b); ok {
			short, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
			_, err := w.Wait(short, l)
			tell("wait", err)
			cancel()
		}
	}
	key := func(owner string) backend.Lease {
		return backend.Lease{Key: "k", Owner: owner, TTL: 200 * time.Millisecond, Start: time.Now()}
	}
	first := key(secretOwner + "-1")
	all(ctx, first)
	all(ctx, key(secretOwner+"-2")) // held
	all(dead, key(secretOwner+"-3"))
	first.Token = 1
	tell("release", b.Release(ctx, first))
	tell("release again", b.Release(dead, first))
	if admin == nil {
		return
	}
	late := key(secretOwner + "-4")
	late.Token = 1
	late.Start = late.Start.Add(-time.Second)
	tell("renew what is lost", b.Renew(ctx, late))
	tell("release what is lost", b.Release(ctx, late))
	admin.HSet(ctx, "k", "field", "value")
	all(ctx, key(secretOwner+"-5"))
	admin.Del(ctx, "k")
	admin.Set(ctx, "k", "another", 0)
	all(ctx, key(secretOwner+"-6"))
	admin.Del(ctx, "k")
	for _, bad := range []backend.Lease{{Owner: secretOwner}, {Key: "k", Owner: secretOwner, TTL: -1}, {Key: "k\x00", Owner: secretOwner, TTL: time.Second}} {
		all(ctx, bad)
	}
}
