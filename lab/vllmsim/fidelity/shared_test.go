package fidelity

import (
	"bufio"
	"compress/gzip"
	"context"
	"flag"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
)

var sharedFolder = flag.String("shared", "../../../../shared", "folder with the reference data")

func shared(t *testing.T) string {
	t.Helper()
	if _, err := os.Stat(filepath.Join(*sharedFolder, "profiles")); err != nil {
		t.Skipf("the reference data is not here: %v; -shared names its folder", err)
	}
	return *sharedFolder
}

// columns reads a table without the reader under test: the cells of each column.
func columns(t *testing.T, name string) map[string][]string {
	t.Helper()
	f, err := os.Open(filepath.Join(shared(t), "profiles", name))
	require.NoError(t, err)
	defer f.Close()
	var from io.Reader = f
	if strings.HasSuffix(name, ".gz") {
		from, err = gzip.NewReader(f)
		require.NoError(t, err)
	}
	out := map[string][]string{}
	var head []string
	for lines := bufio.NewScanner(from); lines.Scan(); {
		cells := strings.Split(lines.Text(), ",")
		if head == nil {
			head = cells
			continue
		}
		for i, name := range head {
			out[name] = append(out[name], cells[i])
		}
	}
	return out
}

func float(t *testing.T, cell string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(cell, 64)
	require.NoError(t, err)
	return v
}

func middle(values []float64) float64 {
	slices.Sort(values)
	n := len(values)
	return (values[(n-1)/2] + values[n/2]) / 2
}

func section(t *testing.T, name string) []Line {
	t.Helper()
	for _, s := range Sections() {
		if s.Name == name {
			lines, err := s.Lines(t.Context(), shared(t))
			require.NoError(t, err)
			return lines
		}
	}
	t.Fatal(name)
	return nil
}

func find(t *testing.T, lines []Line, what, quantity string) Line {
	t.Helper()
	for _, l := range lines {
		if l.What == what && l.Quantity == quantity {
			return l
		}
	}
	t.Fatalf("no line for %s, %s", what, quantity)
	return Line{}
}

// same checks that nothing is worse than published. Rounding and the machine's arithmetic
// have one point.
func same(t *testing.T, lines []Line) {
	t.Helper()
	page := readPage(t)
	for _, l := range lines {
		if len(l.Pairs) == 0 {
			continue
		}
		cells := publishedRow(t, page, l)
		if cells == nil {
			continue
		}
		_, _, signed, _ := l.Median()
		assert.LessOrEqual(t, 100*math.Abs(signed), math.Abs(number(t, cells[6]))+1,
			"%s, %s: the error is %+.0f %%, published as %s; if that is right, make fidelity publishes it", l.What, l.Quantity, 100*signed, cells[6])
		assert.InDelta(t, len(l.Pairs), number(t, cells[3]), 0.5, "cases of %s, %s", l.What, l.Quantity)
		if len(l.Pairs) > 1 {
			assert.LessOrEqual(t, 100*l.P90(), number(t, cells[7])+1, "nine of ten cases of %s, %s", l.What, l.Quantity)
		}
	}
}

func TestStepTimesAreAsCloseAsPublished(t *testing.T) {
	lines := section(t, "Step times")
	same(t, lines)
	// What was measured, read in another way: decode steps of the chat at TP 2.
	all := columns(t, "steps-measured-b300.csv.gz")
	var steps []float64
	for i, ms := range all["step_ms"] {
		if all["model"][i] == "Qwen3-32B" && all["tp"][i] == "2" && all["segment"][i] == "real" && all["prefill_tokens"][i] == "0" && all["decode_requests"][i] != "0" {
			steps = append(steps, float(t, ms))
		}
	}
	l := find(t, lines, "B300-SXM, Qwen3-32B, TP 2: decode", StepTime)
	assert.Len(t, l.Pairs, len(steps))
	measured, _, _, _ := l.Median()
	assert.InEpsilon(t, middle(steps), measured, 1e-9)
	assert.True(t, l.Fitted)
}

func TestWholeRunsAreAsCloseAsPublished(t *testing.T) {
	lines := section(t, "Whole runs")
	same(t, lines)
	q := columns(t, "runs/rtx-4090-llama-3.1-8b-requests.csv")
	var first, gap []float64
	for i := range q["arrival_s"] {
		begin := float(t, q["first_token_s"][i])
		first = append(first, 1e3*(begin-float(t, q["arrival_s"][i])))
		if n := float(t, q["output_tokens"][i]); n > 1 {
			gap = append(gap, 1e3*(float(t, q["last_token_s"][i])-begin)/(n-1))
		}
	}
	sum := func(v []float64) (s float64) {
		for _, x := range v {
			s += x
		}
		return s
	}
	assert.InEpsilon(t, sum(first)/float64(len(first)), find(t, lines, "rtx-4090-llama-3.1-8b", TTFT).Pairs[0].Measured, 1e-9)
	assert.InEpsilon(t, sum(gap)/float64(len(gap)), find(t, lines, "rtx-4090-llama-3.1-8b", TPOT).Pairs[0].Measured, 1e-9)
	// The source gives these means, rounded.
	assert.InDelta(t, 32.4, find(t, lines, "rtx-4090-llama-3.1-8b", TPOT).Pairs[0].Measured, 0.1)
	assert.InDelta(t, 65500, find(t, lines, "rtx-4090-llama-3.1-8b", TTFT).Pairs[0].Measured, 100)
}

