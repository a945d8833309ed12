package fencing_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"sync"
)

// account is a database of one row, which a database/sql driver reaches. It does
// what a real one does for the one UPDATE of the example.
type account struct {
	id string

	mu             sync.Mutex
	balance, token int64
}

var errNotKnown = errors.New("the stand-in does not know this statement")

func (a *account) Connect(context.Context) (driver.Conn, error) { return conn{a}, nil }
func (a *account) Driver() driver.Driver                        { return nil }

type conn struct{ *account }

func (conn) Prepare(string) (driver.Stmt, error) { return nil, errNotKnown }
func (conn) Begin() (driver.Tx, error)           { return nil, errNotKnown }
func (conn) Close() error                        { return nil }

func (c conn) ExecContext(_ context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if query != fencedUpdate {
		return nil, errNotKnown
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	balance, token, id := args[0].Value.(int64), args[1].Value.(int64), args[2].Value.(string)
	if id != c.id || c.token > token {
		return driver.RowsAffected(0), nil
	}
	c.balance, c.token = balance, token
	return driver.RowsAffected(1), nil
}

func (c conn) QueryContext(context.Context, string, []driver.NamedValue) (driver.Rows, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return &rows{left: []int64{c.balance}}, nil
}

type rows struct{ left []int64 }

func (*rows) Columns() []string { return []string{"balance"} }
func (*rows) Close() error      { return nil }

func (r *rows) Next(dest []driver.Value) error {
	if len(r.left) == 0 {
		return io.EOF
	}
	dest[0], r.left = r.left[0], r.left[1:]
	return nil
}
