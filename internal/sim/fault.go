package sim

import "time"

// Kind is what goes wrong.
type Kind int

const (
	Cut    Kind = iota // messages between some clients and some nodes do not arrive
	Lag                // a node, or the way to it, is slow
	Freeze             // a node does nothing, and then all that came meanwhile
	Stop               // a client process does nothing for a while
	Die                // a client process ends
	Sleep              // a client's machine is suspended: see suspend
	Crash              // a node ends and comes back with its data
	Wipe               // it comes back without
	Rewind             // it comes back as it was a little earlier
	Flush              // a node forgets all it has while it runs
	Leap               // a node's clock jumps
	Steal              // somebody deletes a lock by hand
	kinds
)

// Way is which messages a Cut stops.
type Way int

const (
	Both Way = iota
	Requests
	Replies
)

// Fault is one thing that goes wrong at a time.
type Fault struct {
	Kind    Kind
	At, For time.Duration
	Node    int
	Client  int
	Clients uint          // of a Cut, as a set
	Nodes   uint          // of a Cut
	Way     Way           // of a Cut
	By      time.Duration // of a Lag, a Sleep, a Rewind or a Leap
	Key     int           // of a Steal
}

// fault draws one that any plan may have.
func (p *Plan) fault(r *rolls) Fault {
	f := Fault{
		Kind:   []Kind{Cut, Cut, Cut, Lag, Freeze, Stop, Stop, Crash, Crash, Die}[r.n(10)],
		At:     r.below(horizon * 3 / 4),
		For:    r.below(400 * ms),
		Node:   r.n(len(p.Nodes)),
		Client: r.n(len(p.Clients)),
	}
	switch f.Kind {
	case Cut:
		f.Clients, f.Nodes = r.some(len(p.Clients), 50), r.some(len(p.Nodes), 40)
		f.Way = []Way{Both, Both, Requests, Replies}[r.n(4)]
	case Lag:
		f.By = r.below(p.TTL / 2)
	case Die:
		if f.Client == 0 || r.percent(50) {
			f.Kind = Stop // somebody must be left
		}
	}
	if f.Kind == Stop && r.percent(40) {
		f.For = p.TTL + r.below(p.TTL)
	}
	f.For = min(f.For, horizon-f.At)
	return f
}

// own draws the faults that are the point of the plan's mode.
func (p *Plan) own(r *rolls) (all []Fault) {
	for range 1 + r.n(4) {
		f := Fault{At: r.below(horizon * 3 / 4), For: r.below(100 * ms), Node: r.n(len(p.Nodes))}
		switch {
		case p.Mode == Amnesia || p.Wild == Forgetful:
			f.Kind = []Kind{Wipe, Wipe, Rewind, Flush}[r.n(4)]
			f.By = r.below(300 * ms)
		case p.Mode == Jump:
			f.Kind, f.By = Leap, time.Hour
			return append(all, f)
		case p.Wild == Jumping:
			f.Kind, f.By = Leap, r.below(p.TTL)
			if r.percent(30) {
				f.By = time.Hour
			}
		case p.Wild == Stealing:
			f.Kind, f.Key = Steal, r.n(keys)
		default:
			return nil
		}
		all = append(all, f)
	}
	return all
}

var kindNames = [kinds]string{"cut", "lag", "freeze", "stop", "die", "sleep", "crash", "wipe", "rewind", "flush", "leap", "steal"}

func (k Kind) String() string { return kindNames[k] }
