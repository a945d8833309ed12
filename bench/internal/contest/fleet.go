package contest

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

// fleet is the processes of one peer in one scenario.
type fleet struct {
	scenario, peer string
	servers        *servers
	length         time.Duration // the shortest round
	faulty         bool          // some of the servers will not answer
	all            []*process
	checks         *checks
	slow, gone     bool
}

type process struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	enc *json.Encoder
	dec *json.Decoder
}

// launch starts the processes and returns when all are ready. The first one
// writes a profile, if there is a name for it.
func launch(ctx context.Context, sc scenario, peer, profile string, s *servers) (*fleet, error) {
	f := &fleet{scenario: sc.name, peer: peer, servers: s, length: sc.length, faulty: sc.fault != nil}
	var err error
	if f.checks, err = openChecks(s.shared); err != nil {
		return nil, err
	}
	each := sc.job
	each.Peer, each.Shared, each.Profile, each.Addrs = peer, s.shared, profile, s.addrs
	for i := range sc.processes {
		each.First = i * each.Clients * each.Goroutines
		p, err := spawn(ctx, each)
		each.Profile = ""
		if err != nil {
			f.stop()
			return nil, err
		}
		f.all = append(f.all, p)
	}
	defer f.bound(2 * time.Minute)()
	for _, p := range f.all {
		var ready report
		if err := p.dec.Decode(&ready); err != nil {
			f.stop()
			return nil, fmt.Errorf("a process did not start: %w", err)
		}
	}
	return f, nil
}

func spawn(ctx context.Context, s spec) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self)
	cmd.Env = append(os.Environ(), childEnv+"=1")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{cmd, in, json.NewEncoder(in), json.NewDecoder(bufio.NewReader(out))}
	return p, p.enc.Encode(&s)
}

// bound ends processes that take far too long. What it returns calls it off.
func (f *fleet) bound(d time.Duration) func() bool {
	return time.AfterFunc(d, func() {
		for _, p := range f.all {
			p.cmd.Process.Kill()
		}
	}).Stop
}

// stop ends the processes. What they hold ends with the servers.
func (f *fleet) stop() {
	for _, p := range f.all {
		p.in.Close() // which ends them, unless a server keeps them waiting
	}
	defer f.bound(3 * time.Second)()
	for _, p := range f.all {
		p.cmd.Wait() // how they ended tells nothing any more
	}
}

// round lets all processes do their job at the same time.
func (f *fleet) round(ctx context.Context, length time.Duration) (record, error) {
	r := record{Scenario: f.scenario, Peer: f.peer, When: time.Now().UTC(), Load: loadAverage()}
	before, err := f.info(ctx)
	if err != nil {
		return r, err
	}
	defer f.bound(time.Minute + 10*length)()
	o := order{At: time.Now().Add(20*time.Millisecond + time.Duration(len(f.all))*time.Millisecond/2), For: length}
	for _, p := range f.all {
		if err := p.enc.Encode(&o); err != nil {
			return r, err
		}
	}
	middle, err := f.middle(ctx, o)
	if err != nil {
		return r, err
	}
	all := report{Sums: map[string]float64{}, Samples: map[string][]float64{}}
	for _, p := range f.all {
		var one report
		if err := p.dec.Decode(&one); err != nil {
			return r, fmt.Errorf("a process ended: %w", err)
		}
		if one.Err != "" {
			return r, errors.New(one.Err)
		}
		all.add(one)
	}
	after, err := f.info(ctx)
	if err != nil {
		return r, err
	}
	all.Sums["seconds"] /= float64(len(f.all))
	if middle.cycles == 0 {
		middle = after.less(before)
	}
	r.fill(all, middle)
	return r, nil
}

// middle is what the servers do in the middle half of a round: who begins to wait,
// and who is cut off while he waits, costs commands that belong to no cycle.
func (f *fleet) middle(ctx context.Context, o order) (info, error) {
	if f.faulty || len(f.servers.clients) == 0 {
		return info{}, nil
	}
	sleep(ctx, time.Until(o.At.Add(o.For/4)))
	before, err := f.info(ctx)
	if err != nil {
		return before, err
	}
	sleep(ctx, time.Until(o.At.Add(o.For*3/4)))
	after, err := f.info(ctx)
	return after.less(before), err
}

// info adds up what the servers say. Where some can't, it says nothing.
func (f *fleet) info(ctx context.Context) (info, error) {
	sum := info{calls: map[string]float64{}, cycles: float64(f.checks.cycles())}
	if f.faulty {
		return sum, nil
	}
	for _, c := range f.servers.clients {
		one, err := readInfo(ctx, c)
		if err != nil {
			return sum, err
		}
		sum = sum.plus(one)
	}
	return sum, nil
}

// add merges what two processes say.
func (r *report) add(other report) {
	r.Workers = append(r.Workers, other.Workers...)
	for name, v := range other.Sums {
		r.Sums[name] += v
	}
	for name, v := range other.Samples {
		r.Samples[name] = append(r.Samples[name], v...)
	}
}
