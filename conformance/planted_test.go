package conformance_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/distmutex/distmutex/backend"
	"github.com/distmutex/distmutex/conformance"
)

// planted is a fault and the case that must find it.
type planted struct {
	fault string
	id    string
	plant func(*faulty)

	defect *defect // in place of plant, of a simulated store
}

func (p planted) harness() conformance.Harness {
	if p.defect != nil {
		return simulated(*p.defect)
	}
	return harness(p.plant)
}

func faults() []planted {
	return slices.Concat(holdFaults, termFaults, endFaults, tokenFaults, doorFaults, cancelFaults, waitFaults,
		historyFaults, lostFaults, lateFaults, endingFaults, outageFaults)
}

func harness(fault func(*faulty)) conformance.Harness {
	open := func(t testing.TB) backend.Backend {
		f := plant(fault)
		if f.close != nil {
			t.Cleanup(f.close)
		}
		return f
	}
	return conformance.Harness{Around: synctest.Test, New: open} // record makes the bubbles
}

func TestPlantedFaults(t *testing.T) {
	for _, p := range faults() {
		t.Run(strings.ReplaceAll(p.id, "/", "-")+" finds "+p.fault, func(t *testing.T) {
			r := record(t, p.harness(), p.id)
			if !r.failed || r.skipped {
				t.Fatalf("case %s did not fail\n%s", p.id, r)
			}
			for _, line := range r.log {
				if strings.HasPrefix(line, "broken rule "+p.id+": "+conformance.Rule(p.id)+"\n") {
					return
				}
				if strings.HasPrefix(line, "broken") {
					break
				}
			}
			t.Errorf("case %s failed without its rule\n%s", p.id, r)
		})
	}
}

// The same backend without a fault passes: so it was the fault that was found.
func TestNoFaultPlanted(t *testing.T) {
	for _, id := range conformance.IDs() {
		h := harness(nil)
		if conformance.NeedsFaults(id) {
			h = simulated(defect{})
		}
		if r := record(t, h, id); r.failed || r.skipped {
			t.Errorf("case %s:\n%s", id, r)
		}
	}
}

func TestEveryCaseFindsAFault(t *testing.T) {
	for _, id := range conformance.IDs() {
		if !slices.ContainsFunc(faults(), func(p planted) bool { return p.id == id }) {
			t.Errorf("no fault is planted that case %s must find", id)
		}
	}
}

func TestIDsAndRulesAreWellFormed(t *testing.T) {
	ids := conformance.IDs()
	for i, id := range ids {
		if slices.Index(ids, id) != i {
			t.Errorf("id %s is used twice", id)
		}
		if strings.Count(id, "/") != 1 || strings.Trim(id, "abcdefghijklmnopqrstuvwxyz-/") != "" {
			t.Errorf("id %q, want group/name in kebab-case", id)
		}
		if law := conformance.Law(id); law < 1 || law > 15 {
			t.Errorf("law of %s: %d", id, law)
		}
		if rule := conformance.Rule(id); !strings.HasSuffix(rule, ".") || strings.Count(rule, ".") != 1 {
			t.Errorf("rule of %s: %q, want one sentence", id, rule)
		}
	}
}
