package screen

import (
	"context"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode"

	"github.com/gdamore/tcell/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"go.uber.org/zap/zapcore"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/live"
)

func TestTheTableHasTheWorstFirst(t *testing.T) {
	x := open(t, 80, 24, three()...)
	x.order("a", "b", "c")
	lines := x.lines()
	assert.Equal(t, "vllmctl top  3 servers, 3 engines: 3 healthy                            12:00:00", lines[0])
	assert.Contains(t, lines[1], "Every 5s; rates and means over 15s")
	assert.Equal(t, "SERVER CONDITION CAUSE FOR RUN WAIT KV% TTFT ITL TOK/S", strings.Join(strings.Fields(lines[2]), " "))
	assert.Equal(t, "a:1 degraded slow_steps 60s - 0 - 300 - -", strings.Join(strings.Fields(lines[3]), " "))
	assert.Equal(t, "c:1 healthy 60s - - - - - -", strings.Join(strings.Fields(lines[5]), " "), "what is not known is no 0")
	x.selects("a:1")
}

func TestTheTableOfACollectorNamesIt(t *testing.T) {
	x := open(t, 120, 24, three()...)
	x.source.mu.Lock()
	x.source.from = "http://c:1"
	x.source.mu.Unlock()
	x.source.set(three()...)
	x.shows("The collector at http://c:1 says this")
	assert.NotContains(t, x.text(), "learned in this session")
}

func TestKeysSort(t *testing.T) {
	x := open(t, 80, 24, three()...)
	x.order("a", "b", "c")
	x.press("7")
	x.order("b", "a", "c") // waiting
	x.shows("WAI↓")
	x.press("7")
	x.order("a", "b", "c")
	x.shows("WAI↑")
	x.press("9")
	x.order("a", "b", "c") // TTFT
	x.shows(" TTFT↓")
	x.press("r")
	x.order("b", "a", "c")
	x.press("0", ">")
	x.order("a", "b", "c")
	x.shows("SERVER↓")
	x.press("r")
	x.order("c", "b", "a")
	x.press(tcell.KeyRight, tcell.KeyRight)
	x.shows("CONDITION↓")
	x.press("<", tcell.KeyLeft, tcell.KeyLeft)
	x.until(func() bool {
		return !strings.Contains(x.text(), "CONDITION↓") && !strings.Contains(x.text(), "SERVER↓")
	}, "worst first")
	x.order("a", "b", "c")
}

func TestTheFilterIsAppliedWhileItIsWritten(t *testing.T) {
	x := open(t, 80, 24, three()...)
	x.press("/", "SLOW")
	x.order("a")
	x.shows("filter: SLOW")
	x.press(tcell.KeyEnter)
	x.shows(`1 of 3 rows have "SLOW".`)
	x.press("7") // keys are keys again
	x.shows("WAI↓")
	x.source.set(append(three(), row("d:1", "degraded", "slow_steps", 2, 20, 1))...)
	x.order("d", "a")
	x.press(tcell.KeyEscape)
	x.order("d", "b", "a", "c")
	x.press("/", "zzz", tcell.KeyEnter)
	x.shows("0 of 4 rows")
	x.order()
	x.press(tcell.KeyEnter, tcell.KeyDown, tcell.KeyUp) // nothing to open or select
	x.press("/", "q", tcell.KeyEscape)
	x.order("d", "b", "a", "c")
}

