package redistest_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/distmutex/distmutex/internal/redistest"
	goredis "github.com/redis/go-redis/v9"
)

func TestServersStartEmptyAndApart(t *testing.T) {
	redistest.Each(t, func(t *testing.T, f redistest.Flavour) {
		servers := redistest.Start(t, f, 3)
		seen := map[string]bool{}
		for i, s := range servers {
			c := s.Client()
			if n := c.DBSize(t.Context()).Val(); n != 0 {
				t.Errorf("server %d starts with %d keys", i, n)
			}
			set(t, c, "k", strconv.Itoa(i))
			seen[s.Addr] = true
		}
		for i, s := range servers {
			if got := get(t, s.Client(), "k"); got != strconv.Itoa(i) {
				t.Errorf("server %d: got %q", i, got)
			}
		}
		if len(seen) != 3 {
			t.Errorf("addresses are not distinct: %v", redistest.Addrs(servers))
		}
	})
}

func TestServerIsOfTheFlavour(t *testing.T) {
	redistest.Each(t, func(t *testing.T, f redistest.Flavour) {
		redistest.NeedsReal(t, f)
		c := redistest.Start(t, f, 1)[0].Client()
		set(t, c, "k", "v")
		native := map[redistest.Flavour][]any{
			redistest.Redis8:  {"DELEX", "k", "IFEQ", "v"},
			redistest.Valkey9: {"DELIFEQ", "k", "v"},
		}
		for of, cmd := range native {
			if err := c.Do(t.Context(), cmd...).Err(); (err == nil) != (of == f) {
				t.Errorf("%v: %v", cmd, err)
			}
		}
	})
}

func TestKeysExpireByThemselves(t *testing.T) {
	redistest.Each(t, func(t *testing.T, f redistest.Flavour) {
		c := redistest.Start(t, f, 1)[0].Client()
		if err := c.Set(t.Context(), "k", "v", 20*time.Millisecond).Err(); err != nil {
			t.Fatal(err)
		}
		for get(t, c, "k") != "" {
			time.Sleep(time.Millisecond)
		}
	})
}

func TestWipeDeletesAllKeys(t *testing.T) {
	redistest.Each(t, func(t *testing.T, f redistest.Flavour) {
		s := redistest.Start(t, f, 1)[0]
		set(t, s.Client(), "k", "v")
		s.Wipe()
		if got := get(t, s.Client(), "k"); got != "" {
			t.Errorf("got %q after a wipe", got)
		}
	})
}

func TestKillAndRestartAtTheSameAddress(t *testing.T) {
	redistest.Each(t, func(t *testing.T, f redistest.Flavour) {
		redistest.NeedsControl(t, f)
		plain := redistest.Start(t, f, 1)[0]
		durable := redistest.Start(t, f, 1, redistest.Durable()...)[0]
		for _, tt := range []struct {
			s    *redistest.Server
			want string
		}{{plain, ""}, {durable, "v"}} {
			c := tt.s.Client()
			set(t, c, "k", "v")
			tt.s.Kill()
			tt.s.Kill() // of one that is down: nothing
			if err := c.Ping(t.Context()).Err(); err == nil {
				t.Error("a killed server answers")
			}
			tt.s.Restart()
			if got := get(t, c, "k"); got != tt.want {
				t.Errorf("after a restart: got %q, want %q", got, tt.want)
			}
			tt.s.Stop()
			if err := c.Ping(t.Context()).Err(); err == nil {
				t.Error("a stopped server answers")
			}
		}
	})
}

func TestFrozenServerTakesConnectionsAndAnswersNothing(t *testing.T) {
	redistest.Each(t, func(t *testing.T, f redistest.Flavour) {
		redistest.NeedsControl(t, f)
		s := redistest.Start(t, f, 1)[0]
		c := s.Client()
		set(t, c, "k", "v")
		s.Freeze()
		conn, err := net.Dial("tcp", s.Addr)
		if err != nil {
			t.Fatalf("a frozen server refuses: %v", err)
		}
		defer conn.Close()
		silent(t, c)
		s.Thaw()
		if got := get(t, c, "k"); got != "v" {
			t.Errorf("after thaw: got %q", got)
		}
		s.Freeze()
		s.Stop() // thaws first
	})
}

