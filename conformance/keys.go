package conformance

import (
	"errors"
	"strings"

	"github.com/distmutex/distmutex/backend"
)

var keyChecks = []check{
	{"keys/any-bytes", 15, "A key is any 1 to 1024 bytes without NUL, and comes back as it was given.", 0, anyBytes},
	{"keys/apart", 1, "Keys that differ in anything at all are different locks.", 0, keysApart},
	{"owners/whole", 3, "Owners are compared whole: one that only resembles the holder neither renews, releases nor acquires its lease.", 0, ownersWhole},
}

// odd are bytes that mean something to some parser, glob, hash-tag rule or
// encoding. Each ends a key of its own.
var odd = []string{
	"", " ", "\n", "\r\n", "\t", ":", "::", "/", "//", "/..", ".", "*", "?", "[a]", "%", "%s", "%00", "\\", "\\0", "'", `"`, ";--",
	"{", "}", "{}", "{a}", "}{", "{{a}}", "$", "#", "|", "a", "A", "ä", "a\u0308", "\x7f", "\x80", "\xff\xfe", "\u202e", "0", "00", "-1",
	":token", ":fence", ":counter", ":queue", ":lock", ":owner", ":wait", ":dead", "-queue", ".token", "{}:token", ":1", ":1:token",
}

// oddKeys are keys of this run that differ in little.
func (t *trial) oddKeys() []string {
	var keys []string
	for _, s := range odd {
		keys = append(keys, t.key+s)
	}
	filler := strings.Repeat("k", backend.MaxKey-len(t.key)-1)
	keys = append(keys,
		"{"+t.key+"}", "{"+t.key, "}"+t.key, "\xff"+t.key, " "+t.key, // and what comes before a key
		"a:b"+t.key, "a:"+"b:"+t.key, "a"+":"+t.key+"b", // parts that meet elsewhere
		t.key+filler, t.key+filler+"1", t.key+filler+"2") // the longest
	return keys
}

func anyBytes(t *trial) {
	for _, key := range t.oddKeys() {
		want := t.lease(long)
		want.Key = key
		got := t.acquire(t.b, want)
		if got.Key != key || got.Owner != want.Owner {
			t.Errorf("Acquire of %q: key %q and owner, want both as asked", key, got.Key)
		}
		t.renew(t.b, got)
		t.release(t.b, got)
	}
}

// Cases 15 and 18.
func keysApart(t *trial) {
	var all []backend.Lease
	for _, key := range t.oddKeys() {
		want := t.lease(long)
		want.Key = key
		got, err := t.tryAcquire(t.b, want)
		if err != nil {
			t.Fatalf("Acquire of %q beside %d other keys: %v, want a grant", key, len(all), err)
		}
		all = append(all, got)
	}
	for i, held := range all {
		t.release(t.b, held)
		if i+1 < len(all) {
			t.renew(t.b, all[i+1]) // the next is none the worse
		}
	}
}

func ownersWhole(t *trial) {
	for i := range alike {
		// Each with the first, and with the next.
		t.unlike(alike[i], alike[(i+1)%len(alike)])
		if i > 1 {
			t.unlike(alike[0], alike[i])
			t.unlike(alike[i], alike[0])
		}
	}
}

// alike are owners that some comparison may take for each other. The # stands
// for what makes the owners of one attempt unique.
var alike = []string{
	"#worker-1", "#worker-10", "#worker-", "#WORKER-1", "#worker-1 ", "#worker-1\n", "#worker-1\x00", "#worker-1\x00a",
	"#worker-*", "#worker-?", "#.*", "#%", "1#", "01#", "1.0#", " 1#", "#\xff", "#\xfe", "#\xc3\xa4",
	"#" + strings.Repeat("x", 300), "#" + strings.Repeat("x", 301),
}

// unlike checks that other is not taken for the holder.
func (t *trial) unlike(owner, other string) {
	t.Helper()
	t.key += "'"
	mine := t.lease(long)
	unique := strings.NewReplacer("#", mine.Owner)
	mine.Owner = unique.Replace(owner)
	mine = t.acquire(t.b, mine)
	theirs := mine
	theirs.Owner = unique.Replace(other)
	if _, err := t.tryAcquire(t.peer, theirs); !errors.Is(err, backend.ErrHeld) {
		t.Errorf("Acquire by an owner similar to the holder: %v, want ErrHeld", err)
	}
	t.lost("Renew by a similar owner", func() error { return t.peer.Renew(t.ctx, theirs) })
	t.lostRelease("by a similar owner", t.peer, theirs)
	t.renew(t.b, mine)
	t.release(t.b, mine)
}
