package redis

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/distmutex/distmutex/backend"
)

// Closer is a backend with connections of its own, which Close gives back.
type Closer interface {
	backend.Backend
	Close(ctx context.Context) error
}

// Time-outs of the clients that Open makes. A script takes far less than a
// millisecond; what takes this long has gone wrong.
const (
	dialTimeout = time.Second
	readTimeout = time.Second
)

// Open makes a client for each URL and a backend of them: a *Backend of one
// URL, a quorum of several. A URL is redis://[user:password@]host[:port][/db],
// rediss:// for TLS, or unix://[user:password@]/path[?db=n], with the options
// of goredis.ParseURL.
//
// Each server is asked, until ctx ends, who it is. One that refuses us or is a
// replica is an error, and in a quorum one that evicts keys. One that can't be
// reached is not: it may be back by the time that it is needed.
//
// No URL or a wrong one is a *backend.InvalidError. No error holds a password.
func Open(ctx context.Context, o *Options, urls ...string) (Closer, error) {
	clients, err := clientsFor(urls)
	if err != nil {
		return nil, err
	}
	var b Closer
	if len(clients) == 1 {
		b, err = openOne(ctx, clients[0], o)
	} else {
		b, err = openQuorum(ctx, clients, o)
	}
	if err != nil {
		return nil, errors.Join(err, closeAll(clients))
	}
	return b, nil
}

// openOne makes a backend of a client of ours.
func openOne(ctx context.Context, client goredis.UniversalClient, o *Options) (*Backend, error) {
	b, err := New(client, o)
	if err != nil {
		return nil, err
	}
	b.owned = true
	err = b.greet(ctx)
	if errors.Is(err, errEviction) {
		b.warn(ctx, err)
		err = nil
	}
	return b, err
}

// greet reports what the server itself says against being used.
func (b *Backend) greet(ctx context.Context) error {
	_, err := b.Identity(ctx)
	var answer goredis.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &answer) && !goredis.HasErrorPrefix(err, "LOADING"), errors.Is(err, errReplica), errors.Is(err, errEviction):
		return err
	}
	b.warn(ctx, err)
	return nil
}

func clientsFor(urls []string) ([]goredis.UniversalClient, error) {
	if len(urls) == 0 {
		return nil, &backend.InvalidError{Field: "urls", Reason: "is empty"}
	}
	var clients []goredis.UniversalClient
	for i, u := range urls {
		c, err := clientFor(u)
		if err != nil {
			return nil, errors.Join(&backend.InvalidError{Field: fmt.Sprintf("urls[%d]", i), Reason: err.Error()}, closeAll(clients))
		}
		clients = append(clients, c)
	}
	return clients, nil
}

// clientFor makes a client with settings that suit locks, where the URL has
// none of its own. Its errors are sentences without any part of the URL, since
// a password may stand, or seem to stand, anywhere in it.
func clientFor(rawURL string) (*goredis.Client, error) {
	u, err := url.Parse(rawURL)
	switch {
	case err != nil, u.Opaque != "", u.Fragment != "":
		return nil, errors.New("is not a URL of a server (special characters of a password are written %XX)")
	case u.Scheme != "redis" && u.Scheme != "rediss" && u.Scheme != "unix":
		return nil, errors.New("does not begin with redis://, rediss:// or unix://")
	}
	o, err := goredis.ParseURL(rawURL)
	if err != nil {
		return nil, errors.New("has a path, a database or an option that goredis.ParseURL does not take")
	}
	if !u.Query().Has("max_retries") {
		o.MaxRetries = -1 // who asked decides whether to ask again
	}
	o.DialerRetries = 1
	o.ContextTimeoutEnabled = true
	if o.DialTimeout == 0 {
		o.DialTimeout = dialTimeout
	}
	if o.ReadTimeout == 0 {
		o.ReadTimeout = readTimeout
	}
	return goredis.NewClient(o), nil
}

func closeAll(clients []goredis.UniversalClient) error {
	var errs []error
	for _, c := range clients {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}
