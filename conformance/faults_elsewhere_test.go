package conformance_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// elsewhere are the mistakes of the catalogue (M01 to M50) that no backend can
// make alone, or none that one sees from outside, and the tests that notice them.
var elsewhere = map[string]string{
	"M08 a quorum of half":                        "backend/quorum TestMajorityIsOfAllConfiguredNodes",
	"M12 validity computed before a raise":        "mutex TestAcquisitionThatTookLongerThanItsTermIsNone",
	"M13 no allowance for drift":                  "backend TestUntilAndEnded",
	"M15 an owner used for two attempts (T6)":     "mutex TestOwnersAreRandomAndForOneAttempt",
	"M19 the token of one node":                   "backend/quorum TestTokenNeedsAMajorityOfTheConfiguredNodes",
	"M20 a largest token that no majority has":    "backend/quorum TestTokenIsRaisedOnAMajority",
	"M21 a raise on any majority (T2)":            "backend/quorum TestRaiseGoesOnlyToNodesThatGranted",
	"M22 a late grant counted (T3)":               "backend/quorum TestLateGrantAboveTheTokenDoesNotCount",
	"M32 a loss that is told late, or never":      "mutex TestHoldIsLostInTimeThoughNoServerAnswers",
	"M34 a cancel after Lock that ends the lease": "mutex TestCancelAfterLockChangesNothing",
	"M36 waiting without a rest":                  "mutex TestPolicyThatDoesNotRestIsNoBusyLoop",
	"M39 a restart judged by uptime alone":        "backend/redis TestJudgementOfWhatAServerForgot",
	"M40 a node that counts since it has data":    "backend/redis TestForgetfulNodeDoesNotCount",
	"M45 a race on a handle (with -race)":         "mutex TestManyUnlocksOfOneHoldSendOneRelease",
	"M47 no longest hold":                         "mutex TestMaxHoldBoundsAHoldThatIsRenewed",
}

// Each mistake of the catalogue is planted here, or noticed elsewhere by a test
// that there is.
func TestEveryMistakeOfTheCatalogueIsNoticed(t *testing.T) {
	for n := 1; n <= 50; n++ {
		id, planted, other := fmt.Sprintf("M%02d", n), 0, ""
		for _, p := range faults() {
			if strings.Contains(p.fault, id) {
				planted++
			}
		}
		for fault, test := range elsewhere {
			if strings.HasPrefix(fault, id+" ") {
				other = test
			}
		}
		if (planted > 0) == (other != "") {
			t.Errorf("%s: planted %d times, and noticed by %q", id, planted, other)
		}
	}
	for fault, test := range elsewhere {
		dir, name, _ := strings.Cut(test, " ")
		files, err := filepath.Glob(filepath.Join("..", filepath.FromSlash(dir), "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		there := false
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			there = there || strings.Contains(string(text), "\nfunc "+name+"(")
		}
		if !there {
			t.Errorf("%s: there is no %s in %s", fault, name, dir)
		}
	}
}
