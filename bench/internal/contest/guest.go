package contest

import (
	"slices"
	"time"
)

// Guest is a peer of another module, with a server of its own kind. It takes part
// wherever all that a peer needs is one server.
type Guest struct {
	Name string

	// Start starts a server that keeps its data in dir. What stop returns is how it
	// ended.
	Start func(dir string) (addr string, stop func() error, err error)

	// Open makes a client, for leases of this term.
	Open func(addr string, ttl time.Duration) (Client, error)
}

// guests are those of this binary. They are set once, by Main.
var guests []Guest

func invite(all []Guest) {
	guests = all
	for i := range scenarios {
		sc := &scenarios[i]
		at := slices.Index(sc.peers, ours)
		if sc.job.Job != "cycles" && sc.job.Job != "handover" || sc.servers != 1 || at < 0 {
			continue
		}
		var names []string
		for _, g := range all {
			names = append(names, g.Name)
		}
		sc.peers = slices.Insert(slices.Clone(sc.peers), at, names...)
	}
}

// guest is the one of a name; nil: it is none.
func guest(name string) *Guest {
	if i := slices.IndexFunc(guests, func(g Guest) bool { return g.Name == name }); i >= 0 {
		return &guests[i]
	}
	return nil
}

// receive starts a guest's server.
func (h *host) receive(g *Guest) *servers {
	addr, stop, err := g.Start(h.TempDir())
	if err != nil {
		h.Fatalf("start a server of %s: %v", g.Name, err)
	}
	h.Cleanup(func() {
		if err := stop(); err != nil {
			h.Errorf("stop the server of %s: %v", g.Name, err)
		}
	})
	return &servers{shared: h.TempDir() + "/shared", addrs: []string{addr}}
}
