package fencehttp_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/distmutex/distmutex/fencing"
	"github.com/distmutex/distmutex/fencing/fencehttp"
)

// object is a handler that stores what is put, behind a gate for writes.
type object struct {
	gate  fencing.Gate
	text  string
	token fencing.Token // as next finds it
	puts  int
}

func (o *object) choose(r *http.Request) *fencing.Gate {
	if r.Method == http.MethodGet {
		return nil
	}
	return &o.gate
}

func (o *object) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		io.WriteString(w, o.text)
		return
	}
	text, err := io.ReadAll(r.Body)
	if err != nil || r.ContentLength >= 0 && int64(len(text)) != r.ContentLength {
		http.Error(w, "the body was cut", http.StatusInternalServerError)
		return
	}
	o.text, o.puts = string(text), o.puts+1
	o.token, _ = fencing.FromContext(r.Context())
}

func serve(h http.Handler, method string, body io.Reader, tokens ...string) *http.Response {
	r := httptest.NewRequest(method, "/object", body)
	for _, token := range tokens {
		r.Header.Add(fencehttp.Header, token)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

func TestHandlerAnswersByToken(t *testing.T) {
	o := new(object)
	h := fencehttp.Handler(o.choose, o, nil)
	for _, c := range []struct {
		name         string
		method, text string
		tokens       []string
		status       int
		seen, stored string
	}{
		{"no token", "PUT", "a", nil, 428, "", ""},
		{"a malformed token", "PUT", "b", []string{"+33"}, 400, "", ""},
		{"two tokens", "PUT", "c", []string{"33", "34"}, 400, "", ""},
		{"an empty token", "PUT", "c", []string{""}, 400, "", ""},
		{"the first", "PUT", "d", []string{"33"}, 200, "", "d"},
		{"the same", "PUT", "e", []string{"33"}, 200, "", "e"},
		{"a later", "PUT", "f", []string{"35"}, 200, "", "f"},
		{"a stale", "PUT", "g", []string{"34"}, 412, "35", "f"},
		{"no token again", "PUT", "h", nil, 428, "", "f"},
		{"a read", "GET", "", nil, 200, "", "f"},
		{"a stale read", "GET", "", []string{"1"}, 200, "", "f"},
	} {
		resp := serve(h, c.method, strings.NewReader(c.text), c.tokens...)
		if resp.StatusCode != c.status || resp.Header.Get(fencehttp.Header) != c.seen || o.text != c.stored {
			t.Errorf("%s: status %d, seen %q, stored %q; want %d, %q, %q",
				c.name, resp.StatusCode, resp.Header.Get(fencehttp.Header), o.text, c.status, c.seen, c.stored)
		}
		if text, _ := io.ReadAll(resp.Body); c.status == 412 && !(strings.Contains(string(text), "34") && strings.Contains(string(text), "35")) {
			t.Errorf("%s: the body is %q, want both tokens in it", c.name, text)
		}
	}
	if o.token != 35 || o.puts != 3 {
		t.Errorf("next was called %d times, last with token %d; want 3 and 35", o.puts, o.token)
	}
}

func TestHandlerBoundsBodies(t *testing.T) {
	big := strings.Repeat("x", 1<<20)
	for _, c := range []struct {
		name    string
		options *fencehttp.Options
		body    string
		status  int
	}{
		{"the default", nil, big, 200},
		{"over the default", nil, big + "x", 413},
		{"a bound", &fencehttp.Options{MaxBody: 3}, "abc", 200},
		{"over a bound", &fencehttp.Options{MaxBody: 3}, "abcd", 413},
		{"no bound", &fencehttp.Options{MaxBody: -1}, big + "x", 200},
	} {
		o := new(object)
		resp := serve(fencehttp.Handler(o.choose, o, c.options), "PUT", strings.NewReader(c.body), "1")
		if stored := o.text == c.body; resp.StatusCode != c.status || stored != (c.status == 200) {
			t.Errorf("%s: status %d, stored: %v; want %d", c.name, resp.StatusCode, stored, c.status)
		}
	}
}

// A holder that stalls while it sends, and wakes up after a later one has
// written, neither keeps that one out nor gets through.
func TestAStalledBodyKeepsNobodyOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := new(object)
		h := fencehttp.Handler(o.choose, o, nil)
		slow, send := io.Pipe()
		stalled := make(chan *http.Response)
		go func() { stalled <- serve(h, "PUT", slow, "33") }()
		io.WriteString(send, "late")
		synctest.Wait()
		if resp := serve(h, "PUT", strings.NewReader("in time"), "34"); resp.StatusCode != 200 {
			t.Errorf("the later holder: status %d, want 200", resp.StatusCode)
		}
		send.Close()
		if resp := <-stalled; resp.StatusCode != 412 || o.text != "in time" {
			t.Errorf("the stalled one: status %d and %q is stored; want 412 and the later one's text", resp.StatusCode, o.text)
		}
	})
}

func TestACutBodyIsNotServed(t *testing.T) {
	o := new(object)
	cut := io.MultiReader(strings.NewReader("half of"), cutReader{})
	if resp := serve(fencehttp.Handler(o.choose, o, nil), "PUT", cut, "1"); resp.StatusCode != 400 || o.puts != 0 {
		t.Errorf("status %d, %d puts; want 400 and none", resp.StatusCode, o.puts)
	}
}

type cutReader struct{}

func (cutReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// Between the check of a token and the end of what next does, no other request
// for the resource runs; for another resource, they do.
func TestRequestsForOneResourceRunOneAtATime(t *testing.T) {
	gates := map[string]*fencing.Gate{"A": new(fencing.Gate), "B": new(fencing.Gate)}
	var inside atomic.Int32
	entered, leave := make(chan bool, 10), make(chan bool)
	h := fencehttp.Handler(func(r *http.Request) *fencing.Gate { return gates[r.Method] }, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Method == "B" {
			return
		}
		if inside.Add(1) > 1 {
			t.Error("two requests for one resource at once")
		}
		entered <- true
		<-leave
		inside.Add(-1)
	}), nil)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() { serve(h, "A", nil, "7") })
	}
	for range 4 {
		<-entered
		if resp := serve(h, "B", nil, "7"); resp.StatusCode != 200 {
			t.Errorf("a request for another resource: status %d, want 200", resp.StatusCode)
		}
		time.Sleep(time.Millisecond) // for another to come in, if it could
		leave <- true
	}
	wg.Wait()
}

func TestAPanicInNextLeavesTheGateOpen(t *testing.T) {
	o := new(object)
	h := fencehttp.Handler(o.choose, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }), nil)
	func() {
		defer func() { recover() }()
		serve(h, "PUT", nil, "1")
	}()
	if err := o.gate.Admit(2); err != nil {
		t.Errorf("Admit: %v", err)
	}
}

func TestHandlerOfNothingPanics(t *testing.T) {
	o := new(object)
	for name, make := range map[string]func(){
		"gate": func() { fencehttp.Handler(nil, o, nil) },
		"next": func() { fencehttp.Handler(o.choose, nil, nil) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("without a %s: no panic", name)
				}
			}()
			make()
		}()
	}
}
