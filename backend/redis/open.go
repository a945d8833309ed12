package redis

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"

	goredis "github.com/redis/go-redis/v9"

	"github.com/distmutex/distmutex/backend"
)

// Closer is a backend with connections of its own, which Close gives back.
type Closer interface {
	backend.Backend
	Close(ctx context.Context) error
}

// Open makes a client for each URL and a backend of them: a *Backend of one
// URL, a quorum of several. A URL is one of
//
//	redis://[user:password@]host[:port][/db]
//	unix://[user:password@]/path[?db=n]
//	redis+cluster://[user:password@]host[:port][,host[:port]…]
//	redis+sentinel://[user:password@]sentinel[:port][,sentinel[:port]…]/name[/db]
//
// with rediss in place of redis for TLS, and the options of goredis.ParseURL,
// ParseClusterURL or ParseFailoverURL. TLS verifies each server by the name it
// is dialed by, against the system's authorities; for others, or a certificate
// of the client's own, make the client yourself. User and password are those of
// the servers that keep the locks; sentinels that want some get
// ?sentinel_username=… and &sentinel_password=….
//
// A cluster, or a primary behind sentinels, is one node, and a weaker one than
// it may seem: a failover can forget locks that were granted.
//
// Each server is asked, until ctx ends, who it is. One that refuses us, can't
// prove its name or is a replica is an error, and in a quorum one that evicts keys. One that can't be
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
	b.advised.Store(true)
	err := b.fit(ctx) // not the guard's: it leaves a marker, and DeclareNew is to come before
	var answer goredis.Error
	var certificate *tls.CertificateVerificationError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &certificate):
		return err
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

func closeAll(clients []goredis.UniversalClient) error {
	var errs []error
	for _, c := range clients {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}
