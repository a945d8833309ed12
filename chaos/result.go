package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/distmutex/distmutex/chaos/internal/history"
	"github.com/distmutex/distmutex/internal/fairness"
)

// result is what a run found.
type result struct {
	config
	took     time.Duration
	seen     seen
	faults   map[string]int // how often each came about
	attempts int
	granted  int
	refused  map[string]int
	late     time.Duration // the latest that a loss was told after the end of validity
	latency  []time.Duration
	calm     int64         // when the faults were over
	longest  time.Duration // wait of those who got the lock
	patient  time.Duration // the same, of those who asked in the calm
	windows  int

	twoIn    []history.Violation
	undue    []history.Violation // two in where that is not promised against
	laws     []history.Violation // other laws
	problems []string
	strikes  []*strike
	holds    []history.Hold
}

func (r *result) judge(w *world, strikes []*strike, all []history.Hold) {
	r.strikes, r.holds = strikes, all
	r.countHolds()
	r.countFaults(w)
	for _, v := range history.TwoHolders(all) {
		if w.promised(strikes, v) {
			r.twoIn = append(r.twoIn, v)
		} else {
			r.undue = append(r.undue, v)
		}
	}
	var linear []history.Violation
	linear, r.windows = history.Linear(all, r.own())
	if len(r.twoIn)+len(r.undue) == 0 {
		r.laws = append(r.laws, linear...) // else they are the same, told twice
	}
	r.laws = append(r.laws, history.Truth(all)...)
	if !r.own() {
		return
	}
	r.laws = append(r.laws, history.Tokens(all)...)
	if r.seen.Mixed > 0 {
		r.problems = append(r.problems, fmt.Sprintf("I3 %d accesses with another's token", r.seen.Mixed))
	}
	if r.seen.Lost > 0 {
		r.problems = append(r.problems, fmt.Sprintf("I3 %d updates were lost", r.seen.Lost))
	}
}

func (r *result) countHolds() {
	r.attempts, r.refused = len(r.holds), make(map[string]int)
	for _, h := range r.holds {
		switch {
		case h.Granted():
			r.granted++
			wait := time.Duration(h.Returned - h.Invoked)
			if r.longest = max(r.longest, wait); h.Invoked >= r.calm {
				r.patient = max(r.patient, wait)
			}
			if strings.HasPrefix(h.Key, ownKey) { // nobody contends
				r.latency = append(r.latency, wait)
			}
		case h.Refused != "":
			r.refused[h.Refused]++
		}
		if h.Lost != 0 && !paused(r.strikes, h) {
			r.late = max(r.late, time.Duration(h.Lost-h.Until))
		}
	}
	slices.Sort(r.latency)
}

// fairness is Jain's index of the turns at contended locks, by worker; 0 if there
// were none.
func (r *result) fairness() float64 {
	turns := make(map[string]float64)
	for _, h := range r.holds {
		if h.Granted() && !strings.HasPrefix(h.Key, ownKey) {
			turns[h.Worker()]++
		}
	}
	if len(turns) == 0 {
		return 0
	}
	all := r.Clients * r.Workers // with those who had none
	return fairness.Jain(slices.AppendSeq(make([]float64, 0, all), maps.Values(turns))[:all])
}

func (r *result) countFaults(w *world) {
	r.faults = make(map[string]int)
	for _, s := range r.strikes {
		r.faults[s.Fault]++
	}
	r.faults["F14 request lost"] = int(w.counts.LostRequests.Load())
	r.faults["F14 reply lost"] = int(w.counts.LostReplies.Load())
	r.faults["F15 request late"] = int(w.counts.Late.Load())
	r.faults["F16 request twice"] = int(w.counts.Twice.Load())
	r.faults["F14 push lost"] = int(w.counts.LostPushes.Load())
	r.faults["F15 push late"] = int(w.counts.LatePushes.Load())
	r.faults["F16 push twice"] = int(w.counts.TwicePushes.Load())
}

