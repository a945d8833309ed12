package network

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strconv"
)

// reply is one value of the Redis protocol, version 2 or 3, that a server sent:
// an answer, or a push, which nobody asked for.
type reply struct {
	raw  []byte
	push bool // a message of a channel, if the connection has subscribed to one
}

// readReply reads one value.
func readReply(in *bufio.Reader) (r reply, err error) {
	err = r.value(in)
	_, first, _ := bytes.Cut(r.raw, []byte("\r\n"))
	r.push = err == nil && (r.raw[0] == '>' || r.raw[0] == '*') && bytes.HasPrefix(first, []byte("$7\r\nmessage\r\n"))
	return r, err
}

func (r *reply) value(in *bufio.Reader) error {
	line, err := in.ReadSlice('\n')
	if err != nil {
		return err
	}
	r.raw = append(r.raw, line...)
	kind, values := line[0], 0
	switch kind {
	case '+', '-', ':', '_', '#', ',', '(':
		return nil
	case '$', '!', '=', '*', '~', '>', '%', '|':
	default:
		return fmt.Errorf("not a reply: %q", line)
	}
	n, err := strconv.Atoi(string(bytes.TrimRight(line[1:], "\r\n")))
	if err != nil || n > longest {
		return fmt.Errorf("not a reply: %q", line)
	}
	switch kind {
	case '$', '!', '=':
		if n < 0 {
			return nil
		}
		begin := len(r.raw)
		r.raw = append(r.raw, make([]byte, n+2)...)
		_, err = io.ReadFull(in, r.raw[begin:])
		return err
	case '%':
		values = 2 * n
	case '|':
		values = 2*n + 1 // what it is about
	default:
		values = n
	}
	for range values {
		if err := r.value(in); err != nil {
			return err
		}
	}
	return nil
}
