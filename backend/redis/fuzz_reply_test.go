package redis_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/backend/redis"
)

// liar is a server that gives one answer to whatever is asked of a lock, and
// another to what it is asked about native commands.
type liar struct{ answer, native []byte }

func (l liar) dial(context.Context, string, string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	go func() {
		defer theirs.Close()
		r := bufio.NewReader(theirs)
		for {
			args, err := request(r)
			if err != nil {
				return
			}
			if _, err := theirs.Write(l.reply(args)); err != nil {
				return
			}
		}
	}()
	return ours, nil
}

func (l liar) reply(args []string) []byte {
	switch strings.ToLower(args[0]) {
	case "hello", "info":
		return []byte("-ERR unknown command\r\n")
	case "client", "multi", "watch", "unwatch":
		return []byte("+OK\r\n")
	case "delex", "delifeq":
		return l.native
	case "getex":
		if len(args) == 2 { // only to see whether there is such a command
			return l.native
		}
	}
	return l.answer
}

// request reads the words of one command.
func request(r *bufio.Reader) ([]string, error) {
	head, err := r.ReadString('\n')
	if err != nil {
		return nil, err
	}
	n, _ := strconv.Atoi(strings.Trim(head, "*\r\n"))
	args := make([]string, n)
	for i := range args {
		if head, err = r.ReadString('\n'); err != nil {
			return nil, err
		}
		size, _ := strconv.Atoi(strings.Trim(head, "$\r\n"))
		word := make([]byte, size+2)
		if _, err = io.ReadFull(r, word); err != nil {
			return nil, err
		}
		args[i] = string(word[:size])
	}
	return args, nil
}

// value is one answer of RESP2, read by the letter: int64, string, error, nil or
// []any. ok says that it is one, and whole.
func value(b []byte) (v any, rest []byte, ok bool) {
	head, rest, ok := bytes.Cut(b, []byte("\r\n"))
	if !ok || len(head) == 0 || bytes.ContainsAny(head, "\r\n") {
		return nil, nil, false
	}
	text := string(head[1:])
	n, err := strconv.ParseInt(text, 10, 64)
	switch head[0] {
	case '+':
		return text, rest, true
	case '-':
		return errors.New(text), rest, true
	case ':':
		return n, rest, err == nil && strconv.FormatInt(n, 10) == text
	case '$':
		if text == "-1" {
			return nil, rest, true
		}
		if err != nil || n < 0 || int64(len(rest)) < n+2 || string(rest[n:n+2]) != "\r\n" {
			return nil, nil, false
		}
		return string(rest[:n]), rest[n+2:], true
	case '*':
		if text == "-1" {
			return nil, rest, true
		}
		if err != nil || n < 0 || n > 64 {
			return nil, nil, false
		}
		all := []any{}
		for range n {
			if v, rest, ok = value(rest); !ok {
				return nil, nil, false
			}
			all = append(all, v)
		}
		return all, rest, true
	}
	return nil, nil, false
}

