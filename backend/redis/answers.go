package redis

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/distmutex/distmutex/backend"
)

// What the scripts begin their answers with.
const (
	yes       = 1
	gone      = 0 // for acquire: held by another
	otherwise = -1
	unknown   = -2 // for acquire: the marker is another
)

// errAnswer never has the answer in it, which might be an owner.
var errAnswer = errors.New("the server answered what no script of ours does")

// reply is what a script said.
type reply struct {
	status int64
	token  backend.Token // acquire: the grant's, or the last one owned
	first  backend.Token // acquire: from where on they were nobody's
	left   time.Duration // held by another: the rest of the term; negative: it has none
	time   time.Time     // acquire, stand: the server's clock
	place  int64         // stand: how many are before the caller; negative: it stands in no line
	came   int64         // stand: when it came, in microseconds of the server's clock

	uncounted error // acquire: why a guarded node's answer does not count
}

// answers says what follows each status: a token, the first of several, what is
// left in milliseconds, a place in line, when its owner came, the server's clock.
// Whatever else is answered says nothing about the lock, and must not be taken for
// a refusal or a loss, which are definite.
type answers map[int64]string

var (
	acquireAnswers = answers{yes: "tcf", gone: "tlc", otherwise: "tc"}
	guardedAnswers = answers{yes: "tcf", gone: "tlc", otherwise: "tc", unknown: ""}
	statusAnswers  = answers{yes: "", gone: "", otherwise: ""}
)

func (a answers) read(vs []any) (r reply, err error) {
	if len(vs) == 0 {
		return reply{}, fmt.Errorf("%w: nothing", errAnswer)
	}
	status, ok := vs[0].(int64)
	form, known := a[status]
	if !ok || !known || len(form) != len(vs)-1 {
		return reply{}, fmt.Errorf("%w: %d values after status %d", errAnswer, len(vs)-1, status)
	}
	r.status = status
	for i, v := range vs[1:] {
		if err := r.fill(form[i], v); err != nil {
			return reply{}, err
		}
	}
	if form != "" && status == yes && (r.token == 0 || r.first > r.token) {
		return reply{}, fmt.Errorf("%w: a grant without a token, or one before its first", errAnswer)
	}
	return r, nil
}

// fill reads one value.
func (r *reply) fill(kind byte, v any) error {
	if kind == 'l' || kind == 'p' {
		n, ok := v.(int64)
		if !ok {
			return fmt.Errorf("%w: %T for a number", errAnswer, v)
		}
		if kind == 'l' {
			r.left = time.Duration(min(max(n, -1), forever.Milliseconds())) * time.Millisecond
		} else {
			r.place = max(n, -1)
		}
		return nil
	}
	text, _ := v.(string)
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n > uint64(backend.MaxToken) {
		return fmt.Errorf("%w: %T that is no number up to 2^53", errAnswer, v)
	}
	switch kind {
	case 't':
		r.token = backend.Token(n)
	case 'f':
		r.first = backend.Token(n)
	case 'a':
		r.came = int64(n)
	default:
		r.time = time.UnixMicro(int64(n))
	}
	return nil
}
