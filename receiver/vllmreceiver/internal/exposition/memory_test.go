package exposition

import (
	"bytes"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/internal/test/race"
)

func TestReplicasShareOneLayout(t *testing.T) {
	memory := NewMemory(1000)
	one, two := NewReader(memory), NewReader(memory)
	layout := one.Read(vllmBody("some/model", 1), DialectText).Layout
	require.Same(t, layout, one.Read(vllmBody("some/model", 2), DialectText).Layout)
	require.Same(t, layout, two.Read(vllmBody("some/model", 3), DialectText).Layout)
	require.NotSame(t, layout, two.Read(vllmBody("other/model", 3), DialectText).Layout)
	require.Same(t, layout, two.Read(vllmBody("some/model", 4), DialectText).Layout)
	require.NotSame(t, layout, NewReader(NewMemory(0)).Read(vllmBody("some/model", 1), DialectText).Layout)
}

// The dialects read the same bytes by different rules, so they never share.
func TestDialectsDoNotShareLayouts(t *testing.T) {
	memory := NewMemory(1000)
	body := []byte("# TYPE a gauge\na 1\n# EOF\n")
	reader := NewReader(memory)
	text := reader.Read(body, DialectText).Layout
	require.NotSame(t, text, reader.Read(body, DialectOpenMetrics).Layout)
	require.Same(t, text, reader.Read(body, DialectText).Layout)
}

// Lines that are parsed at every scrape must not make a new layout at every scrape.
func TestLayoutStaysWhereLinesCannotBeRemembered(t *testing.T) {
	for _, tc := range []struct {
		name         string
		dialect      Dialect
		first, later string
	}{
		{
			"a bad line that changes", DialectText,
			"# TYPE a gauge\na{x=\"1\"} 1\nbad bad 1\na{x=\"2\"} 2\n", "# TYPE a gauge\na{x=\"1\"} 3\nbad line 22\na{x=\"2\"} 4\n",
		},
		{
			"a bad line in every other body", DialectText,
			"# TYPE a gauge\na{x=\"1\"} 1\na{x=\"2\"} 2\n", "# TYPE a gauge\na{x=\"1\"} 1\n} 7\na{x=\"2\"} 2\n",
		},
		{
			"exemplars", DialectOpenMetrics,
			"# TYPE a counter\na_total 1 # {trace_id=\"a\"} 1\n# EOF\n", "# TYPE a counter\na_total 2 # {trace_id=\"b\"} 1 5\n# EOF\n",
		},
		{
			"timestamps in every other body", DialectText,
			"a 1\nb 2 1700000000000\nc 3", "a 1 1700000000001\nb 22\nc 4",
		},
		{
			"a value that touches its name", DialectText,
			"a+1\nb 2\n", "a+2\nb 3\n",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			reader := NewReader(NewMemory(1000))
			layout := reader.Read([]byte(tc.first), tc.dialect).Layout
			require.Same(t, layout, reader.Read([]byte(tc.later), tc.dialect).Layout)
			require.Same(t, layout, reader.Read([]byte(tc.first), tc.dialect).Layout)
		})
	}
}

// A value may touch its name, and then the name's end depends on the value. Such
// a line must not be replayed.
func TestValueThatTouchesItsNameIsNotReplayed(t *testing.T) {
	reader := NewReader(NewMemory(1000))
	require.Equal(t, []string{"untyped foo", "  {} 1"}, render(reader.Read([]byte("foo+1 5\n"), DialectText)))
	require.Equal(t, []string{"untyped foo1", "  {} 5"}, render(reader.Read([]byte("foo1 5\n"), DialectText)))
}

// parsedLines is how many lines of a body go to the parsers.
func parsedLines(r *Reader, body []byte, d Dialect) int {
	if r.work == nil {
		r.work = r.memory.borrow()
	}
	r.walk(body, d)
	defer func() {
		r.freeScratch()
		r.pieces = r.pieces[:0]
	}()
	if r.parsing == nil {
		return 0
	}
	lines := 0
	for _, p := range r.pieces {
		if p.parsed {
			lines += p.to - p.from
		}
	}
	r.parsing.text.flush(body, r.parsing.raws)
	return lines
}

