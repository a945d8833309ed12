package conformance

import (
	"cmp"
	"fmt"
	"html"
	"slices"
	"strings"
)

// The measures of a picture, in pixels.
const (
	column = 23 // for each event
	row    = 30 // for each owner
	gutter = 190
)

// canvas is a picture of a history: a row for each owner, a column for each
// event, so that what happened in a microsecond and what took a second can both
// be read.
type canvas struct {
	*history
	v       *violation
	calls   []*call
	columns map[int]int // by event
	events  []int
	rows    map[string]int // by owner
	owners  []string
	names   map[string]string
	left    int // calls left out
	top     int
	b       strings.Builder
}

func (h *history) picture(heading string, v *violation, seed uint64) string {
	c := &canvas{history: h, v: v, columns: make(map[int]int), rows: make(map[string]int), names: h.names()}
	c.choose()
	text := wrap(heading, 110)
	c.top = 30 + 18*len(text) + 50
	width, height := gutter+column*(len(c.events)+1), c.top+row*len(c.owners)+60
	fmt.Fprintf(&c.b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="Helvetica, Arial, sans-serif" font-size="12">`+"\n", max(width, 900), height)
	c.b.WriteString(`<rect width="100%" height="100%" fill="white"/>` + "\n")
	for i, line := range text {
		c.text(12, 24+18*i, 14, "black", "bold", line)
	}
	if v != nil {
		c.text(12, 24+18*len(text), 14, "#c00000", "bold", v.text)
	}
	c.text(12, c.top-28, 12, "#606060", "normal", fmt.Sprintf("Seed %d. A column is an event (acq, wt, ren and rel are short for the verbs); %d other calls are left out.", seed, c.left))
	c.axis()
	c.shade()
	for _, owner := range c.owners {
		c.lane(owner)
	}
	for _, x := range c.calls {
		c.box(x)
	}
	c.legend(height - 22)
	c.b.WriteString("</svg>")
	return c.b.String()
}

// choose picks the calls that are drawn.
func (c *canvas) choose() {
	var calls []*call
	calls, c.left = c.window(c.v)
	for _, x := range calls {
		switch {
		case x.verb == "fault":
		case !slices.Contains(c.owners, x.asked.Owner):
			c.rows[x.asked.Owner] = len(c.owners)
			c.owners = append(c.owners, x.asked.Owner)
		}
		c.calls = append(c.calls, x)
		c.events = append(c.events, x.began)
		if x.ended > 0 {
			c.events = append(c.events, x.ended)
		}
	}
	slices.Sort(c.events)
	for i, e := range c.events {
		c.columns[e] = i
	}
}

// x is where an event is drawn; the next one that is, if it is not.
func (c *canvas) x(event int) int {
	i, _ := slices.BinarySearch(c.events, event)
	return gutter + column*i
}

func (c *canvas) y(owner string) int { return c.top + row*c.rows[owner] }

func (c *canvas) bottom() int { return c.top + row*len(c.owners) }

// axis tells the time, every few columns.
func (c *canvas) axis() {
	for i := 0; i < len(c.events); i += 5 {
		x := gutter + column*i
		c.line(x, c.top-6, x, c.bottom(), "#e4e4e4")
		c.text(x-4, c.top-10, 10, "#606060", "normal", c.since(c.events[i])+" ms")
	}
}

// shade marks the time in which two held the key.
func (c *canvas) shade() {
	var both []*hold
	for _, a := range c.holds() {
		if c.v != nil && c.v.call == nil && slices.Contains(c.v.owners, a.owner) {
			both = append(both, a)
		}
	}
	if len(both) != 2 {
		return
	}
	from, to := c.x(both[1].told), min(c.end(both[0]), c.end(both[1]))
	if from < to {
		c.rect(from, c.top-4, to-from, c.bottom()-c.top+8, "#ffd0d0", "none", "two held the key at once")
	}
}

// end is where a hold ends: its Release, or the end of its validity.
func (c *canvas) end(a *hold) int {
	for i, e := range c.events {
		if e > a.told && !c.beforeEnd(e, a) {
			return gutter + column*i
		}
	}
	return gutter + column*len(c.events)
}

// lane is the name of an owner, and its hold as a bar.
func (c *canvas) lane(owner string) {
	y := c.y(owner)
	c.line(0, y+row, gutter+column*len(c.events), y+row, "#f0f0f0")
	label, client := c.names[owner], ""
	for _, x := range c.calls {
		if x.asked.Owner == owner {
			client = x.client
			break
		}
	}
	for _, a := range c.holds() {
		if a.owner != owner {
			continue
		}
		if a.first > 0 {
			client += fmt.Sprintf(", token %d", a.first)
		}
		x, fill := c.x(a.told), "#c9e7c9"
		if c.v != nil && slices.Contains(c.v.owners, owner) {
			fill = "#f2a0a0"
		}
		c.rect(x, y+3, c.end(a)-x, row-6, fill, "none", c.names[owner]+" holds the key")
	}
	c.text(12, y+19, 13, "black", "bold", label)
	c.text(40, y+19, 12, "#404040", "normal", client)
}

// box is a call, from its begin to its end.
func (c *canvas) box(x *call) {
	if x.verb == "fault" {
		at := c.x(x.began)
		c.line(at, c.top-6, at, c.bottom()+4, "#8000c0")
		c.text(at+2, c.bottom()+14, 11, "#8000c0", "normal", x.client)
		return
	}
	from, to := c.x(x.began), gutter+column*len(c.events)
	if x.ended > 0 {
		to = c.x(x.ended)
	}
	fill, stroke := "white", "#808080"
	switch {
	case x.unknown():
		fill = "#ffe08a"
	case x.granted():
		fill = "#3f9b3f"
	case x.err != nil:
		fill = "#b9b9b9"
	}
	if c.v.is(x) {
		fill, stroke = "#ff6060", "#c00000"
	}
	y := c.y(x.asked.Owner)
	tip := fmt.Sprintf("%s: %s: %s", c.names[x.asked.Owner], x.question(), x.answer())
	c.rect(from+1, y+8, max(to-from-2, 8), row-16, fill, stroke, tip)
	label := x.verb
	if to-from < 2*column {
		label = brief[x.verb]
	}
	color := "black"
	if x.granted() {
		color = "white"
	}
	c.text(from+4, y+19, 10, color, "normal", label)
}

// brief are the verbs where there is little room.
var brief = map[string]string{"acquire": "acq", "wait": "wt", "renew": "ren", "release": "rel"}

func (c *canvas) legend(y int) {
	x := 12
	for _, k := range [][2]string{
		{"#3f9b3f", "granted"}, {"white", "nil"}, {"#b9b9b9", "refused or lost"}, {"#ffe08a", "unknown"},
		{"#c9e7c9", "holds the key"}, {"#f2a0a0", "its hold is in question"}, {"#ffd0d0", "two at once"},
	} {
		c.rect(x, y, 14, 12, k[0], "#808080", "")
		c.text(x+19, y+10, 11, "#404040", "normal", k[1])
		x += 40 + 7*len(k[1])
	}
}

func (c *canvas) text(x, y, size int, color, weight, s string) {
	fmt.Fprintf(&c.b, `<text x="%d" y="%d" font-size="%d" font-weight="%s" fill="%s">%s</text>`+"\n", x, y, size, weight, color, html.EscapeString(s))
}

func (c *canvas) line(x1, y1, x2, y2 int, color string) {
	fmt.Fprintf(&c.b, `<line x1="%d" y1="%d" x2="%d" y2="%d" stroke="%s"/>`+"\n", x1, y1, x2, y2, color)
}

func (c *canvas) rect(x, y, w, h int, fill, stroke, tip string) {
	fmt.Fprintf(&c.b, `<rect x="%d" y="%d" width="%d" height="%d" fill="%s" stroke="%s"><title>%s</title></rect>`+"\n",
		x, y, max(w, 0), h, fill, cmp.Or(stroke, "none"), html.EscapeString(tip))
}

// wrap breaks a text into lines.
func wrap(s string, width int) (lines []string) {
	line := ""
	for word := range strings.FieldsSeq(s) {
		if line != "" && len(line)+1+len(word) > width {
			lines, line = append(lines, line), ""
		}
		line = strings.TrimSpace(line + " " + word)
	}
	return append(lines, line)
}
