package fencehttp

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strconv"

	"github.com/distmutex/distmutex/fencing"
)

// Options tune a Handler. Nil and the zero value are good defaults.
type Options struct {
	// MaxBody bounds the body of a fenced request, in bytes; a larger one is
	// refused with 413. Zero means 1 MiB. Bodies are read before the gate is
	// entered, so that a client that stalls does not keep others out.
	//
	// Negative: bodies are not bounded, and read inside the gate, by next. Then
	// a server needs a ReadTimeout.
	MaxBody int64
}

const defaultMaxBody = 1 << 20

// Handler is next behind gates: gate chooses that of the resource which a
// request is for, or nil for a request that needs no token, such as one that
// only reads. It panics if gate or next is nil.
//
//	428 Precondition Required  the request has no token
//	400 Bad Request            it has one that is none, or more than one
//	412 Precondition Failed    its token is stale: the largest seen is in the
//	                           header Fencing-Token, and both are in the body
//
// Next runs inside the gate. So no later holder gets between the check and what
// next writes, and the requests for one resource run one at a time: next must
// not wait for another of them. It finds the token in its context
// (fencing.FromContext), to be kept with what it writes.
//
// A gate forgets when the process ends. For a resource that outlives it, let the
// gate admit the token that was kept with the resource before its first request.
// Nor may a gate be thrown away while its resource is there: keep it beside the
// resource, not in a cache, and return none for what does not exist.
func Handler(gate func(*http.Request) *fencing.Gate, next http.Handler, o *Options) http.Handler {
	if gate == nil || next == nil {
		panic("fencehttp: Handler without a gate or a next handler")
	}
	h := &handler{gate, next, defaultMaxBody}
	if o != nil && o.MaxBody != 0 {
		h.maxBody = o.MaxBody
	}
	return h
}

type handler struct {
	gate    func(*http.Request) *fencing.Gate
	next    http.Handler
	maxBody int64
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	gate := h.gate(r)
	if gate == nil {
		h.next.ServeHTTP(w, r)
		return
	}
	token, err := Parse(r.Header)
	switch {
	case err != nil:
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	case token == 0:
		http.Error(w, "a "+Header+" is required", http.StatusPreconditionRequired)
		return
	}
	r = r.WithContext(fencing.NewContext(r.Context(), token))
	if status := h.read(w, r); status != http.StatusOK {
		http.Error(w, http.StatusText(status), status)
		return
	}
	err = gate.Do(token, func() error {
		h.next.ServeHTTP(w, r)
		return nil
	})
	var stale *fencing.StaleError
	if errors.As(err, &stale) {
		w.Header().Set(Header, strconv.FormatInt(int64(stale.Seen), 10))
		http.Error(w, err.Error(), http.StatusPreconditionFailed)
	}
}

// read takes the whole body in, and says what is wrong with it.
func (h *handler) read(w http.ResponseWriter, r *http.Request) int {
	if h.maxBody < 0 || r.Body == nil || r.Body == http.NoBody {
		return http.StatusOK
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, h.maxBody))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return http.StatusRequestEntityTooLarge
	case err != nil:
		return http.StatusBadRequest
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return http.StatusOK
}
