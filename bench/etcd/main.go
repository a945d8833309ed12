// Command etcd is bench with one peer more: etcd's concurrency package, on a
// server of this binary. It is a module of its own, as what it builds is several
// times all the rest.
package main

import (
	"fmt"
	"os"

	"github.com/distmutex/distmutex/bench/internal/contest"
)

func main() {
	if dir := os.Getenv(serverEnv); dir != "" {
		if err := serve(dir); err != nil {
			fmt.Fprintln(os.Stderr, "etcd server:", err)
			os.Exit(1)
		}
		return
	}
	contest.Main(
		contest.Guest{Name: "etcd", Start: start(""), Open: open},
		contest.Guest{Name: "etcd/no fsync", Start: start("1"), Open: open},
	)
}
