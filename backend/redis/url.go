package redis

import (
	"cmp"
	"crypto/tls"
	"errors"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Time-outs of the clients that Open makes. A script takes far less than a
// millisecond; what takes this long has gone wrong.
const (
	dialTimeout = time.Second
	readTimeout = time.Second

	// redirects is how often a cluster is asked again that is moving the key, in
	// somewhat less than a second.
	redirects = 5
)

// What is wrong with a URL, in sentences without any part of it, since a
// password may stand, or seem to stand, anywhere in it.
var (
	errNoURL     = errors.New("is not a URL of a server (special characters of a password are written %XX)")
	errScheme    = errors.New("does not begin with redis://, rediss://, unix://, or redis or rediss with +cluster:// or +sentinel://")
	errOption    = errors.New("has a path, a database or an option that goredis does not take")
	errHosts     = errors.New("has a list of hosts that is none: it is host:port,host:port and so on")
	errPrimary   = errors.New("does not name a primary: it ends with /name or /name/db")
	errMisplaced = errors.New("has an option that leads to replicas, or a second way to say what stands elsewhere in it")
)

// noNotices spares each connection a request that only a managed service answers.
func noNotices() *maintnotifications.Config {
	return &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
}

// clientFor makes a client with settings that suit locks, where the URL has
// none of its own.
func clientFor(rawURL string) (c goredis.UniversalClient, err error) {
	defer func() {
		if recover() != nil { // go-redis panics at options that are out of bounds
			c, err = nil, errOption
		}
	}()
	scheme, rest, ok := strings.Cut(rawURL, "://")
	scheme, kind, _ := strings.Cut(scheme, "+")
	switch {
	case !ok:
		return nil, errNoURL
	case scheme+kind == "unix":
		return serverFor(rawURL)
	case scheme != "redis" && scheme != "rediss":
		return nil, errScheme
	case kind == "":
		return serverFor(rawURL)
	case kind == "cluster":
		return clusterFor(scheme, rest)
	case kind == "sentinel":
		return primaryFor(scheme, rest)
	}
	return nil, errScheme
}

func serverFor(rawURL string) (goredis.UniversalClient, error) {
	u, err := url.Parse(rawURL)
	if err != nil || u.Opaque != "" || u.Fragment != "" || misread(u, rawURL) {
		return nil, errNoURL
	}
	o, err := goredis.ParseURL(rawURL)
	if err != nil {
		return nil, errOption
	}
	if !u.Query().Has("max_retries") {
		o.MaxRetries = -1 // who asked decides whether to ask again
	}
	o.DialerRetries, o.ContextTimeoutEnabled = 1, true
	suit(&o.DialTimeout, &o.ReadTimeout)
	o.MaintNotificationsConfig = noNotices()
	return goredis.NewClient(o), nil
}

// misread says whether a password was taken for a host, or a part of it: an @
// stands behind a character that ends the host, or the host has a colon and is
// no IPv6 address in brackets. Hosts are in names and errors.
func misread(u *url.URL, raw string) bool {
	cut := u.User == nil && u.Scheme != "unix" && strings.Contains(raw, "@")
	return cut || strings.Contains(u.Hostname(), ":") && !strings.HasPrefix(u.Host, "[")
}

// suit fills in the time-outs that a URL does not set.
func suit(dial, read *time.Duration) {
	if *dial == 0 {
		*dial = dialTimeout
	}
	if *read == 0 {
		*read = readTimeout
	}
}

func clusterFor(scheme, rest string) (goredis.UniversalClient, error) {
	u, err := several(scheme, rest, "6379")
	switch {
	case err != nil:
		return nil, err
	case u.Path != "" && u.Path != "/":
		return nil, errOption
	}
	o, err := goredis.ParseClusterURL(u.String())
	if err != nil {
		return nil, errOption
	}
	if !u.Query().Has("max_redirects") {
		o.MaxRedirects = redirects
	}
	o.DialerRetries, o.ContextTimeoutEnabled = 1, true
	suit(&o.DialTimeout, &o.ReadTimeout)
	o.TLSConfig = anyHost(o.TLSConfig)
	o.MaintNotificationsConfig = noNotices()
	return goredis.NewClusterClient(o), nil
}

func primaryFor(scheme, rest string) (goredis.UniversalClient, error) {
	u, err := several(scheme, rest, "26379")
	if err != nil {
		return nil, err
	}
	name, db, hasDB := strings.Cut(strings.TrimPrefix(u.Path, "/"), "/")
	if name == "" || hasDB && db == "" || strings.ContainsAny(name+db, "@:/") {
		return nil, errPrimary
	}
	user, q := u.User, u.Query()
	sentinelUser, sentinelPassword := q.Get("sentinel_username"), q.Get("sentinel_password")
	q.Del("sentinel_username")
	q.Del("sentinel_password")
	q.Set("master_name", name)
	u.User, u.Path, u.RawQuery = nil, "/"+db, q.Encode()
	o, err := goredis.ParseFailoverURL(u.String())
	if err != nil {
		return nil, errOption
	}
	o.SentinelUsername, o.SentinelPassword = sentinelUser, sentinelPassword
	o.Username = user.Username()
	o.Password, _ = user.Password()
	if !q.Has("max_retries") {
		o.MaxRetries = -1
	}
	o.DialerRetries, o.ContextTimeoutEnabled = 1, true
	suit(&o.DialTimeout, &o.ReadTimeout)
	o.TLSConfig = anyHost(o.TLSConfig)
	return failover{goredis.NewFailoverClient(o), name + " behind " + strings.Join(o.SentinelAddrs, ",")}, nil
}

// several reads what follows the scheme of a URL with a list of hosts. In the URL
// returned, all but the first are options, as go-redis has it.
func several(scheme, rest, port string) (*url.URL, error) {
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	at := strings.LastIndexByte(rest[:end], '@') + 1
	var addrs []string
	for h := range strings.SplitSeq(rest[at:end], ",") {
		u, err := url.Parse("redis://" + h)
		if err != nil || u.Hostname() == "" || misread(u, h) {
			return nil, errHosts
		}
		p := u.Port()
		if p == "" {
			p = port
		}
		addrs = append(addrs, net.JoinHostPort(u.Hostname(), p))
	}
	u, err := url.Parse(scheme + "://" + rest[:at] + addrs[0] + rest[end:])
	if err != nil || u.Fragment != "" || misread(u, rest) {
		return nil, errNoURL
	}
	q := u.Query()
	for _, k := range []string{
		"addr", "db", "master_name", "username", "password",
		"read_only", "replica_only", "route_by_latency", "route_randomly", "use_disconnected_replicas",
	} {
		if q.Has(k) {
			return nil, errMisplaced
		}
	}
	for _, k := range []string{"pool_size", "pipeline_pool_size", "min_idle_conns", "max_idle_conns", "max_active_conns"} {
		if n, err := strconv.ParseInt(cmp.Or(q.Get(k), "0"), 10, 32); err != nil || n < -1 {
			return nil, errOption // go-redis panics, some of it when it connects
		}
	}
	q["addr"] = addrs[1:]
	u.RawQuery = q.Encode()
	return u, nil
}

// anyHost verifies each server by the name that it is dialed by, not all by the
// first one's.
func anyHost(c *tls.Config) *tls.Config {
	if c != nil {
		c.ServerName, c.MinVersion = "", tls.VersionTLS12
	}
	return c
}
