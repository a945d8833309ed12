package redis_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/backend/redis"
)

// Whatever a URL is, it makes a client that suits locks or an error that tells no
// password. (min_idle_conns would connect.)
func FuzzURL(f *testing.F) {
	const secret = "S3CRET"
	for _, s := range [][3]string{
		{"redis", "", "localhost:6379/0"}, {"rediss", "", "h"}, {"unix", "", "/run/redis.sock?db=1"}, {"redis+cluster", "", "a,b:1,[::1]:2"},
		{"rediss+cluster", "", "a/"}, {"redis+sentinel", "", "a,b/name/2"}, {"rediss+sentinel", "", "a:1/name?sentinel_username=x"},
		{"redis", "%zz", "h"}, {"redis", "/", "h"}, {"redis", "?", "h"}, {"redis", "#", "h"}, {"redis", "@", "h"}, {"http", "", "h"},
		{"redis", "", "h:99999"}, {"redis", "", "h/x"}, {"redis", "", "h?db=-1"}, {"redis", "", "h?pool_size=-3"}, {"redis", "", "h?protocol=9"},
		{"redis+cluster", "", "a,,b"}, {"redis+cluster", "", "a?pool_size=99999999999"}, {"redis+sentinel", "", "a"}, {"redis+sentinel", "", "a//"},
		{"redis", "", "h?max_retries=3&read_timeout=0"}, {"redis", "", "h?read_timeout=-1"}, {"", "", ""}, {"redis+", "", "h"}, {"+cluster", "", "h"},
		{"redis", "", "h?skip_verify=x"}, {"rediss", "", "h?skip_verify=true"}, {"redis", "\x00", "h"}, {"redis", "", "[::1"}, {"redis", "", "\n"},
		{"redis", ":?%", "0"}, {"redis+cluster", ":?", "h"}, {"redis+sentinel", "/x", "h/name"}, {"redis+cluster", ",b:1/", "h"},
	} {
		f.Add(s[0], s[1], s[2])
	}
	f.Fuzz(func(t *testing.T, scheme, more, rest string) {
		if strings.Contains(rest, "min_idle") || strings.Contains(rest, "%") {
			return
		}
		c, err := redis.ClientFor(scheme + "://u:" + secret + more + "@" + rest)
		if err != nil {
			if c != nil || strings.Contains(err.Error(), secret) {
				t.Errorf("client: %v, error: %v", c != nil, err)
			}
			return
		}
		defer c.Close()
		b, err := redis.New(c, nil)
		if err != nil || strings.Contains(b.Name(), secret) {
			t.Fatalf("%v, name %q", err, b.Name())
		}
		if c, ok := c.(*goredis.Client); ok {
			o := c.Options()
			asked := strings.Contains(rest, "max_retries") || strings.Contains(rest, "timeout")
			if o.Addr == "" || !o.ContextTimeoutEnabled || !asked && (o.DialTimeout == 0 || o.ReadTimeout == 0 || o.MaxRetries > 0) || o.TLSConfig == nil && scheme == "rediss" {
				t.Errorf("address %q, dial %v, read %v, context %v, retries %d, TLS %v", o.Addr, o.DialTimeout, o.ReadTimeout, o.ContextTimeoutEnabled, o.MaxRetries, o.TLSConfig != nil)
			}
		}
	})
}