func TestPublishedBenchmarksAreAsCloseAsPublished(t *testing.T) {
	same(t, section(t, "Published benchmarks"))
}

func TestCacheSizesAreAsCloseAsPublished(t *testing.T) {
	lines := section(t, "Cache sizes")
	same(t, lines)
	all := columns(t, "capacity.csv")
	var sizes []float64
	for i, n := range all["kv_cache_tokens"] {
		if strings.HasPrefix(all["model"][i], "Llama") {
			sizes = append(sizes, float(t, n))
		}
	}
	measured, _, _, _ := lines[0].Median()
	assert.InEpsilon(t, middle(sizes), measured, 1e-9)
	for _, p := range lines[0].Pairs {
		assert.Less(t, math.Abs(p.Error()), 0.25, p.Case)
	}
}

// The fast half of the closed loops: what the others add is long answers.
func TestAClosedLoopIsAsCloseAsPublished(t *testing.T) {
	d, err := open(shared(t))
	require.NoError(t, err)
	e := engineOf{"H100-80G-SXM", "Llama-3.1-70B", 8, "fp8", "bf16"}
	lines, err := closedLoopsOf(t.Context(), d, func(of engineOf) bool { return of == e })
	require.NoError(t, err)
	same(t, lines)
	all := columns(t, "closed-loop.csv")
	var tpot []float64
	for i, ms := range all["tpot_ms"] {
		if all["gpu"][i] == e.gpu && all["model"][i] == e.model && all["tp"][i] == "8" {
			tpot = append(tpot, float(t, ms))
		}
	}
	measured, _, _, _ := find(t, lines, e.String(), TPOT).Median()
	assert.InEpsilon(t, middle(tpot), measured, 1e-9)
}

func TestARecordingIsAsCloseAsPublished(t *testing.T) {
	d, err := open(shared(t))
	require.NoError(t, err)
	const name = "llama70b-tp4-16"
	lines, err := d.recording(context.Background(), recorded{name: name, clients: 16, tp: 4, capacity: 3900512})
	require.NoError(t, err)
	same(t, lines)
	q := columns(t, "series/"+name+"-requests.csv.gz")
	tokens, last := 0.0, 0.0
	for i := range q["sent_s"] {
		tokens += float(t, q["output_tokens"][i])
		last = max(last, float(t, q["sent_s"][i])+float(t, q["latency_ms"][i])/1e3)
	}
	assert.InEpsilon(t, tokens/last, find(t, lines, name, Throughput).Pairs[0].Measured, 1e-9)
}

// What is put together from kernels equals what the reference data has put together from
// them.
func TestComposedComponentsEqualThoseOfTheReference(t *testing.T) {
	d, err := open(shared(t))
	require.NoError(t, err)
	for _, e := range []engineOf{
		{"H100-80G-SXM", "Llama-3.1-70B", 4, "fp8", "bf16"},
		{"B300-SXM", "Qwen3-32B", 2, "bf16", "bf16"},
		{"L40S", "Llama-3.1-8B", 1, "bf16", "bf16"},
	} {
		parts, err := d.compose(e)
		require.NoError(t, err)
		all := columns(t, componentsFile)
		of := map[string][]engine.Point{
			"gemm": parts.Products, "lm_head": parts.Head, "allreduce": parts.AllReduce,
			"decode_attention": parts.Decode, "prefill_attention": parts.Prefill,
		}
		var off []float64
		for i, ms := range all["ms"] {
			if all["gpu"][i] != e.gpu || all["model"][i] != e.model || all["tp"][i] != strconv.Itoa(e.tp) || all["dtype"][i] != e.dtype {
				continue
			}
			x, y := float(t, all["x"][i]), 0.0
			if all["y"][i] != "" {
				y = float(t, all["y"][i])
			}
			for _, p := range of[all["component"][i]] {
				if p.X == x && p.Y == y {
					off = append(off, math.Abs(1e3*p.Seconds/float(t, ms)-1))
				}
			}
		}
		require.Greater(t, len(off), 100, e)
		slices.Sort(off)
		assert.Less(t, off[len(off)/2], 0.02, "%s: median", e)
		assert.Less(t, off[len(off)*9/10], 0.10, "%s: nine of ten", e)
	}
}
