package screen

import (
	"context"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gdamore/tcell/v2"
	"github.com/rivo/uniseg"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/live"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/verdict"
	"github.com/otelcol-vllm/otelcol-vllm/internal/wording"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.Local)

// told is a source that a test writes.
type told struct {
	news chan struct{}

	mu    sync.Mutex
	rows  []live.Row
	lines []live.Line
	// from is the collector that says it.
	from  string
	asked int
	// opened is the row that was opened last.
	opened string
}

func (s *told) Table(bool) *live.Table {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	return &live.Table{
		At: noon, From: s.from, Interval: 5 * time.Second, Window: 15 * time.Second, Rows: append([]live.Row{}, s.rows...),
		Targets: len(s.rows), Servers: len(s.rows), Engines: len(s.rows), Reads: 5,
		Conditions: []live.Count{{Condition: "healthy", Engines: len(s.rows)}},
	}
}

func (s *told) Open(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opened = key
}

func (s *told) Log() []live.Line {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lines
}

func (s *told) News() <-chan struct{} { return s.news }

// pictures is how often the table was asked for.
func (s *told) pictures() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

// set replaces the rows.
func (s *told) set(rows ...live.Row) {
	s.mu.Lock()
	s.rows = rows
	s.mu.Unlock()
	s.news <- struct{}{}
}

// row returns a row. ttft is in seconds.
func row(address, condition, cause string, severity int, waiting, ttft float64) live.Row {
	r := live.Row{Key: address, ServerKey: address, Address: address, Model: "llama", Severity: severity, Since: noon.Add(-time.Minute), Reads: 5}
	r.Verdict = verdict.Verdict{
		Diagnosis: wording.Diagnosis{Condition: condition, Cause: cause},
		Signals:   map[string]verdict.Measure{"step_time_factor": {Value: 3, Usual: 1}},
	}
	for i := range r.Values {
		r.Values[i] = math.NaN()
	}
	r.Values[live.Waiting], r.Values[live.TTFT] = waiting, ttft
	r.Details = &live.Details{History: []live.Transition{{At: noon, Condition: condition, Cause: cause}}}
	return r
}

// three are engines of which the second is the worst.
func three() []live.Row {
	return []live.Row{
		row("b:1", "healthy", "", 0, 9, 0.1), row("a:1", "degraded", "slow_steps", 2, 0, 0.3), row("c:1", "healthy", "", 0, math.NaN(), math.NaN()),
	}
}

// pictured is a simulated screen that keeps a copy of each picture, since its own cells
// change while another goroutine reads them.
type pictured struct {
	tcell.SimulationScreen

	mu            sync.Mutex
	cells         []tcell.SimCell
	width, height int
}

func (p *pictured) Show() {
	p.SimulationScreen.Show()
	cells, width, height := p.GetContents()
	if len(cells) < width*height {
		return // Its size is changing, and another picture follows.
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cells, p.width, p.height = slices.Clone(cells), width, height
}

func (p *pictured) picture() (cells []tcell.SimCell, width, height int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cells, p.width, p.height
}

// terminal is a running view on a simulated screen.
type terminal struct {
	t      *testing.T
	screen *pictured
	source *told
	stop   context.CancelFunc
	ended  chan error
}

// open shows rows. When the test ends, the view has ended and left no goroutine.
func open(t *testing.T, width, height int, rows ...live.Row) *terminal {
	t.Helper()
	before := goleak.IgnoreCurrent()
	on := &pictured{SimulationScreen: tcell.NewSimulationScreen("UTF-8")}
	ctx, stop := context.WithCancel(t.Context())
	x := &terminal{
		t: t, screen: on, source: &told{news: make(chan struct{}, 1), rows: rows}, stop: stop, ended: make(chan error, 1),
	}
	go func() { x.ended <- Run(ctx, x.source, on) }()
	t.Cleanup(func() {
		stop()
		select {
		case err := <-x.ended:
			assert.NoError(t, err)
		case <-time.After(10 * time.Second):
			assert.Fail(t, "the view does not end")
		}
		goleak.VerifyNone(t, before)
	})
	x.until(func() bool { return strings.Contains(x.text(), "q quit") }, "the first picture")
	x.resize(width, height)
	return x
}

// until waits for something to be true.
func (x *terminal) until(is func() bool, what string) {
	x.t.Helper()
	ok := assert.Eventually(x.t, is, 10*time.Second, 5*time.Millisecond)
	require.True(x.t, ok, "%s: this is not on the screen:\n%s", what, x.text())
}

// resize gives the screen a size and waits until it is drawn.
func (x *terminal) resize(width, height int) {
	x.t.Helper()
	x.screen.SetSize(width, height)
	_ = x.screen.PostEvent(tcell.NewEventResize(width, height))
	x.until(func() bool {
		lines := x.lines()
		return len(lines) == height && (width < len("q quit") || strings.HasPrefix(lines[height-1], "q quit"))
	}, "the size")
}

// lines are what the cells show, without spaces at the ends.
func (x *terminal) lines() []string {
	cells, width, height := x.screen.picture()
	lines := make([]string, 0, height)
	for y := range height {
		var b strings.Builder
		for i := 0; i < width; i++ {
			shown := string(cells[y*width+i].Runes)
			if shown == "" {
				shown = " "
			}
			b.WriteString(shown)
			i += max(0, uniseg.StringWidth(shown)-1) // A wide character hides the cell behind it.
		}
		lines = append(lines, strings.TrimRight(b.String(), " "))
	}
	return lines
}

func (x *terminal) text() string { return strings.Join(x.lines(), "\n") }

// shows waits until a text is on the screen.
func (x *terminal) shows(text string) {
	x.t.Helper()
	x.until(func() bool { return strings.Contains(x.text(), text) }, text)
}

// order waits until the rows are in an order.
func (x *terminal) order(names ...string) {
	x.t.Helper()
	x.until(func() bool {
		var found []string
		for _, line := range x.lines()[3:] {
			if name, _, _ := strings.Cut(line, " "); strings.HasSuffix(name, ":1") {
				found = append(found, strings.TrimSuffix(name, ":1"))
			}
		}
		return strings.Join(found, " ") == strings.Join(names, " ")
	}, strings.Join(names, " "))
}

// press presses keys; a text is its letters.
func (x *terminal) press(keys ...any) {
	for _, key := range keys {
		switch k := key.(type) {
		case tcell.Key:
			x.screen.InjectKey(k, 0, tcell.ModNone)
		case string:
			for _, r := range k {
				x.screen.InjectKey(tcell.KeyRune, r, tcell.ModNone)
			}
		}
	}
}

// selected is the line that is drawn in reverse.
func (x *terminal) selected() string {
	cells, width, height := x.screen.picture()
	for y := range height {
		if _, _, attributes := cells[y*width].Style.Decompose(); attributes&tcell.AttrReverse != 0 {
			return x.lines()[y]
		}
	}
	return ""
}

// selects waits until a row is selected.
func (x *terminal) selects(name string) {
	x.t.Helper()
	x.until(func() bool { return strings.HasPrefix(x.selected(), name+" ") }, name+" is selected")
}
