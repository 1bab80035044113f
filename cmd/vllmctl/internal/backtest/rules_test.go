package backtest

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/backtest/history"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/backtest/promapi"
)

var hour = time.Date(2026, 7, 1, 0, 0, 0, 0, time.UTC)

func engine(t *testing.T, rules string) *Engine {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	file := filepath.Join(dir, "r.yaml")
	require.NoError(t, os.WriteFile(file, []byte(rules), 0o600))
	e, err := NewEngine(t.Context(), []string{file}, nil, hour, time.Minute)
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, e.Close())
		left, err := filepath.Glob(filepath.Join(dir, folderPrefix+"*"))
		assert.NoError(t, err)
		assert.Empty(t, left)
	})
	return e
}

const oneRule = `groups: [{name: g, rules: [{alert: A, expr: 'vllm:x > 0'}, {alert: B, expr: 'sum(node_load1{job="n"} offset 5m) > 1 and rate(vllm:y_total[1h]) > 0'}, {record: r, expr: 'vllm_up'}, {alert: C, expr: 'r == 0'}]}]`

// A series that a scrape does not have any more ends there: within a window, and between two.
// Series that no rule needs are not stored.
func TestSeriesOfTargetsEndWithTheScrapeThatLacksThem(t *testing.T) {
	for _, firstWindow := range []int{10, 20} {
		e := engine(t, oneRule)
		target := &history.Target{Name: "a", Form: history.Raw}
		part := func(from, to int) *history.Part {
			other := promapi.Series{Labels: labels.FromStrings("__name__", "vllm:other")}
			one := promapi.Series{Labels: labels.FromStrings("__name__", "vllm:x")}
			for i := from; i < to; i++ {
				at := hour.Add(time.Duration(i) * 15 * time.Second).UnixMilli()
				other.Times, other.Values = append(other.Times, at), append(other.Values, 1)
				if i < 10 {
					one.Times, one.Values = append(one.Times, at), append(one.Values, 1)
				}
			}
			series := []promapi.Series{other}
			if len(one.Times) > 0 {
				series = append(series, one)
			}
			return history.NewPart(target, series)
		}
		require.NoError(t, e.AddTarget(t.Context(), target, part(0, firstWindow)))
		require.NoError(t, e.Evaluate(t.Context(), history.Span{From: hour, To: hour.Add(time.Second)}))
		require.NoError(t, e.AddTarget(t.Context(), target, part(firstWindow, 30)))
		for i, want := range map[int]int{9: 1, 10: 0, 15: 0} {
			vector, err := e.store.Instant(t.Context(), "vllm:x", hour.Add(time.Duration(i)*15*time.Second))
			require.NoError(t, err)
			assert.Len(t, vector, want, "scrape %d, first window %d", i, firstWindow)
		}
		vector, err := e.store.Instant(t.Context(), "vllm:other", hour.Add(2*time.Minute))
		require.NoError(t, err)
		assert.Empty(t, vector)
	}
}

// The rules' own selectors are read where neither a target, nor the processor, nor another
// rule has the series; without an offset, which the engine applies itself.
func TestOnlyWhatIsNowhereElseIsReadForTheRules(t *testing.T) {
	e := engine(t, oneRule)
	assert.Equal(t, []string{`node_load1{job="n"}`}, e.Selectors())
	assert.GreaterOrEqual(t, e.longest, time.Hour)
	// Two selectors may choose one series; it is stored once.
	one := promapi.Series{Labels: labels.FromStrings("__name__", "node_load1", "job", "n"), Times: []int64{hour.UnixMilli()}, Values: []float64{1}}
	require.NoError(t, e.Add(t.Context(), []promapi.Series{one}))
	require.NoError(t, e.Add(t.Context(), []promapi.Series{one}))
	assert.Zero(t, e.dropped)
}