// Whatever stands where a marker belongs, the node does not count before its time
// unless that is a marker, of this very process.
func FuzzMarker(f *testing.F) {
	server := time.UnixMicro(1_795_000_000_000_000)
	old := server.Add(-time.Hour)
	for _, s := range []string{
		"", " ", "r p b 0 0 30000", redis.Mark("r", "p", "b", old, old, 30*time.Second), redis.Mark("r", "p", "b", server, server, 30*time.Second),
		redis.Mark("x", "p", "b", old, old, time.Second), "r p b -1 0 30000", "r p b 0 0 -1", "r p b 0 0 9223372036854", "r p b 0 0 9223372036855",
		"r p b 0 0 18446744073710", "r p b 1 1 9223372036854775807", "r p b 9223372036854775807 1 1", "r p b 0 0 0", "r p b 0 0 1 1", "r  p\tb\n0 0 1",
		"r p b 00 0 86400000", "r p b 0 0 86400001", "\x00 \xff b 0 0 1", "r p b 1e9 0 1",
	} {
		f.Add(s, "")
		f.Add(s, "b")
	}
	f.Fuzz(func(t *testing.T, text, known string) {
		again, maxTTL := redis.ReadMarker(text)
		if twice, _ := redis.ReadMarker(again); twice != again && again != "   0 0 0" {
			t.Errorf("%q is read as %q, and that as %q", text, again, twice)
		}
		if maxTTL < 0 || maxTTL > backend.MaxTTL {
			t.Errorf("%q has a MaxTTL of %v", text, maxTTL)
		}
		s := redis.Sight{RunID: "r", ReplID: "p", Server: server, Local: server, Marker: text}
		m, left := redis.Judge(s, known, old, 30*time.Second)
		fields := strings.Fields(text)
		own := len(fields) == 6 && fields[0] == "r"
		if own {
			for _, n := range fields[3:] {
				v, err := strconv.ParseInt(n, 10, 64)
				own = own && err == nil && v >= 0
			}
		}
		if full := redis.Delay(30 * time.Second); left < full && !own || left > redis.Delay(backend.MaxTTL) || strings.Count(m, " ") != 5 {
			t.Errorf("%q: the node counts in %v, not %v, and gets the marker %q", text, left, full, m)
		}
	})
}

// Whatever INFO says, it is read line by line, and nothing in it ends a process.
func FuzzInfo(f *testing.F) {
	for _, s := range []string{
		"", "# Server\r\nredis_version:7.2.4\r\nrun_id:abc\r\nuptime_in_seconds:40\r\n", "run_id:\nrun_id:x", "xrun_id:x", "run_id", "run_id:a:b \n",
		"role:slave", "role:master\r\nmaxmemory:1\r\nmaxmemory_policy:allkeys-lru", "maxmemory:0\nmaxmemory_policy:allkeys-lru", "maxmemory:1",
		"uptime_in_seconds:9223372037", "uptime_in_seconds:-5", "uptime_in_seconds:18446744074", "uptime_in_seconds:x", "redis_version:6.2.1",
		"redis_version:.", "redis_version:..0", "redis_version:10.0", "master_replid2:0000", "master_replid2:0a0", "\x00\xff:\r\r\n\n:",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, info string) {
		lines := strings.FieldsFunc(info, func(r rune) bool { return r == '\n' })
		has := func(prefix string) (value string) {
			for _, l := range lines {
				if strings.HasPrefix(l, prefix) {
					return strings.TrimSpace(l[len(prefix):])
				}
			}
			return ""
		}
		runID, uptime, promoted, unfit := redis.ReadInfo(info)
		if runID != has("run_id:") || promoted != (strings.Trim(has("master_replid2:"), "0") != "") {
			t.Errorf("%q: run_id %q, promoted %v", info, runID, promoted)
		}
		seconds, err := strconv.ParseInt(has("uptime_in_seconds:"), 10, 64)
		if err == nil && (seconds > 0) != (uptime > 0) {
			t.Errorf("%q: an uptime of %v", info, uptime)
		}
		evicts := has("maxmemory:") != "" && has("maxmemory:") != "0" && has("maxmemory_policy:") != "noeviction"
		if (unfit != nil) != (evicts || has("role:") == "slave") {
			t.Errorf("%q: %v", info, unfit)
		}
		if v := has("redis_version:"); len(v) > 1 && v[1] == '.' && v[0] >= '0' && v[0] < '7' && redis.Old(info) == nil {
			t.Errorf("version %q may keep scripts over a restart, and is taken", v)
		}
	})
}
