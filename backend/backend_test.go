package backend_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/distmutex/distmutex/backend"
)

func TestValidateNamesTheField(t *testing.T) {
	good := backend.Lease{Key: "k", Owner: "o", TTL: time.Second}
	for name, tc := range map[string]struct {
		change func(*backend.Lease)
		field  string
	}{
		"good":           {func(*backend.Lease) {}, ""},
		"longest key":    {func(l *backend.Lease) { l.Key = strings.Repeat("k", backend.MaxKey) }, ""},
		"no key":         {func(l *backend.Lease) { l.Key = "" }, "Key"},
		"long key":       {func(l *backend.Lease) { l.Key = strings.Repeat("k", 10_000) }, "Key"},
		"NUL in key":     {func(l *backend.Lease) { l.Key = "a\x00b" }, "Key"},
		"no owner":       {func(l *backend.Lease) { l.Owner = "" }, "Owner"},
		"no TTL":         {func(l *backend.Lease) { l.TTL = 0 }, "TTL"},
		"negative TTL":   {func(l *backend.Lease) { l.TTL = -time.Second }, "TTL"},
		"1 ns":           {func(l *backend.Lease) { l.TTL = 1 }, "TTL"},
		"1 ms":           {func(l *backend.Lease) { l.TTL = time.Millisecond }, "TTL"},
		"rest":           {func(l *backend.Lease) { l.TTL = time.Second + time.Microsecond }, "TTL"},
		"long TTL":       {func(l *backend.Lease) { l.TTL = backend.MaxTTL + time.Millisecond }, "TTL"},
		"negative token": {func(l *backend.Lease) { l.Token = -1 }, "Token"},
		"largest token":  {func(l *backend.Lease) { l.Token = backend.MaxToken }, ""},
		"large token":    {func(l *backend.Lease) { l.Token = backend.MaxToken + 1 }, "Token"},
	} {
		t.Run(name, func(t *testing.T) {
			l := good
			tc.change(&l)
			err := l.Validate()
			var invalid *backend.InvalidError
			switch {
			case tc.field == "" && err != nil:
				t.Errorf("got %v, want nil", err)
			case tc.field != "" && (!errors.As(err, &invalid) || invalid.Field != tc.field):
				t.Errorf("got %v, want an *InvalidError for %s", err, tc.field)
			case err != nil && strings.Contains(err.Error(), "kkkk"):
				t.Errorf("the error repeats the key: %v", err)
			}
		})
	}
}

func TestUntilAndEnded(t *testing.T) {
	now := time.Now()
	l := backend.Lease{TTL: 10 * time.Second, Start: now}
	if got, want := l.Until().Sub(now), 9898*time.Millisecond; got != want {
		t.Errorf("valid for %v of 10s, want %v", got, want)
	}
	if l.Ended(now.Add(l.TTL-1)) || !l.Ended(now.Add(l.TTL)) {
		t.Error("the term does not end with its TTL")
	}
	if (backend.Lease{TTL: 1}).Ended(now) {
		t.Error("a lease without Start has ended")
	}
}

// node is a backend of which only the name matters.
type node struct {
	backend.Backend
	name string
}

func (n node) Unwrap() backend.Backend { return n.Backend }

type waiter struct{ backend.Backend }

func (waiter) Wait(context.Context, backend.Lease) (backend.Lease, error) {
	return backend.Lease{Key: "from the waiter"}, nil
}

func TestWrapAndAs(t *testing.T) {
	layer := func(name string) backend.Middleware {
		return func(b backend.Backend) backend.Backend { return node{b, name} }
	}
	b := backend.Wrap(waiter{}, layer("outer"), layer("inner"))
	var names []string
	for n, ok := b.(node); ok; n, ok = n.Backend.(node) {
		names = append(names, n.name)
	}
	if got := fmt.Sprint(names); got != "[outer inner]" {
		t.Errorf("layers from the outside: %s", got)
	}
	w, ok := backend.As[backend.Waiter](b)
	if !ok {
		t.Fatal("As does not find the Waiter behind two layers")
	}
	if l, _ := w.Wait(t.Context(), backend.Lease{}); l.Key != "from the waiter" {
		t.Error("As found another Waiter")
	}
	if _, ok := backend.As[io.Closer](b); ok {
		t.Error("As found a Closer that nobody is")
	}
	if _, ok := backend.As[backend.Waiter](nil); ok {
		t.Error("As found a Waiter in nil")
	}
}