func TestEnterOpensAnEngineAndEscReturns(t *testing.T) {
	x := open(t, 80, 24, three()...)
	x.order("a", "b", "c")
	x.press(tcell.KeyEnter)
	for _, want := range []string{"a:1", "degraded (severity 2) since 11:59:00, for 60s", "evidence    step_time_factor 3 (usual 1)", "Esc back"} {
		x.shows(want)
	}
	for range 60 {
		x.press(tcell.KeyDown)
	}
	x.shows("12:00:00 degraded: slow_steps")
	x.source.mu.Lock()
	assert.Equal(t, "a:1", x.source.opened, "the source is told which details are wanted")
	x.source.mu.Unlock()
	// What is read stays where it is when there is news.
	asked := x.source.pictures()
	x.source.set(three()...)
	x.until(func() bool { return x.source.pictures() > asked }, "another picture")
	x.shows("12:00:00 degraded: slow_steps")
	assert.NotContains(t, x.text(), "severity 2")
	x.press(tcell.KeyEscape)
	x.order("a", "b", "c")
	x.press(tcell.KeyDown, tcell.KeyEnter)
	x.shows("healthy (severity 0)")
	x.source.set(three()[1])
	x.shows("This engine is no longer there.")
	x.press(tcell.KeyBackspace2)
	x.order("a")
}

func TestTheSelectionFollowsTheEngine(t *testing.T) {
	x := open(t, 80, 24, three()...)
	x.order("a", "b", "c")
	x.press(tcell.KeyDown)
	x.selects("b:1")
	x.source.set(append(three(), row("aa:1", "stalled", "", 3, 0, 0))...)
	x.order("aa", "a", "b", "c")
	x.selects("b:1")
	x.source.set(row("a:1", "healthy", "", 0, 0, 0))
	x.order("a")
	x.selects("a:1")
}

func TestSizes(t *testing.T) {
	x := open(t, 80, 24, three()...)
	for _, size := range [][2]int{{40, 10}, {200, 50}, {20, 6}, {80, 24}, {1, 5}, {80, 4}, {40, 10}} {
		x.resize(size[0], size[1])
	}
	x.order("a", "b", "c")
	assert.Contains(t, x.lines()[3], "degraded")
	assert.Contains(t, x.lines()[3], "slow_steps")
	x.press(tcell.KeyEnter)
	x.shows("degraded (severity 2)")
	x.press("?")
	x.shows("select an engine")
	x.press("l")
	x.shows("and the processor have")
}

// A server can call itself anything.
func TestHostileNamesAreText(t *testing.T) {
	wide := row("a:1", "healthy", "", 0, 0, 0)
	wide.Pod, wide.Unread = "[red]名前[-:-:-]:1", strings.Repeat("長", 60)
	evil := row("b:1", "healthy", "", 0, 0, 0)
	evil.Pod, evil.Model = `["region"]x[""]`, "[::b]bold[]"
	evil.Unread = "[yellow]the server said [:red:]"
	x := open(t, 120, 24, wide, evil)
	x.shows("[red]名前[-:-:-]:1 ")
	x.shows("長長長…")
	x.shows(`["region"]x[""]`)
	x.shows("[yellow]the server said")
	for _, line := range x.lines() {
		for _, r := range line {
			assert.True(t, unicode.IsPrint(r), "%q", line)
		}
	}
	x.press(tcell.KeyDown, tcell.KeyEnter)
	x.shows("[yellow]the server said [:red:]")
	x.source.mu.Lock()
	x.source.lines = []live.Line{{At: noon, Level: zapcore.WarnLevel, Message: "[red]a line[-]"}}
	x.source.mu.Unlock()
	x.press("l")
	x.shows("12:00:00 WARN [red]a line[-]")
	x.press(tcell.KeyEscape, "/", "[red]")
	x.shows("filter: [red]")
	x.press(tcell.KeyEnter)
	x.shows(`1 of 2 rows have "[red]".`)
}