func TestOnlyChangedBlocksAreParsed(t *testing.T) {
	body := string(vllmBody("some/model", 1))
	family := "# TYPE vllm:new gauge\nvllm:new 1\n"
	at := strings.Index(body, "# HELP vllm:some_measured_thing3_seconds ")
	after := strings.Index(body, "# HELP vllm:some_measured_thing4_seconds ")
	for _, tc := range []struct {
		name, body string
		want       int
	}{
		{"nothing changed", body, 0},
		{"numbers changed", string(vllmBody("some/model", 2)), 0},
		{"a new family", body[:at] + family + body[at:], 2},
		{"new families", body[:at] + family + strings.ReplaceAll(family, "new", "newer") + body[at:], 4},
		{"a new family at the end", body + family, 2},
		{"a family is gone, with its creation times", body[:at] + body[after:], 0},
		{"half of the families are gone", body[at:], 0},
		{"a family changed", body[:at] + strings.Replace(body[at:], `,le="0.1"`, `,le="0.12"`, 1), 22},
		{"the order changed", body[at:] + body[:at], 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			reader := NewReader(NewMemory(1000))
			reader.Read([]byte(body), DialectText)
			require.Equal(t, tc.want, parsedLines(reader, []byte(tc.body), DialectText))
		})
	}
	t.Run("a new replica", func(t *testing.T) {
		memory := NewMemory(1000)
		known := NewReader(memory)
		known.Read([]byte(body), DialectText)
		require.Zero(t, parsedLines(NewReader(memory), vllmBody("some/model", 5), DialectText))
		runtime.KeepAlive(known)
	})
}

func TestSteadyReadsDoNotAllocate(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	bodies := [][]byte{vllmBody("some/model", 1), vllmBody("some/model", 2)}
	reader, i := NewReader(NewMemory(1000)), 0
	read := func() {
		reader.Read(bodies[i%2], DialectText)
		i++
	}
	read()
	read()
	require.Zero(t, testing.AllocsPerRun(100, read))
}

func TestMemoryForgetsWhatNoReaderUses(t *testing.T) {
	memory := NewMemory(1000)
	kept, gone := NewReader(memory), NewReader(memory)
	kept.Read([]byte("# TYPE a gauge\na 1\n# TYPE b gauge\nb 1\n"), DialectText)
	gone.Read(vllmBody("some/model", 1), DialectText)
	blocks, layouts, overflow := memory.Stats()
	require.Equal(t, []int{2 + 86, 2, 0}, []int{blocks, layouts, overflow})
	runtime.KeepAlive(gone)
	gone = nil
	runtime.GC()
	runtime.GC()
	blocks, layouts, overflow = memory.Stats()
	require.Equal(t, []int{2, 1, 0}, []int{blocks, layouts, overflow})
	runtime.KeepAlive(kept)
}

// A target whose body never looks the same twice must not make the memory grow.
func TestReaderKeepsFewLayouts(t *testing.T) {
	memory := NewMemory(1_000_000)
	reader := NewReader(memory)
	for i := range 300 {
		reader.Read([]byte("a{i=\""+strings.Repeat("i", i)+"\"} 1\n"), DialectText)
	}
	runtime.GC()
	runtime.GC()
	blocks, layouts, _ := memory.Stats()
	require.LessOrEqual(t, blocks, len(reader.recent))
	require.LessOrEqual(t, layouts, len(reader.recent))
	runtime.KeepAlive(reader)
}

// One large body must not stay in memory behind the small ones that follow it.
func TestReaderLetsGoOfALargeBody(t *testing.T) {
	memory := NewMemory(1000)
	reader := NewReader(memory)
	reader.Read(vllmBody("some/model", 1), DialectText)
	for _, body := range []string{"a 1\n", "b 1\n", "c 1\n"} {
		reader.Read([]byte(body), DialectText)
	}
	runtime.GC()
	runtime.GC()
	blocks, _, _ := memory.Stats()
	require.Equal(t, 3, blocks)
	runtime.KeepAlive(reader)
}

