package rulestore

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

var begin = time.Date(2026, 7, 1, 0, 0, 0, 0, time.UTC)

func open(t *testing.T, block, keep time.Duration) *Store {
	t.Helper()
	s, err := Open(t.TempDir(), Suffixed, block, keep)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, s.Close()) })
	return s
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// square is 1 in every second half hour.
func square(from, to time.Duration) Series {
	s := Series{Labels: labels.FromStrings("__name__", "square", "instance", "a")}
	for at := from; at < to; at += 15 * time.Second {
		s.Times = append(s.Times, begin.Add(at).UnixMilli())
		s.Values = append(s.Values, float64(int(at/(30*time.Minute))%2))
	}
	return s
}

// Alerts fire at the times that their rules say, over days that are written to disk, and
// recorded series can be used by others.
func TestAlertsFireWhenTheirRulesSay(t *testing.T) {
	s := open(t, 2*time.Hour, 6*time.Hour)
	file := write(t, "r.yaml", `groups:
- name: a
  rules:
  - {record: recorded, expr: square * 2}
- name: b
  interval: 45s
  rules:
  - alert: High
    expr: recorded == 2
    for: 5m
    labels: {severity: page}
    annotations: {summary: '{{ $labels.instance }} is high'}
- name: c
  rules: [{alert: Broken, expr: 'square * on () group_left () {__name__=~"square|other"}', annotations: {summary: '{{ template "none" }}'}}]
`)
	e, errs := NewEvaluation(t.Context(), s, begin, 30*time.Second, file)
	require.Empty(t, errs)
	length := 30 * time.Hour
	for at := time.Duration(0); at < length; at += time.Hour {
		dropped, err := s.Append(t.Context(), []Series{square(at, at+time.Hour)})
		require.NoError(t, err)
		require.Zero(t, dropped)
		require.NoError(t, e.Until(t.Context(), begin.Add(at+time.Hour-time.Millisecond)))
		require.NoError(t, s.Compact(t.Context()))
	}
	all, problems, dropped := e.Finish(begin.Add(length))
	require.Zero(t, dropped)
	var high []Firing
	for _, f := range all {
		if f.Alert == "High" {
			high = append(high, f)
		}
	}
	require.Len(t, high, 30)
	for i, f := range high {
		up := begin.Add(time.Duration(i)*time.Hour + 30*time.Minute)
		assert.WithinRange(t, f.From, up.Add(5*time.Minute), up.Add(6*time.Minute))
		assert.WithinRange(t, f.To, up.Add(30*time.Minute), up.Add(31*time.Minute))
		assert.Equal(t, "a is high", f.Summary)
		assert.Equal(t, "page", f.Labels.Get("severity"))
	}
	assert.True(t, high[29].Lasts)
	require.NotEmpty(t, problems)
	assert.Equal(t, "Broken", problems[0].Rule)
	assert.Greater(t, problems[0].Times, 100)
	assert.Contains(t, problems[0].String(), "times, first at 2026-07-01T00:00:00Z")
	// Old blocks are on disk, and the oldest are dropped.
	assert.NotEmpty(t, s.DB.Blocks())
	for _, b := range s.DB.Blocks() {
		assert.Greater(t, b.MaxTime(), begin.Add(length-12*time.Hour).UnixMilli())
	}
}

// Samples that are not later than those that are there are dropped and counted.
func TestSamplesOutOfOrderAreDropped(t *testing.T) {
	s := open(t, Memory, 0)
	one := square(0, time.Minute)
	for _, want := range []int{0, 3} {
		again := one
		again.Values = []float64{5, 6, 7, one.Values[3]}
		dropped, err := s.Append(t.Context(), []Series{again, square(0, 0)})
		require.NoError(t, err)
		assert.Equal(t, want, dropped, "the newest is the same")
	}
}

func TestMetricsAreStoredAsPrometheusTranslatesThem(t *testing.T) {
	s := open(t, Memory, 0)
	m := pmetric.NewMetrics()
	rm := m.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr("service.name", "vllm")
	rm.Resource().Attributes().PutStr("service.instance.id", "a:1")
	rm.Resource().Attributes().PutStr("k8s.pod.name", "p")
	one := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	one.SetName("vllm.up")
	one.SetUnit("1")
	p := one.SetEmptyGauge().DataPoints().AppendEmpty()
	p.SetTimestamp(pcommon.NewTimestampFromTime(begin))
	p.SetDoubleValue(1)
	require.NoError(t, s.Take(t.Context(), m))
	vector, err := s.Instant(t.Context(), `vllm_up_ratio{job="vllm",instance="a:1",k8s_pod_name="p"}`, begin)
	require.NoError(t, err)
	assert.Len(t, vector, 1)
	matrix, err := s.Range(t.Context(), "vllm_up_ratio", begin, begin.Add(time.Minute), 15*time.Second)
	require.NoError(t, err)
	require.Len(t, matrix, 1)
	assert.Len(t, matrix[0].Floats, 5)
	_, err = s.Instant(t.Context(), "sum(", begin)
	require.Error(t, err)
}

func TestHowFarAnExpressionLooksBack(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"up": 0, "rate(up[1h])": time.Hour, "up offset 2h": 2 * time.Hour, "rate(up[1h] offset 30m)": 90 * time.Minute,
		"max_over_time(rate(up[5m])[1d:1m])": 24*time.Hour + 5*time.Minute, "up or rate(up[3d])": 72 * time.Hour,
	} {
		expr, err := parser.NewParser(parser.Options{}).ParseExpr(text)
		require.NoError(t, err)
		assert.Equal(t, want+Lookback, Longest(expr), text)
	}
}

func TestWrongFilesAreRefused(t *testing.T) {
	s := open(t, Memory, 0)
	_, errs := NewEvaluation(t.Context(), s, begin, time.Minute, write(t, "bad.yaml", "groups: [{name: a, rules: [{alert: x}]}]"))
	assert.NotEmpty(t, errs)
	_, errs = NewEvaluation(t.Context(), s, begin, time.Minute, filepath.Join(t.TempDir(), "none"))
	assert.NotEmpty(t, errs)
}
