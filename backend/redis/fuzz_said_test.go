package redis_test

import "strconv"

// said is an answer, and what it can mean.
type said struct {
	v       any
	plain   bool
	native  bool // it may have taken the server to have native commands
	deleted bool // a native command says that it has deleted the lock
}

// means lists what a verb may take the answer for, by doc/wire.md.
func (s said) means(verb string) []string {
	all := []string{s.script(verb)}
	if s.plain {
		all = []string{"unknown"}
	}
	if s.plain || s.native {
		all = append(all, s.command(verb)...)
	}
	if s.plain && s.deleted && verb == "release" {
		all = append(all, "done")
	}
	return all
}

// script is what the answer of a script means.
func (s said) script(verb string) string {
	a, _ := s.v.([]any)
	if len(a) == 0 {
		return "unknown"
	}
	status, ok := a[0].(int64)
	if !ok {
		return "unknown"
	}
	if verb != "acquire" {
		switch {
		case len(a) > 1:
		case status == 1, status == 0 && verb == "release":
			return "done"
		case status == 0, status == -1:
			return "lost"
		}
		return "unknown"
	}
	switch _, isLeft := at(a, 2).(int64); {
	case status == 1 && len(a) == 4 && number(a[1], 1) && number(a[2], 0) && number(a[3], 0) && !larger(a[3], a[1]):
		return "done"
	case status == -1 && len(a) == 3 && number(a[1], 0) && number(a[2], 0),
		status == 0 && len(a) == 4 && number(a[1], 0) && isLeft && number(a[3], 0):
		return "held"
	}
	return "unknown"
}

func at(a []any, i int) any {
	if i < len(a) {
		return a[i]
	}
	return nil
}

// number says whether v is the text of a number from least on; up to 2^53 if it
// is a token's.
func number(v any, least uint64) bool {
	text, _ := v.(string)
	n, err := strconv.ParseUint(text, 10, 64)
	return err == nil && n >= least && n <= 1<<53
}

// command is what the answer of a command means, where all of a verb's commands
// are answered alike.
func (s said) command(verb string) []string {
	_, failed := s.v.(error)
	array, isArray := s.v.([]any)
	switch {
	case failed:
		return []string{"unknown"}
	case verb == "acquire" && s.plain && s.v == "OK":
		return []string{"done"}
	case verb == "acquire" && s.plain && s.v == nil:
		return []string{"held"}
	case verb == "renew" && s.v == "OK" && s.native:
		return []string{"done"}
	case verb == "renew" && s.v == nil:
		return []string{"lost"}
	case verb == "release" && (s.v == nil || s.v == int64(1)): // nobody has the key, or 1 was deleted, or has it
		return []string{"done", "lost"}
	case s.plain && verb != "acquire" && (!isArray || len(array) > 0):
		return []string{"lost"} // by GET, whose answer is not the owner
	}
	return []string{"unknown"}
}

// larger compares the texts of two numbers.
func larger(a, b any) bool {
	var n [2]uint64
	for i, v := range []any{a, b} {
		text, _ := v.(string)
		n[i], _ = strconv.ParseUint(text, 10, 64)
	}
	return n[0] > n[1]
}
