package screen

import (
	"fmt"
	"strings"
	"time"

	"github.com/gdamore/tcell/v2"
	"github.com/rivo/tview"
	"github.com/rivo/uniseg"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/live"
)

// newView returns a view of a source.
func newView(source Source) *view {
	v := &view{
		source: source, app: tview.NewApplication(), stop: stop,
		head: line(tcell.StyleDefault.Bold(true)), remark: line(tcell.StyleDefault), keys: line(tcell.StyleDefault.Dim(true)),
		table: tview.NewTable(), text: tview.NewTextView(), filter: tview.NewInputField(),
		middle: tview.NewPages(), bottom: tview.NewPages(),
	}
	v.table.SetContent(&content{view: v}).SetFixed(1, 0).
		SetSelectedStyle(tcell.StyleDefault.Reverse(true)).SetBackgroundColor(tcell.ColorDefault)
	v.table.SetSelectionChangedFunc(func(row, _ int) {
		if row > 0 && row <= len(v.rows) {
			v.selected = v.rows[row-1].Key
		}
	})
	v.text.SetTextStyle(tcell.StyleDefault).SetBackgroundColor(tcell.ColorDefault)
	// Texts come wrapped at words; an address that is too long for a line continues on the next.
	v.text.SetWrap(true).SetWordWrap(false)
	v.filter.SetLabel("filter: ").SetLabelStyle(tcell.StyleDefault.Bold(true)).
		SetFieldStyle(tcell.StyleDefault).SetBackgroundColor(tcell.ColorDefault)
	v.filter.SetChangedFunc(func(text string) {
		v.wanted = text
		v.arrange()
	})
	v.middle.AddPage("table", v.table, true, true).AddPage("text", v.text, true, false)
	v.bottom.AddPage("keys", v.keys, true, true).AddPage("filter", v.filter, true, false)
	all := tview.NewFlex().SetDirection(tview.FlexRow).
		AddItem(v.head, 1, 0, false).AddItem(v.remark, 1, 0, false).
		AddItem(v.middle, 0, 1, true).AddItem(v.bottom, 1, 0, false)
	for _, b := range []interface {
		SetBackgroundColor(color tcell.Color) *tview.Box
	}{all, v.middle, v.bottom} {
		b.SetBackgroundColor(tcell.ColorDefault)
	}
	v.app.SetRoot(all, true).SetFocus(v.table).SetInputCapture(v.key).SetBeforeDrawFunc(v.beforeDraw)
	v.refresh()
	return v
}

// line is a text of one line. Colours are those of the terminal.
func line(style tcell.Style) *tview.TextView {
	t := tview.NewTextView().SetWrap(false).SetScrollable(false).SetTextStyle(style)
	t.SetBackgroundColor(tcell.ColorDefault)
	return t
}

// refresh takes what the source knows now.
func (v *view) refresh() {
	v.now = v.source.Table(v.at == atEngine)
	v.arrange()
}

// arrange filters and sorts the rows. The selected engine stays selected at any place.
func (v *view) arrange() {
	v.rows = live.Filter(v.now.Rows, v.wanted)
	live.Sort(v.rows, v.order)
	v.drawn = false
	selected := 1
	for i := range v.rows {
		if v.rows[i].Key == v.selected {
			selected = i + 1
		}
	}
	// tview would search for ever for a row to select.
	v.table.SetSelectable(len(v.rows) > 0, false)
	// Setting the offset also ends tview's habit of staying at the end of a table that has
	// grown; selecting a row brings that into view.
	offset, _ := v.table.GetOffset()
	v.table.SetOffset(offset, 0).Select(selected, 0)
}

