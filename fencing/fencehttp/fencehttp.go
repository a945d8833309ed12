// Package fencehttp fences resources behind HTTP: [Transport] sends the token of
// a request's context along, and [Handler] refuses a request whose token is
// smaller than one it has seen.
//
// The token travels in the header Fencing-Token, in decimal. (It is no Integer
// of RFC 9651: those have 15 digits at most, and tokens drawn from clocks 16.)
package fencehttp

import (
	"fmt"
	"net/http"
	"strconv"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/fencing"
)

// Header names the token in a request, and in a 412 answer the largest token
// seen.
const Header = "Fencing-Token"

// Parse reads the token in h: 0 if there is none. Anything but one positive
// decimal number up to backend.MaxToken, without sign, space or leading zero, is
// a *backend.InvalidError.
func Parse(h http.Header) (fencing.Token, error) {
	values := h.Values(Header)
	switch len(values) {
	case 0:
		return 0, nil
	case 1:
		return parse(values[0])
	}
	return 0, invalid("was sent %d times", len(values))
}

func parse(s string) (fencing.Token, error) {
	// Of what ParseInt takes, this leaves the one way to write a positive number.
	if s == "" || s[0] < '1' || s[0] > '9' {
		return 0, invalid("is %.20q, not a positive decimal number", s)
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || fencing.Token(n) > backend.MaxToken {
		return 0, invalid("is %.20q, not a decimal number up to 2^53", s)
	}
	return fencing.Token(n), nil
}

func invalid(format string, args ...any) error {
	return &backend.InvalidError{Field: Header, Reason: fmt.Sprintf(format, args...)}
}

// Transport is an http.RoundTripper that sends the token of a request's context
// (fencing.NewContext) in its header, in place of any that is there. A request
// whose context has none is sent as it is. The zero Transport is ready.
type Transport struct {
	// Base sends the requests. Nil means http.DefaultTransport.
	Base http.RoundTripper
}

// RoundTrip sends a copy of r with the token. A token that no resource would
// take is a *backend.InvalidError; nothing is sent then.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	base := t.Base
	if base == nil {
		base = http.DefaultTransport
	}
	token, ok := fencing.FromContext(r.Context())
	if !ok {
		return base.RoundTrip(r)
	}
	if token < 0 || token > backend.MaxToken {
		if r.Body != nil {
			r.Body.Close() // as every RoundTripper must
		}
		return nil, invalid("is %d, not in 1 to 2^53", token)
	}
	r = r.Clone(r.Context()) // a RoundTripper must leave its caller's request alone
	r.Header.Set(Header, strconv.FormatInt(int64(token), 10))
	return base.RoundTrip(r)
}

// Stale returns the *fencing.StaleError of which resp tells, and nil if it is
// anything but the refusal of a stale token: a 412 without our header may be of
// another condition, such as If-Match.
func Stale(resp *http.Response) error {
	if resp.StatusCode != http.StatusPreconditionFailed {
		return nil
	}
	seen, err := Parse(resp.Header)
	if err != nil || seen == 0 {
		return nil
	}
	e := &fencing.StaleError{Seen: seen}
	if resp.Request != nil {
		e.Token, _ = Parse(resp.Request.Header)
	}
	return e
}
