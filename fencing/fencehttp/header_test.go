package fencehttp_test

import (
	"errors"
	"net/http"
	"strconv"
	"testing"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/fencing"
	"github.com/distmutex/distmutex/fencing/fencehttp"
)

func header(values ...string) http.Header { return http.Header{fencehttp.Header: values} }

func TestHeaderHoldsOneWayToWriteAToken(t *testing.T) {
	for s, want := range map[string]fencing.Token{"1": 1, "34": 34, "1795000000123456": 1795000000123456, "9007199254740992": backend.MaxToken} {
		if got, err := fencehttp.Parse(header(s)); got != want || err != nil {
			t.Errorf("Parse(%q) = %d, %v; want %d", s, got, err, want)
		}
	}
	for _, s := range []string{
		"", "0", "00", "01", "-1", "+1", " 1", "1 ", "1\t", "1\n", "1.0", "1e3", "0x1", "1_000", "1,000", "1, 2", "x", "１", "1x",
		"9007199254740993", "9223372036854775808", "18446744073709551617", "99999999999999999999999999999999999999999",
	} {
		malformed(t, s, header(s))
	}
	malformed(t, "two", header("1", "1"))
	if got, err := fencehttp.Parse(http.Header{}); got != 0 || err != nil {
		t.Errorf("Parse without a header = %d, %v; want 0, nil", got, err)
	}
}

func malformed(t *testing.T, what string, h http.Header) {
	t.Helper()
	var invalid *backend.InvalidError
	if got, err := fencehttp.Parse(h); got != 0 || !errors.As(err, &invalid) || invalid.Field != fencehttp.Header {
		t.Errorf("Parse(%q) = %d, %v; want an InvalidError of %s", what, got, err, fencehttp.Header)
	}
}

// What is taken is the one spelling of a token, and each token is taken.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"", "0", "1", "01", "+1", "-1", " 1", "1_0", "9007199254740992", "9007199254740993", "18446744073709551616"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, err := strconv.ParseInt(s, 10, 64)
		good := err == nil && n > 0 && n <= int64(backend.MaxToken) && strconv.FormatInt(n, 10) == s
		got, err := fencehttp.Parse(header(s))
		switch {
		case good && (err != nil || int64(got) != n):
			t.Errorf("Parse(%q) = %d, %v; want %d", s, got, err, n)
		case !good && (err == nil || got != 0):
			t.Errorf("Parse(%q) = %d, %v; want an error", s, got, err)
		}
	})
}