func TestManyEnginesScroll(t *testing.T) {
	var all []live.Row
	for i := range 500 {
		all = append(all, row(fmt.Sprintf("s%03d:1", i), "healthy", "", 0, float64(i), 0.1))
	}
	x := open(t, 80, 24, all[0])
	x.order("s000")
	x.source.set(all...)
	x.shows("s019:1")
	assert.Contains(t, x.lines()[2], "SERVER", "the head stays")
	assert.Contains(t, x.lines()[3], "s000:1", "the first rows are in view although the table has grown")
	x.press(tcell.KeyEnd)
	x.shows("s499:1")
	assert.Contains(t, x.lines()[2], "SERVER")
	x.press(tcell.KeyEnter)
	x.shows("condition   healthy")
	x.press(tcell.KeyEscape)
	x.shows("s499:1")
	x.press(tcell.KeyHome)
	x.shows("s000:1")
	x.press("7", tcell.KeyHome)
	x.shows("s499:1")
	x.selects("s499:1")
	began := time.Now()
	for i := range 200 {
		x.press(tcell.KeyDown)
		if i%50 == 49 { // the queue of a terminal has its limits
			x.selects(fmt.Sprintf("s%03d:1", 498-i))
		}
	}
	assert.Less(t, time.Since(began), time.Minute, "a picture for each key would take longer")
}

// Pictures are made at most twice a second, however much arrives.
func TestNewsIsGathered(t *testing.T) {
	x := open(t, 80, 24, three()...)
	before, began := x.source.pictures(), time.Now()
	for time.Since(began) < 2*least {
		select {
		case x.source.news <- struct{}{}:
		case <-time.After(time.Millisecond):
		}
	}
	pictures := x.source.pictures() - before
	assert.Positive(t, pictures)
	assert.LessOrEqual(t, pictures, int(time.Since(began)/least)+2)
}

func TestItEndsWithAKeyAndWithItsContext(t *testing.T) {
	for name, end := range map[string]func(*terminal){
		"q":                 func(x *terminal) { x.press("q") },
		"Ctrl-C":            func(x *terminal) { x.press(tcell.KeyCtrlC) },
		"context":           func(x *terminal) { x.stop() },
		"within the filter": func(x *terminal) { x.press("/", "q", tcell.KeyCtrlC) },
	} {
		t.Run(name, func(t *testing.T) {
			x := open(t, 80, 24, three()...)
			end(x)
			select {
			case err := <-x.ended:
				require.NoError(t, err)
				x.ended <- nil // for the end of the test
			case <-time.After(10 * time.Second):
				require.Fail(t, "it does not end")
			}
		})
	}
}

func TestAContextThatHasEndedBefore(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	ctx, stop := context.WithCancel(t.Context())
	stop()
	require.NoError(t, Run(ctx, &told{news: make(chan struct{})}, tcell.NewSimulationScreen("UTF-8")))
}

func TestCtrlZGivesTheTerminalBackUntilTheShellContinues(t *testing.T) {
	simulated := tcell.NewSimulationScreen("UTF-8")
	require.NoError(t, simulated.Init())
	on := &suspended{SimulationScreen: simulated}
	v := newView(&told{news: make(chan struct{}, 1), rows: three()})
	v.app.SetScreen(on)
	defer simulated.Fini()
	var within string
	v.stop = func() { within = on.calls }
	assert.Nil(t, v.key(tcell.NewEventKey(tcell.KeyCtrlZ, 0, tcell.ModCtrl)))
	assert.Equal(t, "suspend ", within)
	assert.Equal(t, "suspend resume ", on.calls)
}

// suspended is a screen that notes when it gives the terminal back and takes it again.
type suspended struct {
	tcell.SimulationScreen

	calls string
}

func (s *suspended) Suspend() error { s.calls += "suspend "; return s.SimulationScreen.Suspend() }
func (s *suspended) Resume() error  { s.calls += "resume "; return s.SimulationScreen.Resume() }

func TestATerminalThatCannotBeOpenedIsAnError(t *testing.T) {
	err := Run(t.Context(), &told{news: make(chan struct{}, 1)}, unopened{tcell.NewSimulationScreen("")})
	require.EqualError(t, err, "the terminal cannot be used: open /dev/tty: no such device or address")
}

// unopened is a terminal as a process without one of its own has it. Anything but Init would
// panic, as it does in tcell.
type unopened struct{ tcell.Screen }

func (unopened) Init() error {
	return &fs.PathError{Op: "open", Path: "/dev/tty", Err: syscall.ENXIO}
}
func (unopened) Show() { panic("not initialized") }
func (unopened) Fini() { panic("not initialized") }
