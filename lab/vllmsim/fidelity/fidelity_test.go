package fidelity

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
)

func TestTheErrorOfALineIsItsMedian(t *testing.T) {
	l := Line{Bar: 0.15, Pairs: []Pair{{"a", 10, 11}, {"b", 100, 80}, {"c", 20, 20}, {"d", 1, 3}, {"e", 10, 8.8}}}
	measured, simulated, signed, size := l.Median()
	assert.InDelta(t, 10, measured, 1e-9)
	assert.InDelta(t, 11, simulated, 1e-9)
	assert.InDelta(t, 0, signed, 1e-9, "of +10, -20, 0, +200 and -12 %")
	assert.InDelta(t, 0.12, size, 1e-9)
	assert.True(t, l.Held())
	assert.InDelta(t, 0.2+0.6*1.8, l.P90(), 1e-9)
	l.Bar = 0.1
	assert.False(t, l.Held())
}

func TestAFactorCountsAlikeInBothDirections(t *testing.T) {
	for _, simulated := range []float64{149, 67.2} {
		assert.True(t, Line{Bar: 0.5, Factor: true, Pairs: []Pair{{"", 100, simulated}}}.Held(), "%v", simulated)
	}
	for _, simulated := range []float64{151, 66.2} {
		assert.False(t, Line{Bar: 0.5, Factor: true, Pairs: []Pair{{"", 100, simulated}}}.Held(), "%v", simulated)
	}
}

func TestTheTableSaysWhatIsHeldMissedFittedAndNotSimulated(t *testing.T) {
	lines := []Line{
		{Section: "A", What: "one", Quantity: TPOT, Bar: 0.15, Fitted: true, Pairs: []Pair{{"", 10, 11}}},
		{Section: "A", What: "two", Quantity: TTFT, Bar: 0.25, Note: "why", Pairs: []Pair{{"", 1000, 1500}, {"", 1000, 1500}}},
		{Section: "B", What: "three", Quantity: TTFT, Bar: 0.5, Factor: true, Pairs: []Pair{{"", 0.0512, 0.0512}}},
		{Section: "B", What: "four", Note: "not simulated"},
	}
	assert.Equal(t, "A\tone\tTPOT, ms\t1\t10.0\t11.0\t+10 %\t\t15 %: held\tfitted\n"+
		"A\ttwo\tTTFT, ms\t2\t1000\t1500\t+50 %\t50 %\t25 %: missed\twhy\n"+
		"B\tthree\tTTFT, ms\t1\t0.0512\t0.0512\t0 %\t\tfactor 1.5: held\t\n"+
		"B\tfour\t\t\t\t\t\t\t\tnot simulated\n", strings.SplitN(Table(lines), "\n", 2)[1])
	assert.Contains(t, Summary(lines), "holds 2 of 3 bars.\n")
	assert.Contains(t, Summary(lines), "| TTFT, ms | 1 of 2 | +25 % | 0 %, +50 % |\n")
}

func TestWithoutReferenceDataTheErrorSaysWhichFolderIsMissing(t *testing.T) {
	for _, s := range Sections() {
		_, err := s.Lines(t.Context(), t.TempDir())
		require.ErrorIs(t, err, ErrAbsent)
		require.ErrorContains(t, err, "there is no folder ")
	}
}

// A table that is cut, or has a word where a number belongs, is an error with its place.
func TestADamagedTableIsAnErrorWithItsPlace(t *testing.T) {
	for _, c := range []struct{ body, text string }{
		{"gpu,model\nB200-SXM,x\n", `capacity.csv:2: there is no column "tp"`},
		{"gpu,model,tp,weights,kv_dtype,kv_cache_tokens\nB200-SXM,Llama-3.3-70B,1,fp8,fp8,many\n", `capacity.csv:2: column kv_cache_tokens: "many" is not a number`},
		{"gpu,model,tp,weights,kv_dtype,kv_cache_tokens\nB200-SXM,Llama-3.3-70B,1,fp8,fp8,NaN\n", `"NaN" is not a number`},
		{"gpu,model,tp,weights,kv_dtype,kv_cache_tokens\nB200-SXM,Llama-3.3-70B,1,fp8,fp8,0\n", "measured 0, simulated"},
		{"gpu,model\nB200-SXM\n", "wrong number of fields"},
		{"", "EOF"},
	} {
		shared := t.TempDir()
		require.NoError(t, os.Mkdir(filepath.Join(shared, "profiles"), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(shared, "profiles", "capacity.csv"), []byte(c.body), 0o600))
		for _, s := range Sections() {
			if s.Name == "Cache sizes" {
				_, err := s.Lines(t.Context(), shared)
				require.ErrorContains(t, err, c.text)
			}
		}
	}
}

