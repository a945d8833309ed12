package network

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// request is one command of the Redis protocol, as it was sent.
type request struct {
	raw  []byte
	verb string // in small letters
}

// mutates says that the request belongs to a lock, and that sending it alone, on
// a connection of its own, means the same.
func (r request) mutates() bool {
	switch r.verb {
	case "eval", "evalsha", "set", "del", "delex", "delifeq":
		return true
	}
	return false
}

const longest = 1 << 20 // of a request; a lock's are far smaller

// readRequest reads one command: an array of bulk strings, which is what all
// clients send.
func readRequest(in *bufio.Reader) (request, error) {
	var r request
	parts, err := r.length(in, '*')
	if err != nil {
		return r, err
	}
	for i := range parts {
		size, err := r.length(in, '$')
		if err != nil {
			return r, err
		}
		begin := len(r.raw)
		r.raw = append(r.raw, make([]byte, size+2)...)
		if _, err := io.ReadFull(in, r.raw[begin:]); err != nil {
			return r, err
		}
		if i == 0 {
			r.verb = strings.ToLower(string(r.raw[begin : begin+size]))
		}
	}
	return r, nil
}

// length reads a line of a kind and a number.
func (r *request) length(in *bufio.Reader, kind byte) (int, error) {
	line, err := in.ReadSlice('\n')
	if err != nil {
		return 0, err
	}
	r.raw = append(r.raw, line...)
	n, err := strconv.Atoi(strings.TrimRight(string(line[1:]), "\r\n"))
	if err != nil || line[0] != kind || n < 0 || n > longest {
		return 0, fmt.Errorf("not a request: %q", line)
	}
	return n, nil
}
