package profile

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"go/format"
	"maps"
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

var (
	fit    = flag.Bool("fit", false, "fit the presets to the measurements again and write lab/vllmsim/engine/presets_data.go")
	shared = flag.String("shared", "../../../../shared", "folder with the reference data")
)

// worst is by how much a preset's step may differ from the sum of the measured parts.
const worst = 0.05

// wanted are the presets: the first two are older than their measurements.
var wanted = []struct {
	name string
	card engine.Card
}{
	{"8b-h100", engine.Card{GPU: "H100-80G-SXM", Model: "Llama-3.1-8B", DType: "bf16", TP: 1}},
	{"70b-tp4-h100", engine.Card{GPU: "H100-80G-SXM", Model: "Llama-3.1-70B", DType: "bf16", TP: 4}},
	{"70b-tp8-h100-fp8", engine.Card{GPU: "H100-80G-SXM", Model: "Llama-3.1-70B", DType: "fp8", TP: 8}},
	{"32b-tp2-h100", engine.Card{GPU: "H100-80G-SXM", Model: "Qwen3-32B", DType: "bf16", TP: 2}},
	{"8b-a100", engine.Card{GPU: "A100-80G-SXM", Model: "Llama-3.1-8B", DType: "bf16", TP: 1}},
	{"70b-tp4-a100", engine.Card{GPU: "A100-80G-SXM", Model: "Llama-3.1-70B", DType: "bf16", TP: 4}},
	{"32b-h200", engine.Card{GPU: "H200-141G-SXM", Model: "Qwen3-32B", DType: "bf16", TP: 1}},
	{"70b-tp2-b200-fp8", engine.Card{GPU: "B200-SXM", Model: "Llama-3.1-70B", DType: "fp8", TP: 2}},
	{"32b-b300", engine.Card{GPU: "B300-SXM", Model: "Qwen3-32B", DType: "bf16", TP: 1}},
	{"8b-l40s", engine.Card{GPU: "L40S", Model: "Llama-3.1-8B", DType: "bf16", TP: 1}},
}

func components(t *testing.T) string {
	t.Helper()
	path := filepath.Join(*shared, "profiles", "components.csv.gz")
	if _, err := os.Stat(path); err != nil {
		t.Skipf("the measurements are not here: %v; -shared names their folder", err)
	}
	return path
}

// measurement is what the file has of one card, by arguments.
type measurement map[string]map[[2]float64]float64

// measured reads the rows of a card by itself, without the reader under test.
func measured(t *testing.T, path string, card engine.Card) measurement {
	t.Helper()
	body := gunzip(t, path)
	out := measurement{}
	for _, line := range strings.Split(strings.TrimSpace(body), "\n")[1:] {
		f := strings.Split(line, ",")
		if f[0] != card.GPU || f[1] != card.Model || f[2] != strconv.Itoa(card.TP) || f[3] != card.DType {
			continue
		}
		if out[f[5]] == nil {
			out[f[5]] = map[[2]float64]float64{}
		}
		number := func(s string) float64 {
			if s == "" {
				return 0
			}
			v, err := strconv.ParseFloat(s, 64)
			require.NoError(t, err)
			return v
		}
		out[f[5]][[2]float64{number(f[6]), number(f[7])}] = number(f[8])
	}
	return out
}

// at interpolates linearly between the measured arguments of a part with one argument.
func (m measurement) at(part string, x float64) float64 {
	var xs []float64
	for k := range m[part] {
		xs = append(xs, k[0])
	}
	if len(xs) == 0 {
		return 0
	}
	slices.Sort(xs)
	last := xs[len(xs)-1]
	if x >= last {
		return m[part][[2]float64{last}] * x / last
	}
	i := 0
	for xs[i+1] <= x {
		i++
	}
	a, b := m[part][[2]float64{xs[i]}], m[part][[2]float64{xs[i+1]}]
	return a + (b-a)*(x-xs[i])/(xs[i+1]-xs[i])
}

// step is a step of the measurements: so many sequences that generate, or one chunk.
type step struct {
	batch engine.Batch
	ms    float64
	name  string
}

