// Package screen is the terminal view of vllmctl top.
//
// It is made with tview on tcell: tview has tables that scroll with a fixed head, text that
// wraps and an input line, each with the keys that people know, and tcell writes only the
// cells that have changed, which is why nothing flickers. Both work on every terminal with
// cursor movement, and tcell has a simulated screen for tests. The alternative, bubbletea,
// draws whole frames as text and leaves tables and their selection to its users.
package screen

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/gdamore/tcell/v2"
	"github.com/rivo/tview"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/live"
)

// Source is what the view shows.
type Source interface {
	// Table returns what is known now.
	Table(details bool) *live.Table
	// Open is called with the key of the row whose details are asked for next.
	Open(key string)
	// Log returns the newest lines of the components, the oldest first.
	Log() []live.Line
	// News has an element after something has changed.
	News() <-chan struct{}
}

// least is the least time between two pictures. Servers are scraped one after the other, and
// a hundred of them would mean twenty pictures a second.
const least = 500 * time.Millisecond

// Two function keys that no keyboard has carry what comes from other goroutines. They pass
// through the queue of events, so that all state of the view has one goroutine. tview's own
// QueueUpdate would wait for ever for an application that has just ended.
const (
	keyNews = tcell.KeyF64
	keyStop = tcell.KeyF63
)

// ready is a screen that has been initialized: tview would do it once more, and ignore errors.
type ready struct{ tcell.Screen }

func (ready) Init() error { return nil }

// Run shows the source on a screen until a person quits or ctx ends. When it returns, it has
// ended all its goroutines and given the terminal back. An error means that the terminal
// cannot be used, for example because the process has none of its own.
func Run(ctx context.Context, source Source, on tcell.Screen) error {
	if err := on.Init(); err != nil {
		return fmt.Errorf("the terminal cannot be used: %w", err)
	}
	v := newView(source)
	v.app.SetScreen(ready{on})
	ended := make(chan struct{})
	var waiting sync.WaitGroup
	waiting.Go(func() { pass(ctx, ended, source, on) })
	err := v.app.Run()
	close(ended)
	waiting.Wait()
	return err
}

// pass passes on that there is news, and that ctx has ended, until the view has ended.
func pass(ctx context.Context, ended <-chan struct{}, source Source, to tcell.Screen) {
	wait := time.NewTicker(least)
	defer wait.Stop()
	for ctx.Err() == nil {
		select {
		case <-ended:
			return
		case <-ctx.Done():
			continue
		case <-source.News():
		}
		if !post(ctx, ended, keyNews, to) {
			continue
		}
		wait.Reset(least)
		select {
		case <-ended:
			return
		case <-ctx.Done():
		case <-wait.C:
		}
	}
	post(context.Background(), ended, keyStop, to)
}

// post puts a key into the queue of events, and tries again while that is full of keys: a
// key that a person presses draws the old table again, and takes none of the news. It reports
// false if the view or ctx ended before.
func post(ctx context.Context, ended <-chan struct{}, key tcell.Key, to tcell.Screen) bool {
	const again = 10 * time.Millisecond
	for to.PostEvent(tcell.NewEventKey(key, 0, tcell.ModNone)) != nil {
		select {
		case <-ended:
			return false
		case <-ctx.Done():
			return false
		case <-time.After(again):
		}
	}
	return true
}

// place is what the view shows.
type place int

const (
	atTable place = iota
	atEngine
	atLog
	atHelp
)

// view is the state of the screen. Only the goroutine of the application uses it.
type view struct {
	source Source
	app    *tview.Application
	// stop stops the process until the shell continues it.
	stop func()

	head, remark, keys *tview.TextView
	table              *tview.Table
	text               *tview.TextView
	filter             *tview.InputField
	middle             *tview.Pages
	bottom             *tview.Pages

	at     place
	now    *live.Table
	rows   []live.Row
	order  live.Order
	wanted string // the text of the filter
	// selected is the key of the selected row, and opened that of the engine that is shown.
	selected, opened string
	layout           live.Layout
	width, height    int
	// drawn is false if what is shown has to be composed again.
	drawn bool
}
