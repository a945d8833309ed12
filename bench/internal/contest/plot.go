package contest

import (
	"fmt"
	"math"
	"strings"
)

// The plot's measures, in pixels.
const (
	panelWidth = 380
	barHeight  = 18
	labelWidth = 96
	panelGap   = 26
)

// panels are the scenarios of the plot, the figure that bars show, and how.
var panels = []struct {
	scenario string
	column   column
	note     string
}{
	{"one", rate, "cycles/s, more is better"},
	{"free", rate, "cycles/s, more is better"},
	{"local", rate, "cycles/s, more is better"},
	{"processes", rate, "cycles/s, more is better"},
	{"hold", rate, "cycles/s of 200 possible, more is better"},
	{"hold", longest, "longest wait in ms, less is better"},
	{"handover", handover, "median in µs, less is better"},
	{"nodes", rate, "cycles/s, more is better"},
	{"nodes-hold", rate, "cycles/s of 200 possible, more is better"},
	{"nodes-hold", longest, "longest wait in ms, less is better"},
}

// plot draws a panel for each scenario and a bar for each peer, two panels a
// row. Where the values are orders of magnitude apart, the axis is logarithmic,
// and says so.
func plot(a results) string {
	var body strings.Builder
	n, panelHeight := 0, mostBars(a)*barHeight+46
	for _, p := range panels {
		for _, sc := range scenarios {
			if sc.name == p.scenario && len(a[sc.name]) > 0 {
				x, y := n%2*(panelWidth+panelGap), n/2*panelHeight
				fmt.Fprintf(&body, "<g transform=\"translate(%d %d)\">\n%s</g>\n", 10+x, 10+y, panel(a, sc, p.column, p.note))
				n++
			}
		}
	}
	width, height := 2*panelWidth+panelGap+20, (n+1)/2*panelHeight+10
	return fmt.Sprintf("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" font-family=\"sans-serif\" font-size=\"11\">\n"+
		"<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n%s</svg>\n", width, height, width, height, &body)
}

// mostBars is how many peers the panel with the most has.
func mostBars(a results) (most int) {
	for _, p := range panels {
		most = max(most, len(a[p.scenario]))
	}
	return most
}

func panel(a results, sc scenario, c column, note string) string {
	type bar struct {
		peer           string
		low, mid, high float64
	}
	var bars []bar
	least, most := math.Inf(1), 0.0
	for _, peer := range sc.peers {
		if v := a.values(sc.name, peer, c.key); len(v) > 0 {
			b := bar{peer, quantile(v, 0.25) / c.unit, quantile(v, 0.5) / c.unit, quantile(v, 0.75) / c.unit}
			bars = append(bars, b)
			least, most = min(least, b.mid), max(most, b.high)
		}
	}
	const space = panelWidth - labelWidth - 60
	at := func(v float64) float64 { return v / most * space }
	if most > 20*least {
		note += ", log scale"
		floor := least / 3
		at = func(v float64) float64 { return max(0, math.Log(v/floor)/math.Log(most/floor)) * space }
	}
	var s strings.Builder
	fmt.Fprintf(&s, "<text y=\"12\" font-weight=\"bold\">%s</text>\n<text y=\"26\" fill=\"#666\">%s</text>\n", title(sc.what), note)
	for i, b := range bars {
		y := 32 + i*barHeight
		colour := "#b8c4d0"
		switch b.peer {
		case ours:
			colour = "#2b6cb0"
		case oursLingering:
			colour = "#7fb0e0"
		}
		middle := y + barHeight/2
		fmt.Fprintf(&s, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%s</text>\n", labelWidth-6, middle+4, label(b.peer))
		fmt.Fprintf(&s, "<rect x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"%d\" fill=\"%s\"/>\n", labelWidth, y+2, at(b.mid), barHeight-4, colour)
		fmt.Fprintf(&s, "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\" stroke=\"#333\"/>\n", labelWidth+at(b.low), labelWidth+at(b.high), middle, middle)
		fmt.Fprintf(&s, "<text x=\"%.1f\" y=\"%d\">%s</text>\n", labelWidth+at(b.high)+5, middle+4, c.show(b.mid*c.unit))
	}
	return s.String()
}

// title is short enough for a panel.
func title(what string) string {
	short, _, _ := strings.Cut(what, ":")
	short, _, _ = strings.Cut(short, " (")
	return short
}

func label(peer string) string {
	if peer == bare {
		return "two commands"
	}
	return peer
}