// A node's answer is not the quorum's (case 36), and a golden table of what each
// error is (case 40).
func TestQuorumErrorIsWhatAMajorityAnswered(t *testing.T) {
	on := func(node string, err error) error {
		return &backend.Error{Op: "acquire", Key: "k", Node: node, Err: err}
	}
	invalid := &backend.InvalidError{Field: "TTL", Reason: "is too long"}
	for name, tc := range map[string]struct {
		err  backend.QuorumError
		held bool
		lost bool
		eof  bool
		bad  bool
		word string
	}{
		"held":             {backend.QuorumError{Verdict: backend.ErrHeld, Nodes: []error{on("a", backend.ErrHeld), on("b", backend.ErrHeld), nil}}, true, false, false, false, "held"},
		"lost":             {backend.QuorumError{Verdict: backend.ErrLost, Nodes: []error{on("a", backend.ErrLost), on("b", backend.ErrLost), nil}}, false, true, false, false, "lost"},
		"one refusal":      {backend.QuorumError{Nodes: []error{on("a", backend.ErrHeld), on("b", io.EOF), on("c", io.EOF)}}, false, false, true, false, "unreachable"},
		"one loss":         {backend.QuorumError{Nodes: []error{on("a", backend.ErrLost), on("b", io.EOF), nil}}, false, false, true, false, "unreachable"},
		"one invalid node": {backend.QuorumError{Nodes: []error{invalid, on("b", io.EOF), nil}}, false, false, true, false, "unreachable"},
		"all invalid":      {backend.QuorumError{Nodes: []error{invalid, invalid}}, false, false, false, true, "unreachable"},
	} {
		t.Run(name, func(t *testing.T) {
			err := error(&tc.err)
			var bad *backend.InvalidError
			got := []bool{errors.Is(err, backend.ErrHeld), errors.Is(err, backend.ErrLost), errors.Is(err, io.EOF), errors.As(err, &bad)}
			want := []bool{tc.held, tc.lost, tc.eof, tc.bad}
			if fmt.Sprint(got) != fmt.Sprint(want) || tc.err.ErrorType() != tc.word {
				t.Errorf("held, lost, EOF, invalid: got %v and %q, want %v and %q", got, tc.err.ErrorType(), want, tc.word)
			}
		})
	}
	err := &backend.QuorumError{Op: "acquire", Key: "k", Need: 2, Nodes: []error{on("a:1", io.EOF), io.ErrUnexpectedEOF, nil}}
	if got, want := err.Error(), `acquire "k": fewer than 2 of 3 nodes agreed: a:1: EOF; node 1: unexpected EOF`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// ExampleAs finds what a backend offers besides its verbs.
func ExampleAs() {
	var b backend.Backend = node{waiter{}, "layer"}
	_, ok := backend.As[backend.Waiter](b)
	fmt.Println(ok)
	// Output: true
}

// ExampleWrap puts layers over a backend; the first is outermost.
func ExampleWrap() {
	traced := func(b backend.Backend) backend.Backend { return node{b, "traced"} }
	b := backend.Wrap(waiter{}, traced)
	fmt.Println(b.(node).name)
	// Output: traced
}

// ExampleLease_Validate is the first line of every verb of a backend.
func ExampleLease_Validate() {
	fmt.Println(backend.Lease{Key: "k", Owner: "o", TTL: time.Millisecond}.Validate())
	// Output: invalid TTL: it is 1ms, less than 10ms
}
