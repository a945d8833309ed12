package contest

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/distmutex/distmutex/internal/fairness"
)

// record is what one peer did in one round. A scenario's file has one a line.
type record struct {
	Scenario, Peer string
	Round          int
	When           time.Time
	Load           string             // of the machine, just before
	Values         map[string]float64 // what columns show; times are in µs
	Commands       map[string]float64 `json:",omitempty"` // a cycle or renewal, by name
}

// fill works out what a round comes to.
func (r *record) fill(rep report, server info) {
	v := map[string]float64{}
	r.Values = v
	cycles, longest := 0.0, 0.0
	var each []float64
	for _, w := range rep.Workers {
		cycles += float64(w.Cycles)
		longest = max(longest, w.Longest)
		each = append(each, float64(w.Cycles))
	}
	for name, sum := range rep.Sums {
		v[name] = sum
	}
	v["cycles"], v["rate"] = cycles, cycles/rep.Sums["seconds"]
	v["longest"], v["jain"] = longest, fairness.Jain(each)
	v["allocs"], v["alloc bytes"] = v["mallocs"]/cycles, v["bytes"]/cycles
	v["client cpu"] = v["cpu"] / cycles * 1e6
	for name, samples := range rep.Samples {
		if name == "cycle" && len(samples) > 0 {
			v["first"] = samples[0]
			if len(samples) > 1 {
				samples = samples[1:]
			}
		}
		v[name+" median"], v[name+" p99"] = quantile(samples, 0.5), quantile(samples, 0.99)
		v[name+" max"] = quantile(samples, 1)
	}
	v["in pings"] = v["handover median"] / v["ping median"]
	v["in rested pings"] = v["handover median"] / v["rested ping median"]
	r.fillServer(server)
	for name := range v {
		if math.IsNaN(v[name]) || math.IsInf(v[name], 0) {
			delete(v, name) // there was nothing to divide
		}
	}
}

// fillServer has what the servers say. Of holds, the renewals count: one script
// each, or a SET with a condition where the server has that.
func (r *record) fillServer(server info) {
	v := r.Values
	if server.total() == 0 {
		return
	}
	of := server.cycles
	if _, waited := v["waiter commands"]; waited {
		return
	}
	if of == 0 {
		of = server.calls["evalsha"]
		if of == 0 {
			of = server.calls["set"]
		}
		v["renewals"] = of / v["seconds"]
		v["client cpu"] = v["cpu"] / of * 1e6
	}
	v["commands"] = server.total() / of
	v["server cpu"] = server.cpu / of * 1e6
	v["per read"] = of / server.reads
	r.Commands = map[string]float64{}
	for name, n := range server.calls {
		r.Commands[name] = n / of
	}
}

func (r record) write(w io.Writer) error {
	line, err := json.Marshal(r)
	if err == nil {
		_, err = w.Write(append(line, '\n'))
	}
	return err
}

// String is for whoever watches.
func (r record) String() string {
	var s strings.Builder
	for _, c := range []column{rate, median, handover, longest, perCycle, renewals, heapEach} {
		if v, ok := r.Values[c.key]; ok && v > 0 {
			fmt.Fprintf(&s, "%s %s  ", c.head, c.show(v))
		}
	}
	if n := r.Values["violations"] + r.Values["stale"]; n > 0 {
		fmt.Fprintf(&s, "VIOLATIONS %.0f", n)
	}
	return s.String()
}

// results are all records, by scenario and peer, in the order of rounds.
type results map[string]map[string][]record

func load(dir string) (results, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if err != nil {
		return nil, err
	}
	all := results{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(string(text)) {
			var r record
			if err := json.Unmarshal([]byte(line), &r); err != nil {
				return nil, fmt.Errorf("%s: %w", path, err)
			}
			if all[r.Scenario] == nil {
				all[r.Scenario] = map[string][]record{}
			}
			all[r.Scenario][r.Peer] = append(all[r.Scenario][r.Peer], r)
		}
	}
	return all, nil
}

// values of one figure over the rounds that have it.
func (a results) values(scenario, peer, key string) []float64 {
	var vs []float64
	for _, r := range a[scenario][peer] {
		if v, ok := r.Values[key]; ok {
			vs = append(vs, v)
		}
	}
	return vs
}

// ratios of one peer's figure to another's of the same round.
func (a results) ratios(scenario, peer, to, key string) []float64 {
	var vs []float64
	for _, r := range a[scenario][peer] {
		i := slices.IndexFunc(a[scenario][to], func(o record) bool { return o.Round == r.Round })
		if i < 0 {
			continue
		}
		if v, w := r.Values[key], a[scenario][to][i].Values[key]; v > 0 && w > 0 {
			vs = append(vs, v/w)
		}
	}
	return vs
}

// loadAverage is what the system says of the last minute; empty where it says
// nothing.
func loadAverage() string {
	b, _ := os.ReadFile("/proc/loadavg")
	one, _, _ := strings.Cut(string(b), " ")
	return one
}
