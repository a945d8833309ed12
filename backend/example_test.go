package backend_test

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/distmutex/distmutex/backend"
)

// A hundredth of the term and two milliseconds are given up for clocks that run
// at different rates.
func ExampleDrift() {
	fmt.Println(backend.Drift(10 * time.Second))
	// Output: 102ms
}

func ExampleLease_Until() {
	l := backend.Lease{Start: time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC), TTL: 10 * time.Second}
	fmt.Println(l.Until().Format("15:04:05.000"))
	// Output: 12:00:09.898
}

func ExampleLease_Ended() {
	start := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	l := backend.Lease{Start: start, TTL: 10 * time.Second}
	fmt.Println(l.Ended(start.Add(9*time.Second)), l.Ended(start.Add(10*time.Second)))
	// Output: false true
}

func ExampleValidateKey() {
	fmt.Println(backend.ValidateKey("orders/42"))
	fmt.Println(backend.ValidateKey(""))
	// Output:
	// <nil>
	// invalid Key: it is empty
}

func ExampleValidateTTL() {
	fmt.Println(backend.ValidateTTL(10 * time.Second))
	fmt.Println(backend.ValidateTTL(1500 * time.Microsecond))
	fmt.Println(backend.ValidateTTL(time.Second + time.Microsecond))
	// Output:
	// <nil>
	// invalid TTL: it is 1.5ms, less than 10ms
	// invalid TTL: it is 1.000001s, not in whole milliseconds
}

func ExampleError() {
	err := error(&backend.Error{Op: "acquire", Key: "orders/42", Node: "r1:6379", Err: backend.ErrHeld})
	fmt.Println(err)
	fmt.Println(errors.Is(err, backend.ErrHeld))
	// Output:
	// acquire "orders/42" on r1:6379: held by another
	// true
}

func ExampleInvalidError() {
	err := backend.ValidateKey("orders\x0042")
	var invalid *backend.InvalidError
	fmt.Println(errors.As(err, &invalid), invalid.Field, invalid.Reason)
	// Output: true Key contains a NUL byte
}

// One node of three refuses, and the others can't be reached: the lock may be
// free or not.
func ExampleQuorumError() {
	err := error(&backend.QuorumError{Op: "acquire", Key: "orders/42", Need: 2, Nodes: []error{backend.ErrHeld, io.EOF, io.EOF}})
	fmt.Println(err)
	fmt.Println(errors.Is(err, backend.ErrHeld), errors.Is(err, io.EOF))
	var q *backend.QuorumError
	fmt.Println(errors.As(err, &q), q.ErrorType())
	// Output:
	// acquire "orders/42": fewer than 2 of 3 nodes agreed: node 0: held by another; node 1: EOF; node 2: EOF
	// false true
	// true unreachable
}