// A test that was killed itself must not leave servers behind.
func TestServersDieWithTheProcess(t *testing.T) {
	if os.Getenv("REDISTEST_CHILD") != "" {
		for _, s := range redistest.Start(t, redistest.Flavours()[0], 2) {
			s.Freeze()
			fmt.Printf("addr=%s\n", s.Addr)
		}
		self, _ := os.FindProcess(os.Getpid())
		self.Kill()
		select {}
	}
	redistest.NeedsControl(t, redistest.Flavours()[0])
	cmd := exec.Command(os.Args[0], "-test.run=^TestServersDieWithTheProcess$")
	cmd.Env = append(os.Environ(), "REDISTEST_CHILD=1")
	var out bytes.Buffer
	cmd.Stdout = &out
	if err := cmd.Run(); err == nil {
		t.Fatal("the child was to die")
	}
	found := regexp.MustCompile(`addr=(\S+)`).FindAllStringSubmatch(out.String(), -1)
	if len(found) != 2 {
		t.Fatalf("the child started %d servers:\n%s", len(found), out.String())
	}
	for _, m := range found {
		for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
			c, err := net.Dial("tcp", m[1])
			if err != nil {
				break
			}
			c.Close()
			if time.Now().After(deadline) {
				t.Fatalf("the server at %s outlived its test", m[1])
			}
		}
	}
}

func set(t *testing.T, c *goredis.Client, key, value string) {
	t.Helper()
	if err := c.Set(t.Context(), key, value, 0).Err(); err != nil {
		t.Fatal(err)
	}
}

func get(t *testing.T, c *goredis.Client, key string) string {
	t.Helper()
	v, err := c.Get(t.Context(), key).Result()
	if err != nil && !errors.Is(err, goredis.Nil) {
		t.Fatal(err)
	}
	return v
}

// silent checks that a request gets no answer. It waits a moment; a machine that
// is slow makes it pass, never fail.
func silent(t *testing.T, c *goredis.Client) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err := c.Ping(ctx).Err()
	var ne net.Error
	if !errors.Is(err, context.DeadlineExceeded) && !(errors.As(err, &ne) && ne.Timeout()) {
		t.Errorf("a silent server: got %v, want a time-out", err)
	}
}

// The script and this package must mean the same folder.
func TestScriptFillsTheFolderThatIsLookedAt(t *testing.T) {
	script, err := os.ReadFile("../../scripts/servers.sh")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(script), "/distmutex/servers-1") {
		t.Error("scripts/servers.sh uses another folder than find.go")
	}
}

func TestScriptsRunBesideOtherCommands(t *testing.T) {
	redistest.Each(t, func(t *testing.T, f redistest.Flavour) {
		s := redistest.Start(t, f, 1)[0]
		var wg sync.WaitGroup
		for range 4 {
			c := s.Client()
			wg.Go(func() {
				for range 50 {
					const script = `redis.call('INCR', 'n') return redis.call('PEXPIRE', 'n', 60000)`
					if err := c.Eval(t.Context(), script, []string{"n"}).Err(); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		if got := get(t, s.Client(), "n"); got != "200" {
			t.Errorf("got %s, want 200", got)
		}
	})
}

// A stalled machine must not make keys expire before their time, which a server
// counts in whole milliseconds: its cleaning takes a key in the one it ends in.
func TestKeysLastTheirWholeTerm(t *testing.T) {
	redistest.Each(t, func(t *testing.T, f redistest.Flavour) {
		s := redistest.Start(t, f, 1)[0]
		c, other := s.Client(), s.Client()
		for range 20 {
			const term = 20 * time.Millisecond
			sent := time.Now()
			if err := c.Set(t.Context(), "k", "v", term).Err(); err != nil {
				t.Fatal(err)
			}
			for get(t, other, "k") != "" {
				time.Sleep(time.Millisecond)
			}
			if lasted := time.Since(sent); lasted < term-time.Millisecond {
				t.Errorf("a key set for %v was gone after %v", term, lasted)
			}
		}
	})
}
