package fencehttp_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"

	"github.com/distmutex/distmutex/fencing"
	"github.com/distmutex/distmutex/fencing/fencehttp"
)

// store is an object store with one object. Anyone may read it; to write it, one
// needs a token.
type store struct {
	gate fencing.Gate
	mu   sync.Mutex
	text []byte
}

func (s *store) handler() http.Handler {
	gate := func(r *http.Request) *fencing.Gate {
		if r.Method == http.MethodGet {
			return nil
		}
		return &s.gate
	}
	return fencehttp.Handler(gate, s, nil)
}

func (s *store) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	text, _ := io.ReadAll(r.Body)
	s.mu.Lock() // reads do not pass the gate
	defer s.mu.Unlock()
	if r.Method == http.MethodPut {
		s.text = text
	}
	w.Write(s.text)
}

// A fenced write of an object behind HTTP.
func Example() {
	server := httptest.NewServer(new(store).handler())
	defer server.Close()
	client := &http.Client{Transport: new(fencehttp.Transport)}

	put := func(ctx context.Context, text string) {
		r, _ := http.NewRequestWithContext(ctx, http.MethodPut, server.URL, strings.NewReader(text))
		resp, err := client.Do(r)
		if err != nil {
			fmt.Println(err)
			return
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		fmt.Printf("%s: %s\n", resp.Status, strings.TrimSpace(string(body)))
		if err := fencehttp.Stale(resp); err != nil {
			fmt.Println("somebody else has the lock:", err)
		}
	}
	first := fencing.NewContext(context.Background(), 33) // as Mutex.Do makes them
	second := fencing.NewContext(context.Background(), 34)
	put(first, "draft")
	put(second, "report")
	put(first, "final draft") // the first holder wakes up after its lease
	put(context.Background(), "graffiti")
	// Output:
	// 200 OK: draft
	// 200 OK: report
	// 412 Precondition Failed: stale token: 33 came after 34
	// somebody else has the lock: stale token: 33 came after 34
	// 428 Precondition Required: a Fencing-Token is required
}

func ExampleParse() {
	fmt.Println(fencehttp.Parse(http.Header{"Fencing-Token": {"34"}}))
	fmt.Println(fencehttp.Parse(http.Header{"Fencing-Token": {"+34"}}))
	fmt.Println(fencehttp.Parse(http.Header{}))
	// Output:
	// 34 <nil>
	// 0 invalid Fencing-Token: it is "+34", not a positive decimal number
	// 0 <nil>
}
