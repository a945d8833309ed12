package sim

import "time"

// cut says whether messages of one way between a client and a node get lost now.
// Those of a dead client always do.
func (w *world) cut(client, node int, way Way, now time.Duration) bool {
	if now >= w.death(client) {
		return true
	}
	for _, f := range w.plan.Faults {
		if f.Kind == Cut && f.lasts(now) && f.Clients>>client&1 == 1 && f.Nodes>>node&1 == 1 && (f.Way == Both || f.Way == way) {
			return true
		}
	}
	return false
}

// stops says whether the fault stops the client's process. Before and after it
// sleeps, a machine stops its processes with its clocks running.
func (f *Fault) stops(client int) bool {
	return (f.Kind == Stop || f.Kind == Sleep) && f.Client == client
}

func (f *Fault) lasts(now time.Duration) bool { return f.At <= now && now < f.At+f.For }

// until is the end of the longest fault of this kind that lasts now.
func (w *world) until(now time.Duration, is func(*Fault) bool) (end time.Duration) {
	for i := range w.plan.Faults {
		if f := &w.plan.Faults[i]; is(f) && f.lasts(now) {
			end = max(end, f.At+f.For)
		}
	}
	return end
}

// frozen is when the node thaws, if it is frozen now.
func (w *world) frozen(node int, now time.Duration) time.Duration {
	return w.until(now, func(f *Fault) bool { return f.Kind == Freeze && f.Node == node })
}

// stopped is when the client goes on, if it is stopped now.
func (w *world) stopped(client int, now time.Duration) time.Duration {
	return w.until(now, func(f *Fault) bool { return f.stops(client) })
}

// goesOn is when the client goes on, if one stop follows upon the other.
func (w *world) goesOn(client int, now time.Duration) time.Duration {
	for {
		wake := w.stopped(client, now)
		if wake <= now {
			return now
		}
		now = wake
	}
}

// lag is how much longer messages of the node take now.
func (w *world) lag(node int, now time.Duration) (by time.Duration) {
	for _, f := range w.plan.Faults {
		if f.Kind == Lag && f.Node == node && f.lasts(now) {
			by = max(by, f.By)
		}
	}
	return by
}

// death is when the client dies, or never.
func (w *world) death(client int) time.Duration {
	at := 1000 * day
	for _, f := range w.plan.Faults {
		if f.Kind == Die && f.Client == client {
			at = min(at, f.At)
		}
	}
	return at
}

// wasStopped says whether the client was stopped at any time between two instants.
func (w *world) wasStopped(client int, from, to time.Duration) bool {
	for _, f := range w.plan.Faults {
		if f.stops(client) && f.At <= to && from <= f.At+f.For {
			return true
		}
	}
	return false
}
