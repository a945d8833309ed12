package fencing_test

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/distmutex/distmutex/fencing"
)

const fencedUpdate = `UPDATE account SET balance = $1, token = $2 WHERE id = $3 AND token <= $2`

// setBalance writes a balance unless a later holder of the account's lock has
// written one. The database compares and writes in one step, and keeps the token
// as durably as the balance. A new row begins with token 0.
func setBalance(ctx context.Context, db *sql.DB, id string, balance int64) error {
	token, ok := fencing.FromContext(ctx)
	if !ok {
		return fmt.Errorf("account %s: not written outside of its lock", id)
	}
	result, err := db.ExecContext(ctx, fencedUpdate, balance, token, id)
	if err != nil {
		return err
	}
	switch n, err := result.RowsAffected(); {
	case err != nil:
		return err
	case n == 0: // or there is no such account
		return fmt.Errorf("account %s: %w", id, fencing.ErrStale)
	}
	return nil
}

// A fenced SQL update. The database here is a stand-in that knows this one
// statement and this one row.
func Example_sql() {
	db := sql.OpenDB(&account{id: "anna", balance: 100})
	defer db.Close()

	first := fencing.NewContext(context.Background(), 33) // as Mutex.Do makes them
	second := fencing.NewContext(context.Background(), 34)
	fmt.Println(setBalance(first, db, "anna", 110))
	fmt.Println(setBalance(second, db, "anna", 130))
	fmt.Println(setBalance(first, db, "anna", 120)) // the first holder wakes up after its lease
	fmt.Println(setBalance(context.Background(), db, "anna", 0))

	var balance int
	db.QueryRow("SELECT balance FROM account").Scan(&balance)
	fmt.Println(balance)
	// Output:
	// <nil>
	// <nil>
	// account anna: stale token
	// account anna: not written outside of its lock
	// 130
}
