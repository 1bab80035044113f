package realruns

import (
	"errors"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// shared reads all recordings of the folder of shared data next to the checkout.
func shared(t *testing.T) []*Recording {
	t.Helper()
	var all []*Recording
	for _, folder := range Folders("../../../../shared") {
		recordings, err := ReadFolder(folder, SharedVersion)
		if errors.Is(err, ErrAbsent) {
			t.Skipf("%s has no recordings: the folder \"shared\" is not next to the checkout", folder)
		}
		require.NoError(t, err)
		all = append(all, recordings...)
	}
	require.Len(t, all, 20)
	return all
}

func TestThePageHasWhatAReplayGives(t *testing.T) {
	if testing.Short() {
		t.Skip("it replays every recording a dozen times")
	}
	all := shared(t)
	part, err := Page(t.Context(), all, defaults())
	require.NoError(t, err)
	page, err := os.ReadFile("../../test/accuracy/results.md")
	require.NoError(t, err)
	assert.Contains(t, string(page), "<!-- recordings: begin -->\n"+part+"<!-- recordings: end -->", `"make recordings" writes it again`)
}

func TestEachRecordingHasATruth(t *testing.T) {
	all := shared(t)
	named := map[string]bool{}
	for _, r := range all {
		named[r.Name] = true
		truth, has := truths[r.Name]
		require.True(t, has, r.Name)
		assert.NotEmpty(t, truth.Why, r.Name)
		assert.True(t, r.Label != "" || truth.What != "", r.Name)
		for _, e := range truth.Episodes {
			assert.Less(t, e.From, min(e.Until, r.End()), r.Name)
			assert.NotEmpty(t, e.Right, r.Name)
		}
	}
	for name := range truths {
		assert.True(t, named[name], "%s is no recording", name)
	}
}

// What the page says about the recordings, read off the rows and the requests of the
// clients without the code that reconstructs and judges.
func TestTheTruthsAreInTheRecordings(t *testing.T) {
	recordings := map[string]*Recording{}
	for _, r := range shared(t) {
		recordings[r.Name] = r
	}
	// waits are the first and the last row with as many waiting requests, after a time.
	waits := func(name string, after, least float64) (first, last float64) {
		first, last = -1, -1
		for _, row := range recordings[name].Rows {
			if row.At >= after && row.Waiting >= least {
				last = row.At
				if first < 0 {
					first = row.At
				}
			}
		}
		return first, last
	}
	// share of the rows from a time on with that much of the KV cache in use.
	share := func(name string, from, usage float64) float64 {
		n, all := 0.0, 0.0
		for _, row := range recordings[name].Rows {
			if row.At >= from {
				all++
				if row.Usage >= usage {
					n++
				}
			}
		}
		return n / all
	}
	// usage is the range of the KV cache in use.
	usage := func(name string, from, until float64) (least, most float64) {
		least, most = math.Inf(1), math.Inf(-1)
		for _, row := range recordings[name].Rows {
			if row.At >= from && row.At <= until {
				least, most = min(least, row.Usage), max(most, row.Usage)
			}
		}
		return least, most
	}
	// interval is the mean time between the tokens of requests with their first token in a
	// time, for each token.
	interval := func(name string, from, until float64) float64 {
		time, tokens := 0.0, 0.0
		for _, q := range recordings[name].Requests {
			if q.First >= from && q.First < until {
				time += q.Last - q.First
				tokens += q.Output - 1
			}
		}
		return time / tokens
	}
	// rate is the generated tokens a second, by the counter.
	rate := func(name string, from, until float64) float64 {
		var first, last *Row
		for i := range recordings[name].Rows {
			row := &recordings[name].Rows[i]
			if row.At >= from && first == nil {
				first = row
			}
			if row.At <= until {
				last = row
			}
		}
		return (last.Generated - first.Generated) / (last.At - first.At)
	}

	for _, name := range []string{"llama70b-tp1-16", "llama70b-tp4-16", "llama70b-tp8-64", "deepseek-tp4-1"} {
		_, last := waits(name, 0, 1)
		assert.InDelta(t, -1, last, 0, "%s: no request waits", name)
	}
	_, last := waits("llama70b-tp1-128", 0, 1)
	assert.LessOrEqual(t, last, 3.1)

	// tp1-64 gets slower with the same work.
	assert.InDelta(t, 0.031, interval("llama70b-tp1-64", 60, 120), 0.002)
	assert.Greater(t, interval("llama70b-tp1-64", 1140, 1850), 1.3*interval("llama70b-tp1-64", 60, 120), "more than the bar of harm")
	assert.InDelta(t, 0.056, interval("llama70b-tp1-64", 1780, 1840), 0.003)
	assert.InDelta(t, 2080, rate("llama70b-tp1-64", 60, 120), 15)
	assert.InDelta(t, 1100, rate("llama70b-tp1-64", 1800, 1860), 15)

	for name, from := range map[string]float64{
		"llama70b-tp1-256": 263, "llama70b-tp1-512": 77, "llama70b-tp2-restart": 77, "deepseek-tp4-32": 9, "deepseek-tp4-128": 10, "deepseek-tp8-128": 12,
	} {
		// At first all come at once; tp1-256 has one waiting now and then before.
		after := map[string]float64{"llama70b-tp1-512": 20, "llama70b-tp1-256": 262}[name]
		first, _ := waits(name, after, 1)
		assert.InDelta(t, from, first, 1, name)
	}
	waiting, all := 0.0, 0.0
	for _, row := range recordings["llama70b-tp1-256"].Rows {
		if row.At >= 263 {
			all++
			waiting += min(row.Waiting, 1)
		}
	}
	assert.Greater(t, waiting/all, 0.98, "nearly always")
	early := 0.0
	for _, row := range recordings["deepseek-tp4-16"].Rows {
		if row.Waiting > 0 && (row.At < 419 || row.At > 421) {
			early = row.At
		}
	}
	assert.InDelta(t, 107, early, 1)
	least, _ := usage("llama70b-tp1-256", 263, 1222)
	assert.GreaterOrEqual(t, least, 0.94)
	for name, until := range map[string]float64{"llama70b-tp2-restart": 784, "deepseek-tp4-8": 61} {
		_, last := waits(name, 0, 1)
		assert.InDelta(t, until, last, 1, name)
	}
	for name, from := range map[string]float64{"deepseek-tp4-32": 151, "deepseek-tp4-64": 143, "deepseek-tp4-128": 141} {
		assert.InDelta(t, 0.95, share(name, from, 0.9), 0.05, name)
		_, before := usage(name, 0, from-2)
		assert.Less(t, before, 0.95, name)
	}
	for name, most := range map[string]float64{"rtx-4090-llama-3.1-8b": 234, "rtx-pro-6000-llama-3.1-8b": 104, "rtx-pro-6000-qwen3-30b-a3b": 37} {
		first, _ := waits(name, 0, most)
		assert.Positive(t, first, name)
		first, _ = waits(name, 0, most+1)
		assert.Negative(t, first, name)
	}
	for name, most := range map[string]float64{"rtx-4090-llama-3.1-8b": 138, "rtx-pro-6000-llama-3.1-8b": 20, "rtx-pro-6000-qwen3-30b-a3b": 10} {
		longest := 0.0
		for _, q := range recordings[name].Requests {
			longest = max(longest, q.First-q.Sent)
		}
		assert.InDelta(t, most, longest, 0.7, name)
	}

	// Lookups and prompt tokens of whole runs.
	for name, times := range map[string]float64{
		"llama70b-tp1-256": 3.1, "llama70b-tp1-512": 3.5, "llama70b-tp4-shared-gpu-small-cache": 10.3,
		"deepseek-tp4-32": 465, "deepseek-tp4-64": 121, "deepseek-tp4-128": 126, "deepseek-tp8-128": 52,
	} {
		end := recordings[name].Rows[len(recordings[name].Rows)-1]
		assert.InEpsilon(t, times, end.Queries/end.Prompt, 0.02, name)
	}

	// The shared GPUs: three seconds for a token, for an hour.
	assert.InDelta(t, 20, rate("llama70b-tp4-shared-gpu", 60, 3600), 3)
	assert.InDelta(t, 3.2, interval("llama70b-tp4-shared-gpu", 0, 3000), 0.3)
	_, most := usage("llama70b-tp4-shared-gpu", 0, 3628)
	assert.Less(t, most, 0.035)
	small := recordings["llama70b-tp4-shared-gpu-small-cache"]
	assert.InDelta(t, 214576, small.Capacity, 0)
	_, before := usage(small.Name, 0, 121)
	assert.Less(t, before, 0.95)
}

// While requests wait, servers before 0.27 count lookups again and again. The ratio is
// there, and exact, where none waits, and absent where the lookups prove nothing.
func TestNoHitRatioOfLookupsThatWereRepeated(t *testing.T) {
	settings := defaults()
	settings.Processor = map[string]any{
		"pool":    map[string]any{},
		"metrics": map[string]any{"vllm.diagnosis.signal": map[string]any{"enabled": true}},
	}
	const window = 60
	least, most, quiet, loud := map[string]float64{}, map[string]float64{}, 0, 0
	for _, r := range shared(t) {
		if !r.Counts.Lookups {
			continue
		}
		reports, err := Play(t.Context(), r, settings)
		require.NoError(t, err)
		for i := range reports {
			at := &reports[i]
			row, _, ok := r.answer(at.At, 10)
			first := row
			for first > 0 && r.Rows[first].At > at.At-window {
				first--
			}
			from, to := &r.Rows[first], &r.Rows[row]
			// The windows that the processor has, too: without a gap or a new process.
			if !ok || i < 7 || at.At-from.At > window+fresh || to.Queries < from.Queries || to.Prompt == from.Prompt || to.Queries == from.Queries {
				continue
			}
			waiting := 0.0
			for j := first; j <= row; j++ {
				waiting = max(waiting, r.Rows[j].Waiting)
			}
			again := (to.Queries - from.Queries) / (to.Prompt - from.Prompt)
			ratio := at.Value("vllm.prefix_cache.hit_ratio")
			computed := at.Value("vllm.diagnosis.signal/computed_tokens_per_request")
			switch {
			case again > 1.2 && waiting > 0:
				loud++
				assert.True(t, math.IsNaN(ratio), "%s, %v s: %v where lookups are %v times the prompt tokens", r.Name, at.At, ratio, again)
				assert.True(t, math.IsNaN(computed), "%s, %v s: %v computed tokens", r.Name, at.At, computed)
				assert.NotEqual(t, "reuse_fell", at.Detail, "%s, %v s", r.Name, at.At)
				assert.NotEqual(t, "cache_thrash", at.Cause, "%s, %v s", r.Name, at.At)
			case waiting == 0 && to.Preempted == from.Preempted && strings.HasPrefix(r.Name, "llama"):
				quiet++
				assert.InDelta(t, (to.Hits-from.Hits)/(to.Queries-from.Queries), ratio, 1e-9, "%s, %v s", r.Name, at.At)
			}
			if again > 1.2 && waiting > 0 {
				least[r.Version] = min(again, or(least, r.Version, again))
				most[r.Version] = max(again, most[r.Version])
			}
			// A pool of this server alone has the same value, or none either. It is emitted at
			// another time.
			if pooled := at.Value("vllm.pool.prefix_cache.hit_ratio"); math.IsNaN(ratio) && again > 1.2 && i > 9 && math.IsNaN(reports[i-1].Value("vllm.prefix_cache.hit_ratio")) && math.IsNaN(reports[i-2].Value("vllm.prefix_cache.hit_ratio")) {
				assert.True(t, math.IsNaN(pooled), "%s, %v s: the pool has %v", r.Name, at.At, pooled)
			}
		}
	}
	// As the page and the catalogue of defects have it.
	assert.InDelta(t, 40, most["0.15.0"], 2)
	assert.InDelta(t, 2500, most["0.19.1"], 50)
	t.Logf("%d quiet windows, %d windows with repeated lookups, %v to %v times the prompt tokens", quiet, loud, least, most)
	assert.Greater(t, quiet, 500)
	assert.Greater(t, loud, 500)
}

func or(m map[string]float64, key string, value float64) float64 {
	if v, has := m[key]; has {
		return v
	}
	return value
}