func TestConversationsArePutTogetherFromTheirRequests(t *testing.T) {
	turns := []turn{
		{number: 1, prompt: 100, output: 50, sent: 0, ended: 2},
		{number: 1, prompt: 30, output: 20, sent: 0, ended: 2.01},
		// Follows the first one: the second had only 50 tokens, and a turn that continues it
		// could be as short as 48.
		{number: 3, prompt: 170, output: 10, sent: 2.005, ended: 3},
		{number: 3, prompt: 60, output: 10, sent: 2.02, ended: 3.5},
		// No client was answered at that moment: a conversation whose beginning is not known.
		{number: 3, prompt: 500, output: 10, sent: 9, ended: 10},
		{number: 5, prompt: 200, output: 10, sent: 3.1, ended: 4},
	}
	got := together(turns)
	var lengths [][]int32
	for _, c := range got {
		var prompts []int32
		for _, turn := range c.Turns {
			prompts = append(prompts, turn.Prompt)
		}
		lengths = append(lengths, prompts)
	}
	assert.ElementsMatch(t, [][]int32{{100, 170, 200}, {30, 60}, {500}}, lengths)
	assert.InDelta(t, 0.1, got[0].Turns[2].Think, 1e-9)
	assert.Equal(t, []engine.BlockRun{{First: 0, Last: 5}}, got[0].Turns[0].Prefix, "100 tokens fill 6 blocks of 16")
}

func TestRecordedWorkIsSpreadEvenly(t *testing.T) {
	sum := 0
	for i := range 7 {
		n := part(100, 7, i)
		assert.InDelta(t, 100.0/7, n, 1)
		sum += n
	}
	assert.Equal(t, 100, sum)
}

func TestBetweenMeasurementsIsLinearInLogarithmsAndBeyondThemInProportion(t *testing.T) {
	s := newSeries(map[float64]float64{1: 1, 4: 16, 16: 4})
	for x, want := range map[float64]float64{0.5: 1, 1: 1, 2: 4, 4: 16, 8: 8, 16: 4, 32: 8} {
		assert.InDelta(t, want, s.at(x), 1e-9, "at %v", x)
	}
}

// A closed loop of clients with a step of a known length has a known throughput.
func TestARunMeasuresWhatItsClientsSee(t *testing.T) {
	step := 10 * 1e-3
	even := []engine.Point{{X: 1, Seconds: step / 4}, {X: 1e6, Seconds: step / 4}}
	var plane []engine.Point
	for _, x := range []float64{1, 1e6} {
		for _, y := range []float64{1, 1e6} {
			plane = append(plane, engine.Point{X: x, Y: y, Seconds: step / 4})
		}
	}
	tables, err := engine.NewTables(engine.Parts{Products: even, Head: even, AllReduce: even, Decode: plane, Prefill: plane})
	require.NoError(t, err)
	of := func(clients int) answers {
		a, err := run(t.Context(), engine.Config{
			Model: engine.Model{Name: "even", Tables: tables, GPUs: 1, Blocks: 10000}, MaxModelLen: 4096,
			Workload: engine.Workload{Clients: clients, Traffic: lengths(100, 101, clients*perClient, false)},
		}, clients*perClient)
		require.NoError(t, err)
		return a
	}
	// One client gets 101 tokens in 101 steps, and sends the next request a millisecond later.
	one := of(1)
	assert.InDelta(t, 10, quantile(one.first(), 0.5), 1e-6)
	assert.InDelta(t, 10, quantile(one.gaps(), 0.5), 1e-6)
	assert.InEpsilon(t, 101/1.011, one.tokensPerSecond(), 0.001)
	assert.InEpsilon(t, 1/1.011, one.requestsPerSecond(), 0.001)
	assert.InEpsilon(t, 10.0/9999, one.usage, 0.1, "7 to 13 blocks")
	// Four clients get as much each, but that the prompts of some delay the tokens of others.
	four := of(4)
	assert.InDelta(t, 10, quantile(four.gaps(), 0.5), 0.1)
	assert.InEpsilon(t, 4*one.tokensPerSecond(), four.tokensPerSecond(), 0.04)
	assert.InEpsilon(t, 4*one.usage, four.usage, 0.1)
}

func TestPublishedLengthsHaveTheirSums(t *testing.T) {
	in, out := 0.0, 0.0
	for _, a := range chats(1000, 229711, 203068).Arrivals {
		in, out = in+float64(a.Prompt), out+float64(a.Output)
		assert.Zero(t, a.At)
	}
	assert.InEpsilon(t, 229711, in, 0.01)
	assert.InEpsilon(t, 203068, out, 0.01)
	last := 0.0
	for _, a := range atRate(16, 2000, func() (int, int) { return 1, 1 }).Arrivals {
		last = a.At
	}
	assert.InEpsilon(t, 2000/16.0, last, 0.1)
}

// publishedRow finds the line of the published table.
func publishedRow(t *testing.T, page string, l Line) (cells []string) {
	t.Helper()
	for line := range strings.Lines(page) {
		cells = strings.Split(line, "\t")
		if len(cells) > 7 && cells[1] == l.What && cells[2] == l.Quantity {
			return cells
		}
	}
	t.Errorf("results.tsv has no line for %s, %s: make fidelity", l.What, l.Quantity)
	return nil
}

func readPage(t *testing.T) string {
	t.Helper()
	body, err := os.ReadFile("results.tsv")
	require.NoError(t, err)
	return string(body)
}

// number reads "+12 %" or "12.3".
func number(t *testing.T, cell string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(strings.TrimSuffix(cell, " %"), 64)
	require.NoError(t, err)
	return v
}