// promised says whether exclusion was, while a violation came about: in the
// mode for that, and unless a fault shortly before turned out to be beyond it.
func (w *world) promised(strikes []*strike, v history.Violation) bool {
	if w.Mode != minority {
		return false
	}
	return !slices.ContainsFunc(strikes, func(s *strike) bool {
		return s.undue && s.From <= v.To && v.From <= s.To+int64(w.delay())
	})
}

// paused says that the holder's process did not run when it was to be told.
func paused(strikes []*strike, h history.Hold) bool {
	return slices.ContainsFunc(strikes, func(s *strike) bool {
		return s.kind.clients && s.Client >= 0 && s.From <= h.Lost && h.Until <= s.To && strings.HasPrefix(h.ID, fmt.Sprintf("c%d.", s.Client))
	})
}

// failures says in words what broke a promise of ours.
func (r *result) failures() (all []string) {
	if !r.own() {
		return nil
	}
	if r.Make == ours {
		for _, v := range r.twoIn {
			all = append(all, v.String())
		}
	}
	for _, v := range r.laws {
		all = append(all, v.String())
	}
	return append(all, r.problems...)
}

// summary is what is kept of a result.
type summary struct {
	Flavour, Make, Mode           string
	Nodes                         int
	Seed                          uint64
	Seconds                       float64
	Attempts, Granted, Holds      int
	Writes, Refused, Lost, Mixed  int
	TwoIn, TwoInUnpromised        int
	Laws                          []string
	Problems                      []string
	Faults, Unsuccessful          map[string]int
	Windows                       int
	P50, P99, LatestLoss, Longest string
	LongestWait, LongestCalmWait  string
	Jain                          float64
}

func (r *result) summary() summary {
	s := summary{
		Flavour: string(r.Flavour), Make: r.Make, Mode: r.Mode, Nodes: r.Nodes, Seed: r.Seed, Seconds: r.took.Seconds(),
		Attempts: r.attempts, Granted: r.granted, Holds: r.seen.Holds,
		Writes: r.seen.Writes, Refused: r.seen.Stale, Lost: r.seen.Lost, Mixed: r.seen.Mixed,
		TwoIn: len(r.twoIn), TwoInUnpromised: len(r.undue), Problems: r.problems,
		Faults: r.faults, Unsuccessful: r.refused, Windows: r.windows,
		P50: r.percentile(50), P99: r.percentile(99), LatestLoss: r.late.String(),
		LongestWait: r.longest.String(), LongestCalmWait: r.patient.String(), Jain: r.fairness(),
	}
	var longest int64
	for _, v := range slices.Concat(r.twoIn, r.undue) {
		longest = max(longest, v.To-v.From)
	}
	s.Longest = time.Duration(longest).String()
	for _, v := range r.laws {
		s.Laws = append(s.Laws, v.String())
	}
	return s
}

func (r *result) percentile(p int) string {
	if len(r.latency) == 0 {
		return ""
	}
	return r.latency[(len(r.latency)-1)*p/100].Round(10 * time.Microsecond).String()
}

// write keeps the result, and pictures of the first violations.
func (r *result) write() error {
	text, err := json.MarshalIndent(r.summary(), "", "\t")
	if err != nil {
		return err
	}
	errs := []error{os.WriteFile(r.file(".json"), append(text, '\n'), 0o600)}
	all := slices.Concat(r.laws, r.twoIn, r.undue)
	for i, v := range all[:min(len(all), 10)] {
		p := history.NewPicture(v, r.holds, r.marks())
		name := fmt.Sprint("-violation-", i+1)
		errs = append(errs, create(r.file(name+".txt"), p.Text), create(r.file(name+".html"), p.HTML))
	}
	return errors.Join(errs...)
}

func create(name string, write func(io.Writer) error) error {
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(write(file), file.Close())
}

func (r *result) marks() (all []history.Mark) {
	for _, s := range r.strikes {
		label := s.Fault
		if len(s.Nodes) > 0 {
			label += fmt.Sprint(" nodes ", s.Nodes)
		}
		if s.Client >= 0 {
			label += fmt.Sprint(" client ", s.Client)
		}
		all = append(all, history.Mark{From: s.From, To: s.To, Label: label})
	}
	return all
}
