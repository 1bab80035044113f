package screen

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rivo/uniseg"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/live"
)

// margin is where the texts of a page begin on a screen that is wide enough.
const margin = 12

// engineText is the page of the opened engine.
func (v *view) engineText() string {
	for i := range v.now.Rows {
		if r := &v.now.Rows[i]; r.Key == v.opened {
			return page(r.Name(), r.Page(v.now.At), v.width)
		}
	}
	return strings.Join(live.Wrap("This engine is no longer there. Esc returns to the table.", v.width), "\n")
}

// page writes paragraphs with their heads to the left, or above them on a narrow screen.
func page(title string, paragraphs []live.Paragraph, width int) string {
	var b strings.Builder
	b.WriteString(title + "\n")
	narrow := width < 60
	for _, p := range paragraphs {
		b.WriteByte('\n')
		head := p.Head
		if narrow {
			b.WriteString(head + "\n")
			head = ""
		}
		for _, text := range p.Texts {
			indent := margin
			if narrow {
				indent = 2
			}
			for _, line := range live.Wrap(text, max(10, width-indent)) {
				fmt.Fprintf(&b, "%-*s%s\n", indent, head, line)
				head = ""
			}
		}
	}
	return b.String()
}

// logText is the log, the newest line first.
func (v *view) logText() string {
	lines := v.source.Log()
	if len(lines) == 0 {
		return strings.Join(live.Wrap("The receiver and the processor have logged nothing.", v.width), "\n")
	}
	var b strings.Builder
	for _, l := range slices.Backward(lines) {
		head := l.At.Local().Format(time.TimeOnly) + " " + l.Level.CapitalString() + " "
		for _, line := range live.Wrap(l.Message, max(20, v.width-uniseg.StringWidth(head))) {
			b.WriteString(head + line + "\n")
			head = strings.Repeat(" ", len(head))
		}
	}
	return b.String()
}

// helpText has all keys and columns.
func helpText(width int) string {
	var b strings.Builder
	write := func(key, meaning string) {
		head := fmt.Sprintf("%-12s", key)
		for _, line := range live.Wrap(meaning, max(10, width-len(head))) {
			b.WriteString(head + line + "\n")
			head = strings.Repeat(" ", len(head))
		}
	}
	for _, k := range [][2]string{
		{"up, down", "select an engine; also j, k, PgUp, PgDn, Home, End"},
		{"Enter", "open the selected engine"},
		{"Esc", "go back; in the table, remove the filter"},
		{"/", "filter: only rows that show this text"},
		{"<, >", "sort by the column before or after; also left, right"},
		{"1 to 9", "sort by one of the first nine columns below; again to reverse"},
		{"r", "reverse the order"},
		{"0", "the worst first"},
		{"l", "the log of the receiver and the processor, the newest line first; with --from, why the collector did not answer"},
		{"Ctrl-L", "draw the screen again"},
		{"Ctrl-Z", "suspend; fg in the shell continues"},
		{"q, Ctrl-C", "quit"},
	} {
		write(k[0], k[1])
	}
	b.WriteByte('\n')
	for _, c := range live.Columns() {
		name := c.Name()
		if c > 0 && c <= 9 {
			name = fmt.Sprintf("%d %s", c, name)
		}
		write(name, c.Meaning())
	}
	b.WriteByte('\n')
	write("colours", "red: severity 3; yellow: severity 2, or the server cannot be read. NO_COLOR switches them off.")
	write("not shown", "a narrow screen hides columns; Enter shows all numbers of an engine.")
	return b.String()
}
