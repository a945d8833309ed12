package contest

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/pprof"
	"strconv"
	"time"
)

// childEnv is set in the processes that a run starts.
const childEnv = "DISTMUTEX_BENCH_PROCESS"

// job is what a process does in each round.
type job interface {
	round(o order, r *report) error
	close()
}

func newJob(s *spec) (job, error) {
	switch s.Job {
	case "cycles", "handover":
		return newCycles(s)
	case "holds":
		return newHolds(s)
	case "waiters":
		return newWaiters(s)
	case "tight":
		return newTight(s)
	}
	return nil, fmt.Errorf("there is no job %q", s.Job)
}

// child is the main function of a process of a run: it reads a spec, says that
// it is ready, and answers each order with a report until its input ends.
func child(in io.Reader, out io.Writer) error {
	dec, enc := json.NewDecoder(bufio.NewReader(in)), json.NewEncoder(out)
	var s spec
	if err := dec.Decode(&s); err != nil {
		return err
	}
	if s.Profile != "" {
		runtime.MemProfileRate = 16 << 10 // finer, but still cheap
	}
	j, err := newJob(&s)
	if err != nil {
		return err
	}
	defer j.close()
	if s.Profile != "" {
		end, err := profile(s.Profile)
		if err != nil {
			return err
		}
		defer end()
	}
	if err := enc.Encode(&report{}); err != nil {
		return err
	}
	for {
		var o order
		if err := dec.Decode(&o); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if err := enc.Encode(answer(j, o)); err != nil {
			return err
		}
	}
}

// profile samples where the time goes from now on and, over the process's life,
// where memory is allocated.
func profile(name string) (end func(), err error) {
	cpu, err := os.Create(name + ".cpu")
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(cpu); err != nil {
		return nil, err
	}
	return func() {
		pprof.StopCPUProfile()
		cpu.Close()
		if mem, err := os.Create(name + ".mem"); err == nil {
			pprof.Lookup("allocs").WriteTo(mem, 0)
			mem.Close()
		}
	}, nil
}

// answer carries an order out. Allocations and processor time are counted
// around the job, so they hold a little of the harness's own.
func answer(j job, o order) *report {
	r := &report{Sums: map[string]float64{}, Samples: map[string][]float64{}}
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	cpu := cpuTime()
	time.Sleep(time.Until(o.At))
	began := time.Now()
	if err := j.round(o, r); err != nil {
		r.Err = err.Error()
	}
	r.Sums["seconds"] = time.Since(began).Seconds()
	r.Sums["cpu"] = (cpuTime() - cpu).Seconds()
	runtime.ReadMemStats(&after)
	r.Sums["mallocs"] = float64(after.Mallocs - before.Mallocs)
	r.Sums["bytes"] = float64(after.TotalAlloc - before.TotalAlloc)
	return r
}

func itoa(n int) string { return strconv.Itoa(n) }

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