// beforeDraw composes the texts for the size of the screen.
func (v *view) beforeDraw(on tcell.Screen) bool {
	width, height := on.Size()
	if v.drawn && width == v.width && height == v.height {
		return false
	}
	v.drawn, v.width, v.height = true, width, height
	v.head.SetText(v.headLine())
	v.remark.SetText(v.remarkLine())
	v.keys.SetText(first(width, v.hints()))
	switch v.at {
	case atTable:
		v.layout = live.NewLayout(width, v.rows, v.now.At)
	case atEngine:
		v.put(v.engineText())
	case atLog:
		v.put(v.logText())
	case atHelp:
		v.put(helpText(width))
	}
	return false
}

// put replaces the text and stays where the reader is.
func (v *view) put(text string) {
	row, column := v.text.GetScrollOffset()
	v.text.SetText(text).ScrollTo(row, column)
}

func (v *view) headLine() string {
	clock := v.now.At.Local().Format(time.TimeOnly)
	name := "vllmctl top  "
	if v.width < 60 {
		name = ""
	}
	space := v.width - len(clock) - len(name) - 1
	summary := v.now.Summary(space)
	return name + summary + strings.Repeat(" ", max(1, space-uniseg.StringWidth(summary)+1)) + clock
}

func (v *view) remarkLine() string {
	if v.at != atTable {
		return ""
	}
	var parts []string
	if v.wanted != "" {
		parts = append(parts, fmt.Sprintf("%d of %d rows have %q.", len(v.rows), len(v.now.Rows), v.wanted))
	}
	if remark := v.now.Remark(); remark != "" {
		parts = append(parts, remark)
	}
	if parts == nil && v.now.From != "" {
		parts = append(parts, v.now.Learning())
	} else if parts == nil {
		parts = append(parts, fmt.Sprintf("Every %s; rates and means over %s; usual values are learned in this session.", v.now.Interval, v.now.Window))
	}
	return strings.Join(parts, " ")
}

// hints are the keys that matter most here, the most important first.
func (v *view) hints() []string {
	switch v.at {
	case atTable:
		return []string{"q quit", "Enter open", "/ filter", "<> sort", "? help", "r reverse", "0 worst first", "l log"}
	default:
		return []string{"q quit", "Esc back", "arrows scroll", "? help", "l log"}
	}
}

// first joins as many parts as have room.
func first(width int, parts []string) string {
	line := ""
	for _, part := range parts {
		if line != "" {
			part = "  " + part
		}
		if len(line)+len(part) > width {
			break
		}
		line += part
	}
	return line
}

// content is the table as tview asks for it, so that only visible rows are composed. A row is
// one cell: live has fitted the columns to the width.
type content struct {
	tview.TableContentReadOnly
	view *view
}

// GetRowCount counts the head.
func (c *content) GetRowCount() int { return len(c.view.rows) + 1 }

// GetColumnCount is 1.
func (*content) GetColumnCount() int { return 1 }

// GetCell returns a line.
func (c *content) GetCell(row, _ int) *tview.TableCell {
	v := c.view
	if row == 0 {
		return cell(v.layout.Head(v.order), tcell.StyleDefault.Bold(true)).SetSelectable(false)
	}
	if row > len(v.rows) {
		return nil
	}
	r := &v.rows[row-1]
	return cell(v.layout.Line(r, v.now.At), style(r))
}

// cell is a line whose text is taken as it is: a name in brackets is not a colour.
func cell(text string, style tcell.Style) *tview.TableCell {
	return tview.NewTableCell(tview.Escape(text)).SetStyle(style).SetExpansion(1)
}

// style marks what asks for action. The words in the row say it as well, for terminals and
// people without colours.
func style(r *live.Row) tcell.Style {
	switch {
	case r.Severity >= 3:
		return tcell.StyleDefault.Foreground(tcell.ColorRed).Bold(true)
	case r.Severity == 2 || r.Unread != "":
		return tcell.StyleDefault.Foreground(tcell.ColorOlive)
	case r.Early > 0:
		return tcell.StyleDefault.Foreground(tcell.ColorTeal) // The numbers are all there is yet.
	}
	return tcell.StyleDefault
}
