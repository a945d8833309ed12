package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
)

// command is what redistest takes for a test: it starts servers for a program
// too.
type command struct {
	testing.TB // nil: what redistest does not use is not here

	results  []summary
	mu       sync.Mutex
	failed   bool
	cleanups []func()
}

// stop is the panic of FailNow.
type stop struct{}

// sub runs f with cleanups of its own.
func (c *command) sub(f func(*command)) {
	s := &command{}
	func() {
		defer s.cleanup()
		defer func() {
			if p := recover(); p != nil && p != (stop{}) {
				panic(p)
			}
		}()
		f(s)
	}()
	c.results = append(c.results, s.results...)
	c.failed = c.failed || s.Failed()
}

func (c *command) cleanup() {
	c.mu.Lock()
	all := c.cleanups
	c.mu.Unlock()
	for _, f := range slices.Backward(all) {
		f()
	}
}

func (c *command) Cleanup(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cleanups = append(c.cleanups, f)
}

func (c *command) TempDir() string {
	dir, err := os.MkdirTemp("", "distmutex-chaos")
	if err != nil {
		c.Fatal(err)
	}
	c.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func (c *command) Context() context.Context { return context.Background() }
func (c *command) Name() string             { return "chaos" }
func (c *command) Helper()                  {}

func (c *command) Failed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failed
}

func (c *command) FailNow() {
	c.fail()
	panic(stop{})
}

func (c *command) fail() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failed = true
}

func (c *command) Log(args ...any)                 { fmt.Fprintln(os.Stderr, args...) }
func (c *command) Logf(format string, args ...any) { c.Log(fmt.Sprintf(format, args...)) }

func (c *command) Error(args ...any) {
	c.Log(args...)
	c.fail()
}

func (c *command) Errorf(format string, args ...any) { c.Error(fmt.Sprintf(format, args...)) }

func (c *command) Fatal(args ...any) {
	c.Log(args...)
	c.FailNow()
}

func (c *command) Fatalf(format string, args ...any) { c.Fatal(fmt.Sprintf(format, args...)) }
func (c *command) Skip(args ...any)                  { c.Fatal(args...) }
func (c *command) Skipf(format string, args ...any)  { c.Fatalf(format, args...) }
