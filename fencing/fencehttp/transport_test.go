package fencehttp_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/fencing"
	"github.com/distmutex/distmutex/fencing/fencehttp"
)

// roundTripper is an http.RoundTripper.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// request is a PUT whose context has a token, if that is not zero.
func request(t *testing.T, url string, token fencing.Token, body io.Reader) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(fencing.NewContext(t.Context(), token), http.MethodPut, url, body)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestTransportSendsTheTokenOfTheContext(t *testing.T) {
	var sent *http.Request
	c := fencehttp.Transport{Base: roundTripper(func(r *http.Request) (*http.Response, error) {
		sent = r
		return &http.Response{}, nil
	})}
	for _, s := range []struct {
		token        fencing.Token
		before, want string
	}{{34, "", "34"}, {backend.MaxToken, "", "9007199254740992"}, {34, "7", "34"}, {0, "", ""}, {0, "7", "7"}} {
		r := request(t, "http://object.test/a", s.token, nil)
		if s.before != "" {
			r.Header.Set(fencehttp.Header, s.before)
		}
		if _, err := c.RoundTrip(r); err != nil {
			t.Fatal(err)
		}
		if got := sent.Header.Get(fencehttp.Header); got != s.want {
			t.Errorf("token %d over header %q: sent %q, want %q", s.token, s.before, got, s.want)
		}
		if got := r.Header.Get(fencehttp.Header); got != s.before {
			t.Errorf("the caller's request was changed: %q, want %q", got, s.before)
		}
	}
}

type body struct {
	io.Reader
	closed bool
}

func (b *body) Close() error { b.closed = true; return nil }

func TestTransportSendsNoTokenThatIsNone(t *testing.T) {
	c := fencehttp.Transport{Base: roundTripper(func(r *http.Request) (*http.Response, error) {
		t.Errorf("sent with %q", r.Header)
		return &http.Response{}, nil
	})}
	for _, token := range []fencing.Token{-1, backend.MaxToken + 1} {
		b := &body{Reader: strings.NewReader("text")}
		var invalid *backend.InvalidError
		if _, err := c.RoundTrip(request(t, "http://object.test/a", token, b)); !errors.As(err, &invalid) || !b.closed {
			t.Errorf("token %d: %v, body closed: %v; want an InvalidError and a closed body", token, err, b.closed)
		}
		if _, err := c.RoundTrip(request(t, "http://object.test/a", token, nil)); !errors.As(err, &invalid) {
			t.Errorf("token %d without a body: %v, want an InvalidError", token, err)
		}
	}
}

func TestZeroTransportSends(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, r.Header.Get(fencehttp.Header))
	}))
	defer s.Close()
	resp, err := (&http.Client{Transport: &fencehttp.Transport{}}).Do(request(t, s.URL, 34, nil))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if got, _ := io.ReadAll(resp.Body); string(got) != "34" {
		t.Errorf("the server got %q, want 34", got)
	}
}

func TestStaleKnowsOurRefusalsFromOthers(t *testing.T) {
	sent := &http.Request{Header: header("33")}
	for _, c := range []struct {
		name string
		resp http.Response
		want *fencing.StaleError
	}{
		{"ours", http.Response{StatusCode: 412, Header: header("34"), Request: sent}, &fencing.StaleError{Token: 33, Seen: 34}},
		{"without its request", http.Response{StatusCode: 412, Header: header("34")}, &fencing.StaleError{Seen: 34}},
		{"another condition", http.Response{StatusCode: 412, Request: sent}, nil},
		{"no token", http.Response{StatusCode: 412, Header: header("many"), Request: sent}, nil},
		{"no refusal", http.Response{StatusCode: 200, Header: header("34"), Request: sent}, nil},
	} {
		err := fencehttp.Stale(&c.resp)
		var got *fencing.StaleError
		switch {
		case c.want == nil && err != nil:
			t.Errorf("%s: %v, want nil", c.name, err)
		case c.want != nil && (!errors.As(err, &got) || *got != *c.want || !errors.Is(err, fencing.ErrStale)):
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
}
