package quorum

import "sync"

// lanes keep the calls that belong to one key in order, node by node: a release
// may not overtake its acquire, nor may the next acquire of this process meet
// its own last key. A lane lives while calls of its key are under way.
type lanes struct {
	nodes int
	mu    sync.Mutex
	byKey map[string]*lane
}

type lane struct {
	key      string
	visits   int                 // verbs, and their calls, that are not done
	tail     []chan struct{}     // for each node, closed when its last call was answered
	released map[string]struct{} // owners whose release was asked for
}

// visit is one verb's places in a lane, by node.
type visit struct {
	ls           *lanes
	lane         *lane
	before, mine []chan struct{}
}

// enter opens a visit, to be ended with end.
func (ls *lanes) enter(key string) *visit {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	l := ls.byKey[key]
	if l == nil {
		l = &lane{key: key, tail: make([]chan struct{}, ls.nodes)}
		if ls.byKey == nil {
			ls.byKey = make(map[string]*lane)
		}
		ls.byKey[key] = l
	}
	l.visits++
	chans := make([]chan struct{}, 2*ls.nodes)
	return &visit{ls: ls, lane: l, before: chans[:ls.nodes], mine: chans[ls.nodes:]}
}

// queue takes a place behind all earlier calls to the node, to be left once.
func (v *visit) queue(node int) {
	v.ls.mu.Lock()
	defer v.ls.mu.Unlock()
	v.before[node], v.mine[node] = v.lane.tail[node], make(chan struct{})
	v.lane.tail[node] = v.mine[node]
	v.lane.visits++
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
	v.doneLocked()
}

func (v *visit) end() {
	v.ls.mu.Lock()
	defer v.ls.mu.Unlock()
	v.doneLocked()
}

func (v *visit) doneLocked() {
	if v.lane.visits--; v.lane.visits == 0 {
		delete(v.ls.byKey, v.lane.key)
	}
}

// release notes that owner's release was asked for, so that nothing of it that
// is still waiting for its turn is sent.
func (v *visit) release(owner string) {
	v.ls.mu.Lock()
	defer v.ls.mu.Unlock()
	if v.lane.released == nil {
		v.lane.released = make(map[string]struct{})
	}
	v.lane.released[owner] = struct{}{}
}

func (v *visit) isReleased(owner string) bool {
	v.ls.mu.Lock()
	defer v.ls.mu.Unlock()
	_, ok := v.lane.released[owner]
	return ok
}
