package fencehttp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/distmutex/distmutex/fencing"
	"github.com/distmutex/distmutex/fencing/fencehttp"
)

// The gate is that of the resource; requests that only read need no token.
func ExampleHandler() {
	var gate fencing.Gate
	write := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, _ := fencing.FromContext(r.Context())
		fmt.Fprint(w, "written with token ", token)
	})
	h := fencehttp.Handler(func(*http.Request) *fencing.Gate { return &gate }, write, nil)

	for _, token := range []string{"34", "33"} {
		r := httptest.NewRequest(http.MethodPut, "/report", nil)
		r.Header.Set(fencehttp.Header, token)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		fmt.Println(w.Code)
	}
	// Output:
	// 200
	// 412
}

// A Transport sends the token of the context along.
func ExampleTransport_RoundTrip() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "the token is ", r.Header.Get(fencehttp.Header))
	}))
	defer server.Close()
	client := &http.Client{Transport: &fencehttp.Transport{}}

	ctx := fencing.NewContext(context.Background(), 34) // as Mutex.Do makes it
	r, _ := http.NewRequestWithContext(ctx, http.MethodPut, server.URL, nil)
	resp, err := client.Do(r)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	fmt.Println(string(body))
	// Output: the token is 34
}

// A 412 without our header is of another condition.
func ExampleStale() {
	stale := &http.Response{StatusCode: http.StatusPreconditionFailed, Header: http.Header{fencehttp.Header: {"34"}}}
	other := &http.Response{StatusCode: http.StatusPreconditionFailed}
	fmt.Println(errors.Is(fencehttp.Stale(stale), fencing.ErrStale), fencehttp.Stale(other))
	// Output: true <nil>
}
