package quorum

import (
	"sync"
	"time"

	"github.com/distmutex/distmutex/backend"
)

// grants remembers the token of each lease that was granted, so that the same
// call sent again has the same answer: meanwhile a late node may have granted
// more than the majority stands at.
type grants struct {
	mu      sync.Mutex
	byOwner map[string]grant
	sweep   int // at this size those that have ended are looked for
}

type grant struct {
	token backend.Token
	ends  time.Time
	shut  map[int]bool // nodes on which it was released already
}

// keep notes or renews l. A renewal may assert less than the owner was told, or
// nothing. What is never released is forgotten after its end.
func (g *grants) keep(l backend.Lease) {
	now := time.Now()
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.byOwner) >= g.sweep {
		for owner, old := range g.byOwner {
			if !now.Before(old.ends) {
				delete(g.byOwner, owner)
			}
		}
		g.sweep = 2*len(g.byOwner) + 64
	}
	if g.byOwner == nil {
		g.byOwner = make(map[string]grant)
	}
	old := g.byOwner[l.Owner]
	g.byOwner[l.Owner] = grant{max(l.Token, old.token), l.Start.Add(l.TTL), old.shut}
}

// shut notes that the owner is released on a node although its hold goes on, so
// that nothing acquires with it there again.
func (g *grants) shut(owner string, node int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	old, ok := g.byOwner[owner]
	if !ok {
		return
	}
	if old.shut == nil {
		old.shut = make(map[int]bool)
	}
	old.shut[node] = true
	g.byOwner[owner] = old
}

func (g *grants) isShut(owner string, node int) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.byOwner[owner].shut[node]
}

// token is what the owner was told, while its lease lasts.
func (g *grants) token(owner string) (backend.Token, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	old, ok := g.byOwner[owner]
	return old.token, ok && time.Now().Before(old.ends)
}

func (g *grants) forget(owner string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.byOwner, owner)
}
