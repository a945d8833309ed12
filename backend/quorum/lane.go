package quorum

import (
	"slices"
	"sync"
	"time"
)

// maxDepth is how many calls of one key may be ahead, on a node that has not
// caught up for a while, before it is left out of new attempts: one that answers,
// but more slowly than the key changes hands, would be ever further behind.
const maxDepth = 16

// lanes keep the calls that belong to one key in order, node by node: a release
// may not overtake its acquire, nor may the next acquire of this process meet
// its own last key. A lane lives while calls of its key are under way.
type lanes struct {
	nodes int
	mu    sync.Mutex
	byKey map[string]*lane
}

type lane struct {
	key    string
	visits int             // verbs, and their calls, that are not done
	tail   []chan struct{} // for each node, closed when its last call was answered
	depth  []int           // for each node, the calls that are not done
	since  []time.Time     // for each node, when there was none last
	claims map[string]*claim
}

// claim is what is under way for one owner.
type claim struct {
	calls    int
	released bool  // its release was asked for
	leftOut  []int // nodes that it was never asked of
}

// visit is one verb's places in a lane, by node.
type visit struct {
	ls           *lanes
	lane         *lane
	owner        string
	before, mine []chan struct{}
}

// enter opens a visit, to be ended with end.
func (ls *lanes) enter(key, owner string) *visit {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	l := ls.byKey[key]
	if l == nil {
		l = &lane{key: key, tail: make([]chan struct{}, ls.nodes), depth: make([]int, ls.nodes), since: make([]time.Time, ls.nodes), claims: make(map[string]*claim)}
		if ls.byKey == nil {
			ls.byKey = make(map[string]*lane)
		}
		ls.byKey[key] = l
	}
	l.visits++
	if l.claims[owner] == nil {
		l.claims[owner] = new(claim)
	}
	l.claims[owner].calls++
	chans := make([]chan struct{}, 2*ls.nodes)
	return &visit{ls: ls, lane: l, owner: owner, before: chans[:ls.nodes], mine: chans[ls.nodes:]}
}

// queue takes a place behind all earlier calls to the node, to be left once.
func (v *visit) queue(node int) {
	v.ls.mu.Lock()
	defer v.ls.mu.Unlock()
	l := v.lane
	v.before[node], v.mine[node] = l.tail[node], make(chan struct{})
	l.tail[node] = v.mine[node]
	if l.depth[node]++; l.depth[node] == 1 {
		l.since[node] = time.Now()
	}
	l.visits++
	l.claims[v.owner].calls++
}

// leaveOut says whether too many calls are ahead on a node, and there were some
// for longer than patience; the owner then has nothing there that would have to be
// released.
func (v *visit) leaveOut(node int, patience time.Duration) bool {
	v.ls.mu.Lock()
	defer v.ls.mu.Unlock()
	if v.lane.depth[node] < maxDepth || time.Since(v.lane.since[node]) <= patience {
		return false
	}
	c := v.lane.claims[v.owner]
	c.leftOut = append(c.leftOut, node)
	return true
}

// wasLeftOut says whether the owner was never asked of the node.
func (v *visit) wasLeftOut(node int) bool {
	v.ls.mu.Lock()
	defer v.ls.mu.Unlock()
	return slices.Contains(v.lane.claims[v.owner].leftOut, node)
}

// letIn takes back that the node was left out.
func (v *visit) letIn(node int) {
	v.ls.mu.Lock()
	defer v.ls.mu.Unlock()
	c := v.lane.claims[v.owner]
	c.leftOut = slices.DeleteFunc(c.leftOut, func(n int) bool { return n == node })
}

// turn waits until the calls ahead on the node were answered. Each of them is
// bounded by the node's time-out.
func (v *visit) turn(node int) {
	if v.before[node] != nil {
		<-v.before[node]
	}
}

func (v *visit) leave(node int) {
	close(v.mine[node])
	v.ls.mu.Lock()
	defer v.ls.mu.Unlock()
	if v.lane.tail[node] == v.mine[node] {
		v.lane.tail[node] = nil
	}
	v.lane.depth[node]--
	v.doneLocked()
}

func (v *visit) end() {
	v.ls.mu.Lock()
	defer v.ls.mu.Unlock()
	v.doneLocked()
}

func (v *visit) doneLocked() {
	l := v.lane
	c := l.claims[v.owner]
	if c.calls--; c.calls == 0 && (c.released || len(c.leftOut) == 0) {
		delete(l.claims, v.owner)
	}
	if l.visits--; l.visits == 0 {
		delete(v.ls.byKey, l.key)
	}
}

// release notes that the owner's release was asked for, so that nothing of it
// that is still waiting for its turn is sent.
func (v *visit) release() {
	v.ls.mu.Lock()
	defer v.ls.mu.Unlock()
	v.lane.claims[v.owner].released = true
}

func (v *visit) isReleased() bool {
	v.ls.mu.Lock()
	defer v.ls.mu.Unlock()
	return v.lane.claims[v.owner].released
}
