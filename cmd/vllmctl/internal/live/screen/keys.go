package screen

import (
	"github.com/gdamore/tcell/v2"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/live"
)

// key handles a key, and returns it where the focused part of the screen should have it.
func (v *view) key(event *tcell.EventKey) *tcell.EventKey {
	switch event.Key() {
	case keyNews:
		v.refresh()
		return nil
	case keyStop, tcell.KeyCtrlC:
		v.app.Stop()
		return nil
	case tcell.KeyCtrlZ:
		// The terminal passes on all keys, so this one does not stop the program by itself.
		v.app.Suspend(v.stop)
		return nil
	case tcell.KeyCtrlL:
		v.app.Sync()
		return nil
	}
	if v.filter.HasFocus() {
		return v.filterKey(event)
	}
	switch event.Key() {
	case tcell.KeyEscape, tcell.KeyBackspace, tcell.KeyBackspace2:
		v.back()
		return nil
	case tcell.KeyEnter:
		if v.at == atTable {
			v.open()
			return nil
		}
	case tcell.KeyLeft, tcell.KeyRight:
		if v.at == atTable {
			v.sortNext(event.Key() == tcell.KeyRight)
			return nil
		}
	case tcell.KeyRune:
		return v.letter(event)
	}
	return event
}

func (v *view) letter(event *tcell.EventKey) *tcell.EventKey {
	switch event.Rune() {
	case 'q', 'Q':
		v.app.Stop()
		return nil
	case '?', 'h', 'H':
		v.show(atHelp)
		return nil
	case 'l', 'L':
		v.show(atLog)
		return nil
	}
	if v.at != atTable {
		return event
	}
	switch r := event.Rune(); r {
	case '/':
		v.bottom.SwitchToPage("filter")
		v.app.SetFocus(v.filter)
	case '<', ',', '>', '.':
		v.sortNext(r == '>' || r == '.')
	case 'r', 'R':
		v.order.Reverse = !v.order.Reverse
		v.arrange()
	case '0':
		v.order = live.Order{}
		v.arrange()
	case '1', '2', '3', '4', '5', '6', '7', '8', '9':
		v.sortBy(live.Column(r - '0'))
	default:
		return event
	}
	return nil
}

// filterKey handles a key while the filter is written.
func (v *view) filterKey(event *tcell.EventKey) *tcell.EventKey {
	switch event.Key() {
	case tcell.KeyEscape:
		v.filter.SetText("")
		v.wanted = ""
		v.arrange()
	case tcell.KeyEnter, tcell.KeyDown, tcell.KeyUp, tcell.KeyTab:
	default:
		return event
	}
	v.bottom.SwitchToPage("keys")
	v.app.SetFocus(v.table)
	return nil
}

// sortNext sorts by the next column or the one before.
func (v *view) sortNext(forward bool) {
	all := live.Column(len(live.Columns()))
	if forward {
		v.sortBy((v.order.By + 1) % all)
	} else {
		v.sortBy((v.order.By + all - 1) % all)
	}
}

// sortBy sorts by a column; by the same one again in the other direction.
func (v *view) sortBy(column live.Column) {
	v.order = live.Order{By: column, Reverse: v.order.By == column && !v.order.Reverse}
	v.arrange()
}

// open shows the selected engine.
func (v *view) open() {
	row, _ := v.table.GetSelection()
	if row < 1 || row > len(v.rows) {
		return
	}
	v.opened = v.rows[row-1].Key
	v.source.Open(v.opened)
	v.show(atEngine)
}

// back returns to the table; from there it removes the filter.
func (v *view) back() {
	if v.at == atTable {
		v.filter.SetText("")
		v.wanted = ""
		v.arrange()
		return
	}
	v.at = atTable
	v.middle.SwitchToPage("table")
	v.app.SetFocus(v.table)
	v.drawn = false
}

// show shows a text instead of the table.
func (v *view) show(what place) {
	v.at = what
	v.middle.SwitchToPage("text")
	v.app.SetFocus(v.text)
	v.text.ScrollToBeginning()
	v.refresh()
}
