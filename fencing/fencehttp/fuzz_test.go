package fencehttp_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/distmutex/distmutex/fencing"
	"github.com/distmutex/distmutex/fencing/fencehttp"
)

// Whatever header a request comes with, the handler writes for the one spelling
// of a token that is not stale alone, and the client knows a refusal for what it is.
func FuzzHandler(f *testing.F) {
	for _, s := range []string{"", "5", "4", "6", "05", "5,6", "5\n6", "5 ", "+6", "9007199254740992", "9007199254740993", "-1", "6\x00", "\xff"} {
		f.Add(s, int64(5))
	}
	f.Add("6\n6", int64(1))
	f.Add("1", int64(9007199254740992))
	f.Fuzz(func(t *testing.T, lines string, seen int64) {
		o := new(object)
		if o.gate.Admit(fencing.Token(seen)) != nil {
			seen = 0
		}
		values := strings.Split(lines, "\n")
		if lines == "" {
			values = nil
		}
		resp := serve(fencehttp.Handler(o.choose, o, nil), http.MethodPut, strings.NewReader("new"), values...)

		var token int64
		want := http.StatusBadRequest
		switch len(values) {
		case 0:
			want = http.StatusPreconditionRequired
		case 1:
			n, err := strconv.ParseInt(values[0], 10, 64)
			switch {
			case err != nil || n < 1 || n > 1<<53 || strconv.FormatInt(n, 10) != values[0]:
			case n < seen:
				want, token = http.StatusPreconditionFailed, n
			default:
				want, token = http.StatusOK, n
			}
		}
		if resp.StatusCode != want || (o.puts == 1) != (want == http.StatusOK) || o.puts == 1 && int64(o.token) != token {
			t.Errorf("tokens %q after %d: got %s and %d writes with %d, want status %d", values, seen, resp.Status, o.puts, o.token, want)
		}
		resp.Request = httptest.NewRequest(http.MethodPut, "/", nil)
		resp.Request.Header[fencehttp.Header] = values
		var stale *fencing.StaleError
		switch err := fencehttp.Stale(resp); {
		case errors.As(err, &stale) != (want == http.StatusPreconditionFailed && seen <= 1<<53):
			t.Errorf("tokens %q after %d: the client takes %s for %v", values, seen, resp.Status, err)
		case stale != nil && (int64(stale.Token) != token || int64(stale.Seen) != seen):
			t.Errorf("token %d after %d: the client reads %d after %d", token, seen, stale.Token, stale.Seen)
		}
	})
}

// A transport sends a token so that Parse reads it back, or nothing.
func FuzzTransport(f *testing.F) {
	for _, n := range []int64{0, 1, -1, 1 << 53, 1<<53 + 1, -9223372036854775808, 9223372036854775807} {
		f.Add(n, "7")
	}
	f.Fuzz(func(t *testing.T, n int64, before string) {
		var sent http.Header
		tr := &fencehttp.Transport{Base: roundTripper(func(r *http.Request) (*http.Response, error) {
			sent = r.Header
			return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
		})}
		r := httptest.NewRequest(http.MethodPut, "/", nil)
		r.Header.Set(fencehttp.Header, before)
		_, err := tr.RoundTrip(r.WithContext(fencing.NewContext(r.Context(), fencing.Token(n))))
		switch good := n >= 0 && n <= 1<<53; {
		case good != (err == nil) || good != (sent != nil):
			t.Errorf("token %d: %v, sent: %v", n, err, sent != nil)
		case good && n > 0:
			if got, err := fencehttp.Parse(sent); err != nil || int64(got) != n {
				t.Errorf("token %d was sent as %q: %d, %v", n, sent.Values(fencehttp.Header), got, err)
			}
		case good && sent.Get(fencehttp.Header) != before:
			t.Errorf("no token was sent as %q, not as it was, %q", sent.Values(fencehttp.Header), before)
		}
		if r.Header.Get(fencehttp.Header) != before {
			t.Errorf("the caller's request was changed")
		}
	})
}
