package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/distmutex/distmutex/internal/redistest"
)

// host is a server and its folder.
type host struct {
	*redistest.Server
	dir string
}

// newHost starts a server that writes down what it does, so that it comes back
// with its data when it was killed. Only processes end here, not the machine, so
// it does not wait for the disk.
func newHost(tb testing.TB, f redistest.Flavour, dir string) *host {
	tb.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		tb.Fatal(err)
	}
	s := redistest.StartClocked(tb, f, 1, "--dir", dir, "--appendonly", "yes", "--appendfsync", "no",
		"--auto-aof-rewrite-min-size", "1mb", "--busy-reply-threshold", "20", "--repl-diskless-sync-delay", "0", "--repl-timeout", "5")[0]
	return &host{Server: s, dir: dir}
}

const (
	data  = "appendonlydir"
	older = "older"
)

// wipe deletes what is on the disk of a server that is down.
func (h *host) wipe() error { return os.RemoveAll(filepath.Join(h.dir, data)) }

// copyData keeps what the server has written so far. It does not tidy up its
// files meanwhile, nor from then on, until it is started again.
func (h *host) copyData() error {
	if err := h.do("config", "set", "auto-aof-rewrite-percentage", 0); err != nil {
		return err
	}
	for tidying := true; tidying; {
		info, err := ask(h, func(ctx context.Context, c *goredis.Client) (string, error) {
			return c.Info(ctx, "persistence").Result()
		})
		if err != nil {
			return err
		}
		tidying = !strings.Contains(info, "aof_rewrite_in_progress:0") || !strings.Contains(info, "aof_rewrite_scheduled:0")
		time.Sleep(10 * time.Millisecond)
	}
	if err := os.RemoveAll(filepath.Join(h.dir, older)); err != nil {
		return err
	}
	return os.CopyFS(filepath.Join(h.dir, older), os.DirFS(filepath.Join(h.dir, data)))
}

// putBack replaces the data of a server that is down with what was kept.
func (h *host) putBack() error {
	return errors.Join(h.wipe(), os.Rename(filepath.Join(h.dir, older), filepath.Join(h.dir, data)))
}

// do sends a command directly, with no faults on its way but the server's own.
func (h *host) do(args ...any) error {
	_, err := ask(h, func(ctx context.Context, c *goredis.Client) (any, error) { return c.Do(ctx, args...).Result() })
	if err != nil && !errors.Is(err, goredis.Nil) {
		return fmt.Errorf("%v: %w", args[0], err)
	}
	return nil
}

// insist is do until it works.
func (h *host) insist(args ...any) {
	for h.do(args...) != nil {
		time.Sleep(10 * time.Millisecond)
	}
}

// ask has f use a connection to the server.
func ask[T any](h *host, f func(context.Context, *goredis.Client) (T, error)) (T, error) {
	c := goredis.NewClient(&goredis.Options{Addr: h.Addr, MaxRetries: -1, DisableIdentity: true})
	defer c.Close()
	return f(context.Background(), c)
}

// follow makes the server a copy of another, as it is now.
func (h *host) follow(primary *host) error {
	ip, port, _ := strings.Cut(primary.Addr, ":")
	if err := h.do("replicaof", ip, port); err != nil {
		return err
	}
	for range 500 {
		info, err := ask(h, func(ctx context.Context, c *goredis.Client) (string, error) {
			return c.Info(ctx, "replication").Result()
		})
		if err == nil && strings.Contains(info, "master_link_status:up") {
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return errors.New("the copy did not come")
}

// lead ends follow: the server keeps what it has, and takes writes.
func (h *host) lead() error { return h.do("replicaof", "no", "one") }