// Memory that goes from target to target keeps no layout and no text of the last one alive.
func TestBorrowedMemoryHoldsNothingOfItsLastBody(t *testing.T) {
	memory := NewMemory(1000)
	reader := NewReader(memory)
	reader.Read(append(vllmBody("some/model", 1), "# TYPE e counter\ne_total 1 # {trace_id=\"x\"} 1\nbad{\n"...), DialectOpenMetrics)
	w := reader.work
	reader.Done()
	require.Nil(t, reader.work)
	for _, b := range append(w.blocks[:cap(w.blocks)], nil) {
		require.Nil(t, b)
	}
	for _, p := range w.pieces[:cap(w.pieces)] {
		require.Zero(t, p)
	}
	for _, e := range w.snapshot.Exemplars[:cap(w.snapshot.Exemplars)] {
		require.Zero(t, e)
	}
	require.Nil(t, w.snapshot.Layout)
	require.Nil(t, w.parsing)
	reader.Done() // Without a body it does nothing.
	again := func(w *work) (is bool) {
		for range 100 { // With the race detector the pool drops some.
			memory.giveBack(w)
			is = is || memory.borrow() == w
		}
		return is
	}
	require.False(t, again(&work{values: make([]float64, maxKept+1)}))
	require.False(t, again(&work{matched: make([]float64, maxKept+1)}))
	require.True(t, again(&work{}))
}

// Where a family has many series, each must be found without looking at all.
func TestManySeriesAreFoundByIndex(t *testing.T) {
	g := growing{last: -1}
	const many = 10 * fewSeries
	for i := range many {
		g.seriesOf([]Label{{"i", strings.Repeat("x", i)}}).Value = i
	}
	require.Len(t, g.family.Series, many)
	require.Len(t, g.index, many)
	for i := range many {
		require.Equal(t, i, g.seriesOf([]Label{{"i", strings.Repeat("x", i)}}).Value)
	}
	require.Equal(t, -1, g.find([]Label{{"i", "y"}}))
	require.NotEqual(t, labelSetOf([]Label{{"a", "b1 c"}}), labelSetOf([]Label{{"a", "b"}, {"c", ""}}))
}

func TestFullMemoryIsCountedAndHarmless(t *testing.T) {
	for _, size := range []int{0, 10} {
		memory := NewMemory(size)
		one, two := NewReader(memory), NewReader(memory)
		body := vllmBody("some/model", 1)
		want := NewReader(NewMemory(0)).Read(body, DialectText)
		require.Empty(t, difference(one.Read(body, DialectText), want))
		require.Empty(t, difference(two.Read(body, DialectText), want))
		blocks, layouts, overflow := memory.Stats()
		require.Equal(t, size, blocks)
		require.LessOrEqual(t, layouts, size)
		require.GreaterOrEqual(t, overflow, 2*(86-size))
		// Each reader still remembers its own.
		layout := one.Read(body, DialectText).Layout
		require.Same(t, layout, one.Read(vllmBody("some/model", 2), DialectText).Layout)
		require.Zero(t, parsedLines(one, body, DialectText))
	}
}

// Many targets read through one memory at once, while others begin and end.
func TestMemoryIsSafeForConcurrentUse(t *testing.T) {
	memory := NewMemory(300)
	base := vllmBody("some/model", 1)
	var wg sync.WaitGroup
	for worker := range 6 {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(uint64(worker), 1))
			reader := NewReader(memory)
			for i := range 40 {
				body := mutations[random.IntN(len(mutations))].change(random, slices.Clone(base))
				want := NewReader(NewMemory(0)).Read(body, DialectText)
				if diff := difference(reader.Read(body, DialectText), want); diff != "" {
					t.Errorf("worker %d, body %d: %s", worker, i, diff)
					return
				}
				if i%10 == 0 {
					reader = NewReader(memory)
					memory.Stats()
				}
				if i%20 == 0 {
					runtime.GC()
				}
			}
		})
	}
	wg.Wait()
}

// The numbers of a Snapshot are good until the next Read, its layout for ever.
func TestLayoutOutlivesLaterReads(t *testing.T) {
	reader := NewReader(NewMemory(100))
	first := reader.Read([]byte("# TYPE a gauge\na{x=\"1\"} 1\n"), DialectText).Layout
	for range 5 {
		reader.Read(bytes.Repeat([]byte("# TYPE b counter\nb 2\n"), 3), DialectText)
		reader.Read([]byte("c 1\n"), DialectText)
	}
	require.Equal(t, []Family{{
		Name: "a", Kind: KindGauge,
		Series: []Series{{Labels: []Label{{"x", "1"}}, Value: 0, Sum: NoSlot, Count: NoSlot, Created: NoSlot}},
	}}, first.Families)
}