// steps are those whose attention was measured: the sum of the measured parts.
func (m measurement) steps() (out []step) {
	for k, ms := range m["decode_attention"] {
		var b engine.Batch
		for range int(k[0]) {
			b.AddDecode(1, int(k[1]))
		}
		out = append(out, step{b, ms + m.at("gemm", k[0]) + m.at("lm_head", k[0]) + m.at("allreduce", k[0]), fmt.Sprintf("%v sequences of %v", k[0], k[1])})
	}
	for k, ms := range m["prefill_attention"] {
		var b engine.Batch
		b.AddChunk(int(k[0]), int(k[1]))
		out = append(out, step{b, ms + m.at("gemm", k[0]) + m.at("lm_head", 1) + m.at("allreduce", k[0]), fmt.Sprintf("%v tokens after %v", k[0], k[1])})
	}
	return out
}

func TestThePresetsAreFittedToTheMeasurements(t *testing.T) {
	path := components(t)
	if *fit {
		writePresets(t, path)
		return
	}
	models := engine.Models()
	require.Len(t, models, len(wanted))
	for _, w := range wanted {
		model := models[w.name]
		largest, sum, n := 0.0, 0.0, 0
		where := ""
		model.StepSeconds, model.KVTokenSeconds = 0, 0
		for _, s := range measured(t, path, w.card).steps() {
			off := math.Abs(model.StepTime(s.batch, engine.Nominal())*1000/s.ms - 1)
			sum += off
			n++
			if off > largest {
				largest, where = off, s.name
			}
		}
		require.Greater(t, n, 100, w.name)
		t.Logf("%-18s %d steps: mean %.1f %%, at most %.1f %% (%s)", w.name, n, sum/float64(n)*100, largest*100, where)
		assert.Less(t, largest, worst, "%s: %s; -fit fits it again", w.name, where)
	}
}

// knot is a point of a fitted part.
type knot struct{ x, ms float64 }

// thin keeps as few points as make the error of each, in units of what it may be, less than 1.
func thin(points []knot, allowed func(x, ms float64) float64, logarithms bool) []knot {
	kept := []knot{points[0], points[len(points)-1]}
	for len(kept) < len(points) {
		largest, at := 1.0, -1
		for i, p := range points {
			if e := math.Abs(between(kept, p.x, logarithms)-p.ms) / allowed(p.x, p.ms); e > largest {
				largest, at = e, i
			}
		}
		if at < 0 {
			break
		}
		kept = append(kept, points[at])
		slices.SortFunc(kept, func(a, b knot) int { return cmp.Compare(a.x, b.x) })
	}
	// The kept values move by small steps, so that the points between them fit better.
	loss := func() (sum float64) {
		for _, p := range points {
			e := (between(kept, p.x, logarithms) - p.ms) / allowed(p.x, p.ms)
			sum += math.Pow(e, 8)
		}
		return sum
	}
	for range 60 {
		for i := range kept {
			for _, f := range []float64{1.004, 1 / 1.004} {
				before, was := loss(), kept[i].ms
				kept[i].ms *= f
				if loss() >= before {
					kept[i].ms = was
				}
			}
		}
	}
	for i := range kept {
		kept[i].ms = rounded(kept[i].ms)
	}
	return kept
}

func rounded(v float64) float64 {
	out, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 3, 64), 64)
	return out
}

func between(kept []knot, x float64, logarithms bool) float64 {
	i := 0
	for i+2 < len(kept) && kept[i+1].x <= x {
		i++
	}
	a, b := kept[i], kept[i+1]
	if logarithms || b.x/a.x > 2 {
		return a.ms * math.Pow(b.ms/a.ms, math.Log(x/a.x)/math.Log(b.x/a.x))
	}
	return a.ms + (b.ms-a.ms)*(x-a.x)/(b.x-a.x)
}

// share is the part of the allowed error that a single part may have, since two or three of
// them are summed.
const share = 0.55 * worst

