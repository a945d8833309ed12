package sim

import "time"

// rolls is a stream of numbers that depends on nothing but what it was made of
// (splitmix64).
type rolls struct{ x uint64 }

func rollsOf(seed int64, ids ...int) rolls {
	r := rolls{uint64(seed)}
	for _, id := range ids {
		r.x = r.next() ^ uint64(id)
	}
	r.next()
	return r
}

func (r *rolls) next() uint64 {
	r.x += 0x9e3779b97f4a7c15
	return mix(r.x)
}

func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// n is a number below n.
func (r *rolls) n(n int) int { return int(r.next() >> 1 % uint64(n)) }

// percent is true p times in a hundred.
func (r *rolls) percent(p int) bool { return r.n(100) < p }

// below is a time below d, to the nanosecond.
func (r *rolls) below(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	return time.Duration(r.n(int(d)))
}

func (r *rolls) between(lo, hi time.Duration) time.Duration { return lo + r.below(hi-lo) }

// around is a number from -most to most.
func (r *rolls) around(most int) int { return r.n(2*most+1) - most }

// some is a set of numbers below n, each in it p times in a hundred.
func (r *rolls) some(n, p int) (set uint) {
	for i := range n {
		if r.percent(p) {
			set |= 1 << i
		}
	}
	return set
}
