// Command bench measures distmutex beside its peers on real servers.
//
//	go run . [-scenario one,free,…] [-peer distmutex,…] [-rounds 10] [-seconds 1] [-out folder]
//
// It keeps what was measured, a line of JSON for each round and peer, and prints
// medians with their quartiles, ratios, and what became of the goals. With -report
// it measures nothing and prints what the folder has.
package main

import "github.com/distmutex/distmutex/bench/internal/contest"

func main() { contest.Main() }