func writePresets(t *testing.T, path string) {
	t.Helper()
	var out bytes.Buffer
	out.WriteString(`package engine

// Fitted to measurements of single kernels by NVIDIA: github.com/ai-dynamo/aiconfigurator,
// commit 095f58a51c4c, aic-core/src/aiconfigurator_core/systems/data, vLLM 0.24.0 (A100:
// 0.14.0), licence Apache 2.0. Fitted by "go test ./lab/vllmsim/profile -run Fitted -fit",
// which also proves that steps are within 5 % of the sums of the measurements.
var presets = []fitted{
`)
	for _, w := range wanted {
		m := measured(t, path, w.card)
		one := func(part string) []knot {
			var points []knot
			for k, ms := range m[part] {
				points = append(points, knot{k[0], ms})
			}
			slices.SortFunc(points, func(a, b knot) int { return cmp.Compare(a.x, b.x) })
			return points
		}
		fmt.Fprintf(&out, "\t{\n\t\tname: %q, card: Card{GPU: %q, Model: %q, DType: %q, TP: %d},\n", w.name, w.card.GPU, w.card.Model, w.card.DType, w.card.TP)
		floor := func(x float64) float64 { return m.at("gemm", x) + m.at("lm_head", min(x, 512)) + m.at("allreduce", x) }
		for _, part := range []struct{ name, field string }{{"gemm", "products"}, {"lm_head", "head"}, {"allreduce", "allReduce"}} {
			if len(m[part.name]) == 0 {
				continue
			}
			kept := thin(one(part.name), func(x, _ float64) float64 { return share * floor(x) }, false)
			writeKnots(&out, part.field, kept)
		}
		prompt := thin(wholePrompts(m), func(x, ms float64) float64 { return min(0.02*ms+1e-9, share/4*(floor(x)+ms)) }, true)
		writeKnots(&out, "prompt", prompt)
		writeGrid(&out, m, floor)
		out.WriteString("\t},\n")
	}
	out.WriteString("}\n")
	source, err := format.Source(out.Bytes())
	require.NoError(t, err)
	require.NoError(t, os.WriteFile("../engine/presets_data.go", source, 0o600))
}

func writeKnots(out *bytes.Buffer, field string, kept []knot) {
	fmt.Fprintf(out, "\t\t%s: []knot{", field)
	for i, k := range kept {
		if i > 0 {
			out.WriteString(", ")
		}
		fmt.Fprintf(out, "{%v, %v}", k.x, k.ms)
	}
	out.WriteString("},\n")
}

// wholePrompts is attention over whole prompts, also of lengths that were measured only as
// the rest of a prompt.
func wholePrompts(m measurement) []knot {
	whole := map[float64]float64{}
	for k, ms := range m["prefill_attention"] {
		if k[1] == 0 {
			whole[k[0]] = ms
		}
	}
	own := maps.Clone(whole)
	for k, ms := range m["prefill_attention"] {
		before, there := own[k[1]]
		if _, known := whole[k[0]+k[1]]; k[1] > 0 && there && !known && ms > 1.02*own[k[0]] && k[0] >= k[1]/4 {
			whole[k[0]+k[1]] = before + ms
		}
	}
	var out []knot
	for n, ms := range whole {
		out = append(out, knot{n, ms})
	}
	slices.SortFunc(out, func(a, b knot) int { return cmp.Compare(a.x, b.x) })
	return out
}

// grid is attention of generating sequences by their number and by what they have in the
// cache together, linear in logarithms.
type grid struct {
	rows, columns []float64
	v             [][]float64
}

func (g grid) at(x, y float64) float64 {
	i, right := place(g.rows, x)
	j, down := place(g.columns, y)
	low := math.Log(g.v[i][j])*(1-down) + math.Log(g.v[i][j+1])*down
	high := math.Log(g.v[i+1][j])*(1-down) + math.Log(g.v[i+1][j+1])*down
	return math.Exp(low*(1-right) + high*right)
}

// place returns the gap that x is in and where in it, by logarithms.
func place(at []float64, x float64) (int, float64) {
	x = min(max(x, at[0]), at[len(at)-1])
	i := 0
	for i+2 < len(at) && at[i+1] <= x {
		i++
	}
	return i, math.Log(x/at[i]) / math.Log(at[i+1]/at[i])
}

