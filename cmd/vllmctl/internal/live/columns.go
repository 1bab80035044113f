package live

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/rivo/uniseg"
)

// Column is a column of the table.
type Column int

// The columns in the order in which they are sorted by. Worst is not a column: it is the order
// by severity.
const (
	Worst Column = iota
	ByServer
	ByModel
	ByCondition
	ByCause
	ByAge
	ByRunning
	ByWaiting
	ByKVCache
	ByTTFT
	ByITL
	ByTokens
	ByRequests
	ByErrors
	numColumns
)

// column is how a column looks. width is its least width.
type column struct {
	head, meaning string
	width         int
	right         bool
	// field is for columns with a number: its factor and its format.
	field  Field
	factor float64
	format string
}

// columns are all columns. The times are means, since those are exact: a quantile is
// interpolated in a bucket, and the page of an engine has it.
var columns = [numColumns]column{
	Worst:       {head: "worst first", meaning: "severity, then condition"},
	ByServer:    {head: "server", meaning: "pod or address, #engine, or pool", width: 15},
	ByModel:     {head: "model", meaning: "name of the model", width: 16},
	ByCondition: {head: "condition", meaning: "what the processor reports", width: 11},
	ByCause:     {head: "cause", meaning: "why: the primary cause, or what is still unknown", width: 12},
	ByAge:       {head: "for", meaning: "how long the condition has lasted in this session", width: 4, right: true},
	ByRunning:   {head: "run", meaning: "running requests", width: 4, right: true, field: Running, factor: 1, format: "%.0f"},
	ByWaiting:   {head: "wait", meaning: "waiting requests", width: 4, right: true, field: Waiting, factor: 1, format: "%.0f"},
	ByKVCache:   {head: "KV%", meaning: "use of the KV cache", width: 3, right: true, field: KVCache, factor: 100, format: "%.0f"},
	ByTTFT:      {head: "TTFT", meaning: "mean time to the first token, ms", width: 5, right: true, field: TTFT, factor: 1000, format: "%.0f"},
	ByITL:       {head: "ITL", meaning: "mean time between two tokens, ms", width: 5, right: true, field: ITL, factor: 1000, format: "%.1f"},
	ByTokens:    {head: "tok/s", meaning: "generated tokens per second", width: 6, right: true, field: Tokens, factor: 1, format: "%.0f"},
	ByRequests:  {head: "req/s", meaning: "finished requests per second", width: 5, right: true, field: Requests, factor: 1, format: "%.1f"},
	ByErrors:    {head: "5xx%", meaning: "HTTP responses with a status 5xx, of the server", width: 4, right: true, field: Errors, factor: 100, format: "%.1f"},
}

// Name is the name of a column.
func (c Column) Name() string { return columns[c].head }

// Meaning is what a column shows, with its unit.
func (c Column) Meaning() string { return columns[c].meaning }

// Columns returns what can be sorted by, in order.
func Columns() []Column {
	all := make([]Column, numColumns)
	for i := range all {
		all[i] = Column(i)
	}
	return all
}

// kept is the order in which columns get a place: the last one is the first to be left out of
// a narrow terminal. The cause grows before the columns of later.
var (
	kept  = []Column{ByCondition, ByServer, ByCause, ByWaiting, ByTTFT, ByITL, ByRunning, ByKVCache, ByAge}
	later = []Column{ByTokens, ByRequests, ByErrors, ByModel}
)

// The widths that texts can grow to, first and when all columns have a place.
const (
	firstServer = 20
	firstCause  = 24
	mostText    = 44
)

// Layout is which columns a line has, with their widths.
type Layout struct {
	columns []Column
	widths  [numColumns]int
	// left is how many cells no column uses.
	left int
}

// NewLayout returns the layout for a width in cells. rows are what is shown: texts get what
// numbers leave, and no more than they need.
func NewLayout(width int, rows []Row, at time.Time) Layout {
	var needs [numColumns]int
	for i := range rows {
		r := &rows[i]
		for _, c := range []Column{ByCause, ByServer, ByModel} {
			needs[c] = max(needs[c], uniseg.StringWidth(r.cell(c, at)))
		}
	}
	l := Layout{left: width}
	l.place(kept)
	l.grow(ByServer, min(needs[ByServer], firstServer))
	l.grow(ByCause, min(needs[ByCause], firstCause))
	l.place(later)
	l.grow(ByModel, min(needs[ByModel], mostText)) // A name that is cut may be that of another model.
	l.grow(ByServer, min(needs[ByServer], mostText))
	l.grow(ByCause, min(needs[ByCause], mostText))
	// Reasons are sentences, and nothing else needs the room.
	l.grow(ByCause, needs[ByCause])
	slices.Sort(l.columns)
	return l
}

// place gives columns a place as long as there is room. The first three are cut to it.
func (l *Layout) place(columnsOf []Column) {
	const never = 3
	for _, c := range columnsOf {
		need, gap := columns[c].width, min(1, len(l.columns))
		if need+gap > l.left {
			if len(l.columns) >= never || l.left <= gap {
				return
			}
			need = l.left - gap
		}
		l.columns = append(l.columns, c)
		l.widths[c] = need
		l.left -= need + gap
	}
}

// grow makes a column wider, as far as there is room.
func (l *Layout) grow(c Column, to int) {
	if more := min(to-l.widths[c], l.left); more > 0 && slices.Contains(l.columns, c) {
		l.widths[c] += more
		l.left -= more
	}
}

