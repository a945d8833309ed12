package contest

import (
	"context"
	"time"
)

// tight locks and unlocks with nothing around it, where a look at the clock
// would take longer than the lock.
type tight struct {
	c Client
	l Lock
}

func newTight(s *spec) (*tight, error) {
	c, err := open(s)
	if err != nil {
		return nil, err
	}
	return &tight{c, c.Mutex("bench:one")}, nil
}

func (j *tight) close() { j.c.Close() }

func (j *tight) round(o order, r *report) error {
	ctx := context.Background()
	began := time.Now()
	n := 0
	for time.Since(began) < o.For {
		for range 1000 {
			if err := j.l.Lock(ctx); err != nil {
				return err
			}
			if err := j.l.Unlock(); err != nil {
				return err
			}
		}
		n += 1000
	}
	r.Workers = []worker{{Cycles: n}}
	r.Sums["per cycle"] = micros(time.Since(began)) * 1000 / float64(n)
	return nil
}