// without leaves out a row or a column.
func (g grid) without(row, column int) grid {
	out := grid{rows: slices.Clone(g.rows), columns: slices.Clone(g.columns)}
	for _, r := range g.v {
		r = slices.Clone(r)
		if column >= 0 {
			r = slices.Delete(r, column, column+1)
		}
		out.v = append(out.v, r)
	}
	if row >= 0 {
		out.rows, out.v = slices.Delete(out.rows, row, row+1), slices.Delete(out.v, row, row+1)
	}
	if column >= 0 {
		out.columns = slices.Delete(out.columns, column, column+1)
	}
	return out
}

// writeGrid drops rows and columns as long as the steps stay within the allowed error.
func writeGrid(out *bytes.Buffer, m measurement, floor func(float64) float64) {
	type sample struct{ d, kv, ms, allowed float64 }
	var samples []sample
	var g grid
	byRow := map[float64][]knot{}
	for k, ms := range m["decode_attention"] {
		samples = append(samples, sample{k[0], k[0] * k[1], ms, share * (floor(k[0]) + ms)})
		g.rows, g.columns = append(g.rows, k[0]), append(g.columns, k[0]*k[1])
		byRow[k[0]] = append(byRow[k[0]], knot{k[0] * k[1], ms})
	}
	slices.SortFunc(samples, func(a, b sample) int { return cmp.Or(cmp.Compare(a.d, b.d), cmp.Compare(a.kv, b.kv)) })
	slices.Sort(g.rows)
	slices.Sort(g.columns)
	g.rows, g.columns = slices.Compact(g.rows), slices.Compact(g.columns)
	for _, r := range g.rows {
		own := byRow[r]
		slices.SortFunc(own, func(a, b knot) int { return cmp.Compare(a.x, b.x) })
		var values []float64
		for _, c := range g.columns {
			v := between(own, min(max(c, own[0].x), own[len(own)-1].x), true)
			if last := own[len(own)-1].x; c > last {
				v *= c / last
			}
			values = append(values, v)
		}
		g.v = append(g.v, values)
	}
	off := func(g grid, s sample) float64 { return math.Abs(g.at(s.d, s.kv)-s.ms) / s.allowed }
	largest := func(g grid) (worst float64) {
		for _, s := range samples {
			worst = max(worst, off(g, s))
		}
		return worst
	}
	loss := func(g grid) (sum float64) {
		for _, s := range samples {
			sum += math.Pow(off(g, s), 6)
		}
		return sum
	}
	settle := func(g grid, rounds int) {
		for range rounds {
			for i := range g.v {
				for j := range g.v[i] {
					for _, f := range []float64{1.01, 1 / 1.01} {
						before, was := loss(g), g.v[i][j]
						g.v[i][j] *= f
						if loss(g) >= before {
							g.v[i][j] = was
						}
					}
				}
			}
		}
	}
	for {
		var best grid
		least := math.Inf(1)
		for i := 1; i < len(g.rows)-1; i++ {
			if fewer := g.without(i, -1); loss(fewer) < least {
				best, least = fewer, loss(fewer)
			}
		}
		for j := 1; j < len(g.columns)-1; j++ {
			if fewer := g.without(-1, j); loss(fewer) < least {
				best, least = fewer, loss(fewer)
			}
		}
		if math.IsInf(least, 1) {
			break
		}
		if largest(best) > 0.7 {
			settle(best, 20)
		}
		if largest(best) > 1 {
			break
		}
		g = best
	}
	settle(g, 40)
	list := func(v []float64) string {
		return strings.Trim(strings.Join(strings.Fields(fmt.Sprint(v)), ", "), "[]")
	}
	fmt.Fprintf(out, "\t\tsequences: []float64{%s},\n\t\tcached: []float64{%s},\n\t\tdecode: [][]float64{\n", list(g.rows), list(g.columns))
	for _, r := range g.v {
		for j := range r {
			r[j] = rounded(r[j])
		}
		fmt.Fprintf(out, "\t\t\t{%s},\n", list(r))
	}
	out.WriteString("\t\t},\n")
}
