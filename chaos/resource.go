package main

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"net"
	"strings"
	"sync"

	"github.com/distmutex/distmutex/chaos/internal/history"
)

// resource is what the locks are for: a counter for each key, which holders read
// and write. It is linearizable, refuses stale tokens where there are any, and
// knows of each write whether another came between it and its read.
type resource struct {
	ln  net.Listener
	log *history.Log
	wg  sync.WaitGroup

	mu    sync.Mutex
	rows  map[string]*row
	holds map[string]bool // that came
	turns map[string]int  // of each worker, at what others want too
	seen  seen
}

// row is the counter of one key.
type row struct {
	version int
	token   int64  // the largest seen
	owner   string // the hold that has it
	entered int64  // when a new hold last came, in the machine's nanoseconds
}

// seen is what the resource counts.
type seen struct {
	Holds  int // that read at least once
	Reads  int
	Writes int
	Stale  int // accesses refused for their token
	Lost   int // writes that overwrote what they had not read
	Mixed  int // accesses by two holds with one token
}

func newResource(log *history.Log) (*resource, error) {
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &resource{ln: ln, log: log, rows: make(map[string]*row), holds: make(map[string]bool), turns: make(map[string]int)}
	r.wg.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return // closed
			}
			r.wg.Go(func() { r.serve(c) })
		}
	})
	return r, nil
}

func (r *resource) addr() string { return r.ln.Addr().String() }

// close waits for its clients to go.
func (r *resource) close() {
	r.ln.Close()
	r.wg.Wait()
}

// serve answers lines of: read or write, key, hold, token, version read.
func (r *resource) serve(c net.Conn) {
	defer c.Close()
	in := bufio.NewScanner(c)
	for in.Scan() {
		var verb, key, hold string
		var token int64
		var base int
		if _, err := fmt.Sscan(in.Text(), &verb, &key, &hold, &token, &base); err != nil {
			return
		}
		if _, err := io.WriteString(c, r.access(verb, key, hold, token, base)+"\n"); err != nil {
			return
		}
	}
}

// access is one atomic step. It answers with the version, or "stale".
func (r *resource) access(verb, key, hold string, token int64, base int) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	w := r.rows[key]
	if w == nil {
		w = new(row)
		r.rows[key] = w
	}
	if token != 0 && token < w.token {
		r.seen.Stale++
		r.log.Add("stale", hold, key, verb, token, w.token)
		return "stale"
	}
	if token != 0 && token == w.token && hold != w.owner {
		r.seen.Mixed++
		r.log.Add("mixed", hold, key, verb, token, w.owner)
	}
	w.token, w.owner = max(w.token, token), hold
	if !r.holds[hold] {
		r.holds[hold] = true
		r.seen.Holds++
		w.entered = r.log.Now()
		if !strings.HasPrefix(key, ownKey) {
			r.turns[hold[:strings.LastIndexByte(hold, '.')]]++
		}
	}
	if verb == "read" {
		r.seen.Reads++
	} else {
		r.seen.Writes++
		if base != w.version {
			r.seen.Lost++
			r.log.Add("lost", hold, key, base, w.version)
		}
		w.version++
	}
	r.log.Add(verb, hold, key, token, w.version)
	return fmt.Sprint(w.version)
}

// count is what was counted so far.
func (r *resource) count() seen {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.seen
}

// entered is when a new hold of each key last came.
func (r *resource) entered() map[string]int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := make(map[string]int64)
	for key, w := range r.rows {
		at[key] = w.entered
	}
	return at
}

// turnsOf is how many holds of each worker came so far.
func (r *resource) turnsOf() map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.turns)
}

// turnsAt is how many holds of one client came so far, whatever its incarnation.
func (r *resource) turnsAt(client int) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	prefix := fmt.Sprintf("c%d.", client)
	for worker, turns := range r.turns {
		if strings.HasPrefix(worker, prefix) {
			n += turns
		}
	}
	return n
}

// access is a client's connection to the resource.
type access struct {
	c  net.Conn
	in *bufio.Reader
}

func dialResource(addr string) (*access, error) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	return &access{c, bufio.NewReader(c)}, nil
}

// do reads or writes. It says no if the resource refused.
func (a *access) do(verb, key, hold string, token int64, base int) (version int, ok bool, err error) {
	if _, err := fmt.Fprintln(a.c, verb, key, hold, token, base); err != nil {
		return 0, false, err
	}
	line, err := a.in.ReadString('\n')
	if err != nil || line == "stale\n" {
		return 0, false, err
	}
	_, err = fmt.Sscan(line, &version)
	return version, true, err
}