// Whatever a server answers: granted, held, lost and released are what it said in
// so many words, and anything else is an unknown outcome.
func FuzzReplies(f *testing.F) {
	for _, s := range []string{
		"*4\r\n:1\r\n$16\r\n1795000000123456\r\n$16\r\n1795000000123456\r\n$16\r\n1795000000123400\r\n", "*4\r\n:1\r\n$1\r\n5\r\n$1\r\n9\r\n$1\r\n6\r\n",
		"*3\r\n:1\r\n$1\r\n5\r\n$1\r\n9\r\n", "*4\r\n:0\r\n$1\r\n5\r\n:100\r\n$16\r\n1795000000123456\r\n",
		"*4\r\n:0\r\n$1\r\n5\r\n:9223372036854775807\r\n$16\r\n1795000000123456\r\n", "*4\r\n:0\r\n$1\r\n5\r\n:-9223372036854775808\r\n$1\r\n1\r\n",
		"*4\r\n:1\r\n$1\r\n0\r\n$1\r\n1\r\n$1\r\n1\r\n", "*4\r\n:1\r\n$2\r\n-5\r\n$1\r\n1\r\n$1\r\n1\r\n", "*4\r\n:1\r\n$16\r\n9007199254740993\r\n$1\r\n1\r\n$1\r\n1\r\n",
		"*4\r\n:1\r\n:5\r\n:1\r\n$1\r\n1\r\n", "*3\r\n$1\r\n1\r\n$1\r\n5\r\n$1\r\n1\r\n", "*3\r\n:-1\r\n$1\r\n5\r\n$1\r\n1\r\n", "*3\r\n:7\r\n$1\r\n5\r\n$1\r\n1\r\n",
		"*4\r\n:1\r\n$2\r\n+5\r\n$1\r\n1\r\n$1\r\n1\r\n", "*2\r\n:1\r\n$1\r\n5\r\n", "*1\r\n:1\r\n", "*1\r\n:0\r\n", "*1\r\n:-1\r\n", "*1\r\n:-2\r\n", "*1\r\n:2\r\n",
		"*0\r\n", "*-1\r\n", "*1\r\n*0\r\n", "*1\r\n$-1\r\n", "*2\r\n:0\r\n:5\r\n", "*2\r\n:1\r\n:5\r\n", "$-1\r\n", ":1\r\n", ":0\r\n", "+OK\r\n", "+QUEUED\r\n",
		"$5\r\nowner\r\n", "-ERR x\r\n", "-NOSCRIPT x\r\n", "-NOPERM x\r\n", "-ERR unknown command\r\n", "-ERR syntax error\r\n", "-MOVED 1 h:1\r\n", "$0\r\n\r\n",
	} {
		f.Add([]byte(s), []byte(":0\r\n"))
		f.Add([]byte(s), []byte("-ERR unknown command\r\n"))
		f.Add([]byte(s), []byte("$-1\r\n"))
		f.Add([]byte(":1\r\n"), []byte(s))
	}
	f.Add([]byte("+0\r\n"), []byte("$1\r\n1\r\n"))
	f.Add([]byte("+0\r\n"), []byte(":1\r\n"))
	f.Fuzz(func(t *testing.T, answer, native []byte) {
		v, rest, ok := value(answer)
		own, more, whole := value(native)
		if !ok || !whole || len(rest)+len(more) > 0 {
			return // a broken answer ends the connection, in go-redis
		}
		for _, plain := range []bool{false, true} {
			said := said{v: v, plain: plain, native: !bytes.HasPrefix(native, []byte("-")), deleted: own == int64(1)}
			hear(t, liar{answer, native}, said)
		}
	})
}

// hear has each verb answered by l.
func hear(t *testing.T, l liar, s said) {
	client := goredis.NewClient(&goredis.Options{
		Dialer: l.dial, MaxRetries: -1, DialerRetries: 1, Protocol: 2, PoolSize: 1, ReadTimeout: time.Minute, ContextTimeoutEnabled: true,
	})
	defer client.Close()
	b, err := redis.New(client, &redis.Options{Plain: s.plain, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer closeWithin(t, b)
	for verb, call := range map[string]func(backend.Lease) error{
		"acquire": func(l backend.Lease) error {
			l.Token = 0
			got, err := b.Acquire(t.Context(), l)
			if fenced := got.Token >= 1 && got.Token <= backend.MaxToken; err == nil && fenced == s.plain {
				t.Errorf("%q: granted with token %d", l.Key, got.Token)
			}
			return err
		},
		"renew":   func(l backend.Lease) error { return b.Renew(t.Context(), l) },
		"release": func(l backend.Lease) error { return b.Release(t.Context(), l) },
	} {
		err := call(backend.Lease{Key: verb, Owner: "owner", TTL: time.Second, Token: 1, Start: time.Now()})
		got := "unknown"
		var invalid *backend.InvalidError
		switch {
		case err == nil:
			got = "done"
		case errors.Is(err, backend.ErrHeld):
			got = "held"
		case errors.Is(err, backend.ErrLost):
			got = "lost"
		case errors.As(err, &invalid):
			got = "invalid"
		}
		if want := s.means(verb); !slices.Contains(want, got) {
			t.Errorf("%s, plain: %v, after %q and %q: %s (%v), want one of %q", verb, s.plain, l.native, l.answer, got, err, want)
		}
	}
}