// Head is the line above the table. It marks the column that is sorted by with an arrow.
func (l *Layout) Head(order Order) string {
	return l.line(func(c Column) string {
		head := strings.ToUpper(columns[c].head)
		if c != order.By {
			return head
		}
		arrow := "↓"
		if order.Reverse {
			arrow = "↑"
		}
		return head[:min(len(head), l.widths[c]-1)] + arrow
	})
}

// Line is the line of a row.
func (l *Layout) Line(row *Row, at time.Time) string {
	return l.line(func(c Column) string {
		text := row.cell(c, at)
		if c == ByServer && row.Pool != "" && !slices.Contains(l.columns, ByModel) {
			text = strings.TrimSpace(text + " " + row.Model)
		}
		return text
	})
}

func (l *Layout) line(cell func(Column) string) string {
	var b strings.Builder
	for i, c := range l.columns {
		if i > 0 {
			b.WriteByte(' ')
		}
		text := cell(c)
		if c == ByServer {
			text = end(text, l.widths[c])
		}
		b.WriteString(fit(text, l.widths[c], columns[c].right))
	}
	return strings.TrimRight(b.String(), " ")
}

// end shortens a name to its end, which has what differs: the number of a pod, the port and
// the engine.
func end(text string, width int) string {
	left := uniseg.StringWidth(text)
	if left <= width {
		return text
	}
	for g := uniseg.NewGraphemes(text); g.Next(); {
		left -= g.Width()
		if left < width {
			_, to := g.Positions()
			return "…" + text[to:]
		}
	}
	return ""
}

// fit makes a text exactly so many cells wide.
func fit(text string, width int, right bool) string {
	cells := uniseg.StringWidth(text)
	if cells > width {
		var b strings.Builder
		used := 0
		for g := uniseg.NewGraphemes(text); g.Next(); {
			if used+g.Width() > width-1 {
				break
			}
			b.WriteString(g.Str())
			used += g.Width()
		}
		if width > 0 {
			b.WriteRune('…')
			used++
		}
		text, cells = b.String(), used
	}
	space := strings.Repeat(" ", max(0, width-cells))
	if right {
		return space + text
	}
	return text + space
}

// cell is what a row has in a column.
func (r *Row) cell(c Column, at time.Time) string {
	switch c {
	case ByServer:
		if r.Pool != "" && r.Model+r.Others != "" {
			return strings.TrimSpace("pool " + r.Others)
		}
		return r.Name()
	case ByModel:
		return r.Model
	case ByCondition:
		return cmp.Or(r.State(), "-")
	case ByCause:
		return r.Why()
	case ByAge:
		if r.Since.IsZero() {
			return "-"
		}
		return Age(at.Sub(r.Since))
	default:
		look := &columns[c]
		return show(r.Values[look.field]*look.factor, look.format, look.width)
	}
}

// notJudged is in place of healthy while nothing can have been reported yet.
const notJudged = "not judged"

// State is the condition, or that none can be known yet.
func (r *Row) State() string {
	if r.notYet() || r.Early > 0 && r.Condition == "healthy" {
		return notJudged
	}
	return r.Condition
}

// Name is the server, or its pod, with the engine where there are several, or the pool.
func (r *Row) Name() string {
	if r.Pool != "" {
		return "pool " + r.Pool
	}
	name := cmp.Or(r.Pod, r.Address, "a server without a name")
	if r.Several {
		name += " #" + cmp.Or(r.Engine, "-")
	}
	return name
}

// Why is the cause, or else what explains that there is none.
func (r *Row) Why() string {
	switch {
	case r.Unread != "":
		return r.Unread
	case r.Cause != "" && r.Detail != "":
		return r.Cause + ", " + r.Detail
	case r.Cause != "":
		return r.Cause
	case r.Pool == "" && r.Reads < minScrapes:
		return "rates need two scrapes"
	case r.Condition == "" && r.Kind != "":
		return "no vLLM server, but a " + r.Kind
	case r.Condition == "":
		return "no metrics of an engine"
	case r.Early > 0:
		return "problems show after " + Age(r.Early)
	case r.notYet():
		return "rates need two scrapes"
	case r.Condition == "unknown":
		return "cannot be judged"
	case len(r.Notices) > 0:
		return "notice: " + strings.Join(r.Notices, ", ")
	}
	return ""
}

// show writes "-" for a number that is not known, and shortens one that is too wide.
func show(value float64, format string, width int) string {
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return "-"
	}
	text := fmt.Sprintf(format, value)
	if len(text) <= width {
		return text
	}
	for _, unit := range []string{"", "k", "M", "G", "T"} {
		for _, f := range []string{"%.1f", "%.0f"} {
			if text = fmt.Sprintf(f, value) + unit; len(text) <= width {
				return text
			}
		}
		value /= 1000
	}
	return ">1P"
}

// Age is a duration in at most four characters.
func Age(d time.Duration) string {
	switch {
	case d < 0:
		return "0s"
	case d < 100*time.Second:
		return fmt.Sprintf("%.0fs", d.Seconds())
	case d < 100*time.Minute:
		return fmt.Sprintf("%.0fm", d.Minutes())
	case d < 100*time.Hour:
		return fmt.Sprintf("%.0fh", d.Hours())
	}
	return fmt.Sprintf("%.0fd", d.Hours()/24)
}
