// Package telemetry shows what locks are waited for, held and lost, as
// OpenTelemetry spans and metrics ([Instrumentation]) and as log records ([Log]).
//
// Both are layers over a backend, and a session that gets the layer tells it
// what happens: there is nothing else to connect.
//
//	tel, err := telemetry.New(nil)
//	...
//	m, err := mutex.New(backend.Wrap(b, tel.Middleware, telemetry.Log(nil)), "report", nil)
//
// Above a retry.Middleware the layer sees a repeated call once; below it, each
// repetition is a call of its own.
//
// # Spans
//
// All are INTERNAL and have distmutex.key and distmutex.outcome.
//
//	acquire lock     all of Lock or TryLock; distmutex.try, .attempts, .token
//	acquire attempt  one Acquire of the backend, within it; distmutex.token
//	wait             one Wait of the backend, within it; distmutex.token if it was granted
//	renew lock       one renewal, a trace of its own; linked to the acquire lock; distmutex.token
//	release lock     the release by Unlock or Close; linked likewise; distmutex.token
//	release attempt  a release in the background, of what came too late or was lost
//
// An outcome is ok, hint (of a wait: try now), held, lost, canceled, deadline,
// closed, invalid, the ErrorType of an error that has one (late, unreachable),
// or unknown. What failed has the status Error, with the error's text, and the
// outcome as error.type too. That another holds the lock is no failure: neither
// the refusal of an attempt or a TryLock nor a Lock that ended in want of it,
// whether by a cancel or a deadline. Errors are not recorded as events: who
// called has them.
//
// # Metrics
//
//	distmutex.acquire.duration  histogram        s          outcome  Lock and TryLock, waits included
//	distmutex.acquire.attempts  histogram        {attempt}  outcome  made by each
//	distmutex.waiting           up-down counter  {caller}            Locks (not TryLocks) under way
//	distmutex.held              up-down counter  {lock}              holds that last
//	distmutex.hold.duration     histogram        s          reason   holds that have ended
//	distmutex.lost              counter          {lock}     reason   those that did not end by Unlock
//	distmutex.renew.duration    histogram        s          outcome  attempts to renew
//	distmutex.release.duration  histogram        s          outcome  releases by Unlock and Close
//	distmutex.node.duration     histogram        s          node, operation, outcome
//	distmutex.node.aside        up-down counter  {node}     node     1 while a quorum has set it aside
//
// The attributes are distmutex.outcome, and error.type on what failed;
// distmutex.reason, which is a mutex.Reason; distmutex.node; and
// distmutex.operation: acquire, renew or release. The key is left out unless
// [Options].KeyOnMetrics asks for it.
//
// # Nodes
//
// A backend with a method Name() string is a node: the layer around it puts
// distmutex.node on spans and records distmutex.node.duration. In a quorum the
// layer goes around the whole and around each node:
//
//	for i, n := range nodes {
//		nodes[i] = tel.Middleware(n)
//	}
//	q, err := quorum.New(nodes, &quorum.Options{OnNode: tel.OnNode})
//	...
//	b := tel.Middleware(q)
//
// redis.NewQuorum and redis.Open do that if they are asked to:
//
//	&redis.Options{Node: tel.Middleware, Quorum: quorum.Options{OnNode: tel.OnNode}}
//
// The calls of nodes are then spans within those of the whole: acquire attempt,
// renew attempt, release attempt and wait.
//
// # What it shows to whom
//
// The owner of a lease, with which anybody could release it, is nowhere. The
// key is on spans and in logs, and in the text of errors.
//
// While nothing records (no SDK is installed, or noop providers are given) the
// layer passes calls on and allocates nothing.
package telemetry
