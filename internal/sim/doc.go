// Package sim runs the real mutex, quorum, fencing and retry code on simulated
// nodes, in a bubble of testing/synctest, under every fault that a network,
// servers, clocks and processes have, and judges what came of it.
//
// One seed makes one schedule, and always the same one. That needs an order of
// events that no scheduler decides:
//
//   - what befalls a message is drawn from the seed and from what the message is,
//     not from a stream that many goroutines share;
//   - delays have nanoseconds, and one that would end in an instant that is taken
//     lasts longer; where the library does several things in one instant, each
//     takes a moment of its own on its way to the next layer;
//   - the library's own randomness is the owners', drawn from crypto/rand, which
//     testing/cryptotest makes repeatable.
//
// The bubble's clock is every client's. A client whose clock runs fast or slow is
// one whose terms the nodes count longer or shorter, which is the same thing seen
// from the other side; one whose machine is suspended is one whose terms all end so
// much earlier. Nodes have clocks of their own.
package sim
