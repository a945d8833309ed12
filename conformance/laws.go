package conformance

// law is one of the fifteen that distmutex is built on. Each case is a part of
// one of them.
type law struct {
	name, text string

	// Where no case can check it, whoever does.
	beyond string
}

// laws are numbered from 1.
var laws = [...]law{
	{"exclusion", "No two holds of one key overlap, and different keys are different locks.", ""},
	{"validity", "A lease lasts for its term, counted from before its request was sent.", ""},
	{"ownership", "Only the holder renews or releases a lease, and no Renew brings one back.", ""},
	{"repetition", "A call sent twice has the effect and the answer of one.", ""},
	{"tokens", "Each hold has a larger token than all holds of the key before it.", ""},
	{"loss in time", "A holder learns of a loss before its lease ends.", "package mutex keeps it, over any backend"},
	{"bounded renewal", "Nothing is renewed for ever, or after its end.", "package mutex keeps it, over any backend"},
	{"prompt cancel", "A call ends with its context, whatever the network does, and leaves nothing.", ""},
	{"late release", "A release can be made up for after its context has ended.", ""},
	{"no orphans", "What nobody holds is free, at the latest when its term ends.", ""},
	{"sick minority", "A minority of nodes, however sick, changes nothing.", ""},
	{"errors", "Held, lost, unreachable, cancelled and invalid are different answers.", ""},
	{"waking", "Every waiter gets its turn, and a wake-up is only a hint.", ""},
	{"endings", "What a client starts ends with the client.", ""},
	{"input", "Good input is taken as it is, and bad input refused at the door.", ""},
}

// outcome is what became of a case.
type outcome struct {
	ID      string  `json:"id"`
	Rule    string  `json:"rule"`
	Result  string  `json:"result"`
	Why     string  `json:"why,omitempty"` // it was not checked
	Seconds float64 `json:"seconds"`

	law     int
	backend string // its type
	works   string // what the harness does not claim, and the case has seen
}

// What Result may be.
const (
	held       = "held"
	broken     = "broken"
	notChecked = "not checked"
	inPart     = "held in part" // of a law: some cases were not checked
	elsewhere  = "elsewhere"    // of a law: no case of a backend
)
