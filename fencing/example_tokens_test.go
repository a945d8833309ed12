package fencing_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/distmutex/distmutex/fencing"
)

// A counter that goes on where another ended.
func ExampleNewCounter() {
	c := fencing.NewCounter(41)
	fmt.Println(c.Next(context.Background(), "report", 0))
	// Output: 42 <nil>
}

func ExampleStaleError() {
	var g fencing.Gate
	g.Admit(34)
	err := g.Admit(33)
	var stale *fencing.StaleError
	fmt.Println(errors.Is(err, fencing.ErrStale), errors.As(err, &stale), stale.Token, stale.Seen)
	// Output: true true 33 34
}
