package backend

import (
	"errors"
	"fmt"
	"strings"
)

// NodeState is a change in how a quorum uses one of its nodes, for whoever
// watches.
type NodeState struct {
	Name  string // as the node names itself, else "node" and its index
	Aside bool   // it is not asked, or its answers do not count
	Err   error  // why; nil if it is in use, or just silent
}

// QuorumError reports that a verb did not succeed on enough nodes, node by node.
//
// It is ErrHeld or ErrLost only where enough nodes answered for that to be
// definite; one node's refusal among others that did not answer is not.
type QuorumError struct {
	Op      string
	Key     string
	Need    int     // how many nodes had to agree
	Verdict error   // ErrHeld, ErrLost, or nil: too few nodes answered
	Nodes   []error // one for each node, in order: nil where it agreed or was not waited for
}

func (e *QuorumError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %q: ", e.Op, e.Key)
	if e.Verdict != nil {
		fmt.Fprintf(&b, "%v: ", e.Verdict)
	}
	fmt.Fprintf(&b, "fewer than %d of %d nodes agreed", e.Need, len(e.Nodes))
	sep := ": "
	for i, err := range e.Nodes {
		if err != nil {
			fmt.Fprintf(&b, "%s%s", sep, brief(i, err))
			sep = "; "
		}
	}
	return b.String()
}

// Unwrap gives the verdict and the causes of the nodes that did not answer. What
// would be definite of the whole is left out where it is only a node's: ErrHeld,
// ErrLost, and an *InvalidError that not every node gave.
func (e *QuorumError) Unwrap() []error {
	var all, refused []error
	if e.Verdict != nil {
		all = append(all, e.Verdict)
	}
	for _, err := range e.Nodes {
		var invalid *InvalidError
		switch {
		case err == nil, errors.Is(err, ErrHeld), errors.Is(err, ErrLost):
		case errors.As(err, &invalid):
			refused = append(refused, err)
		default:
			all = append(all, err)
		}
	}
	if len(refused) == len(e.Nodes) {
		return refused
	}
	return all
}

// ErrorType is a word for metrics and spans: held, lost or unreachable.
func (e *QuorumError) ErrorType() string {
	switch e.Verdict {
	case ErrHeld:
		return "held"
	case ErrLost:
		return "lost"
	}
	return "unreachable"
}

// brief is a node's error without the verb and the key, which the whole names.
func brief(i int, err error) string {
	var e *Error
	switch {
	case !errors.As(err, &e):
		return fmt.Sprintf("node %d: %v", i, err)
	case e.Node == "":
		return fmt.Sprintf("node %d: %v", i, e.Err)
	}
	return fmt.Sprintf("%s: %v", e.Node, e.Err)
}
