package history

import (
	"cmp"
	"fmt"
	"html/template"
	"io"
	"slices"
)

// Mark is something else that happened: a fault.
type Mark struct {
	From, To int64
	Label    string
}

// Picture is a violation and what went on around it.
type Picture struct {
	Violation Violation
	Holds     []Hold // of its key, those near it
	Marks     []Mark
	from, to  int64
}

// NewPicture picks what is near a violation.
func NewPicture(v Violation, all []Hold, marks []Mark) *Picture {
	const around = 1_500_000_000 // nanoseconds
	p := &Picture{Violation: v, from: v.To, to: v.To}
	for _, h := range v.Holds {
		p.from = min(p.from, h.Invoked)
	}
	p.from, p.to = max(p.from, v.From-2*around)-around/3, p.to+around/3
	near := func(from, to int64) bool { return from <= p.to && to >= p.from }
	for _, h := range all {
		if h.Key == v.Key && (h.Granted() && near(h.Invoked, h.End()) || h.Refused != "" && near(h.Invoked, h.Invoked)) {
			p.Holds = append(p.Holds, h)
		}
	}
	slices.SortFunc(p.Holds, func(a, b Hold) int { return cmp.Compare(a.Invoked, b.Invoked) })
	for _, m := range marks {
		if near(m.From, m.To) {
			p.Marks = append(p.Marks, m)
		}
	}
	return p
}

// line is a line of the text.
type line struct {
	at   int64
	text string
}

// Text writes what happened, line by line, in milliseconds from the violation.
func (p *Picture) Text(w io.Writer) error {
	lines := p.lines()
	slices.SortStableFunc(lines, func(a, b line) int { return cmp.Compare(a.at, b.at) })
	if _, err := fmt.Fprintf(w, "%s\n\n", p.Violation); err != nil {
		return err
	}
	for _, l := range lines {
		if _, err := fmt.Fprintf(w, "%12.3f ms  %s\n", float64(l.at-p.Violation.From)/1e6, l.text); err != nil {
			return err
		}
	}
	return nil
}

func (p *Picture) lines() (all []line) {
	add := func(at int64, format string, args ...any) {
		if at != 0 {
			all = append(all, line{at, fmt.Sprintf(format, args...)})
		}
	}
	for _, h := range p.Holds {
		if !h.Granted() {
			add(h.Invoked, "%-14s asks for the lock, and does not get it: %s", h.ID, h.Refused)
			continue
		}
		add(h.Invoked, "%-14s asks for the lock", h.ID)
		add(h.Returned, "%-14s HAS IT, token %d", h.ID, h.Token)
		add(h.Believed, "%-14s last looked, and held it", h.ID)
		if h.End() == h.Until {
			add(h.Until, "%-14s its validity ends", h.ID)
		}
		add(h.Lost, "%-14s is told that it is lost", h.ID)
		add(h.Released, "%-14s gives it up", h.ID)
		add(h.Done, "%-14s has the answer of the release: %s", h.ID, h.Outcome)
		add(h.Killed, "%-14s has been killed by now", h.ID)
	}
	for _, m := range p.Marks {
		add(m.From, "  fault begins: %s", m.Label)
		add(m.To, "  fault is over: %s", m.Label)
	}
	return all
}

// bar is a line of the drawing, in pixels.
type bar struct {
	Y, X, Width int
	Ask         int // where the waiting began
	Label, Fill string
}

const (
	width  = 1000
	margin = 260
	pitch  = 22
)

// HTML draws the same: a line for each hold and each fault.
func (p *Picture) HTML(w io.Writer) error {
	var bars []bar
	x := func(at int64) int {
		at = min(max(at, p.from), p.to)
		return margin + int((at-p.from)*width/max(1, p.to-p.from))
	}
	add := func(label, fill string, ask, from, to int64) {
		bars = append(bars, bar{Y: 40 + pitch*len(bars), X: x(from), Width: max(1, x(to)-x(from)), Ask: x(ask), Label: label, Fill: fill})
	}
	for _, h := range p.Holds {
		if !h.Granted() {
			continue
		}
		fill := "#7a9cc6"
		if slices.ContainsFunc(p.Violation.Holds, func(v Hold) bool { return v.ID == h.ID }) {
			fill = "#c0392b"
		}
		add(fmt.Sprintf("%s token …%06d", h.ID, h.Token%1_000_000), fill, h.Invoked, h.Returned, h.End())
	}
	for _, m := range p.Marks {
		add(m.Label, "#bbb", m.From, m.From, m.To)
	}
	return page.Execute(w, map[string]any{
		"Title": p.Violation.String(), "Bars": bars, "Height": 60 + pitch*len(bars), "Width": margin + width + 20,
		"From": x(p.Violation.From), "To": max(x(p.Violation.To), x(p.Violation.From)+1), "Margin": margin,
		"Span": fmt.Sprintf("%.0f ms", float64(p.to-p.from)/1e6),
	})
}

var page = template.Must(template.New("").Funcs(template.FuncMap{"minus": func(a, b int) int { return a - b }}).Parse(`<!doctype html>
<meta charset="utf-8"><title>{{.Title}}</title>
<h3 style="font-family:sans-serif">{{.Title}}</h3>
<p style="font-family:sans-serif">Thin: waits for the lock. Thick: relies on it, from the moment it was told to the end of its validity,
its loss or its release. Red: the holds of the violation. Grey: faults. The whole width is {{.Span}}.</p>
<svg xmlns="http://www.w3.org/2000/svg" width="{{.Width}}" height="{{.Height}}" font-family="sans-serif" font-size="11">
<rect x="{{.From}}" y="20" width="{{minus .To .From}}" height="{{.Height}}" fill="#f6c7c1"/>
{{range .Bars}}<text x="4" y="{{.Y}}" dy="11">{{.Label}}</text>
<line x1="{{.Ask}}" x2="{{.X}}" y1="{{.Y}}" y2="{{.Y}}" transform="translate(0 8)" stroke="#7a9cc6"/>
<rect x="{{.X}}" y="{{.Y}}" width="{{.Width}}" height="15" fill="{{.Fill}}"/>
{{end}}</svg>
`))
