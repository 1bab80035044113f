package main

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// In a small fleet, each alert fires for the servers that the page describes.
func TestTheAlertsOfThePageFireForTheRightServers(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	var db fleet
	add := func(value float64, name, instance string, more ...string) {
		series := labels.FromStrings(append([]string{
			model.MetricNameLabel, name, "job", "v", "instance", instance, "engine", "0", "model_name", "m",
		}, more...)...)
		db = append(db, storage.NewListSeries(series, []chunks.Sample{sample{t: now.UnixMilli(), v: value}}))
	}
	for instance, severity := range map[string]float64{"well": 0, "slow": 2, "harmed": 2, "hung": 3} {
		add(4, "vllm_num_requests_running", instance)
		add(severity, "vllm_diagnosis_severity", instance)
	}
	add(4, "vllm_num_requests_running", "missed")
	const cause = "vllm_diagnosis_cause"
	add(0, cause, "well", "cause", "slow_steps", "role", "primary")
	add(0, cause, "slow", "cause", "slow_steps", "role", "primary")
	add(1, cause, "slow", "cause", "slow_steps", "role", "contributing")
	add(1, cause, "slow", "cause", "prefill_heavy", "role", "primary", "detail", "prompts_grew")

	// The harm of one server has no known cause.
	want := map[string][]string{
		"VLLMNotServing": {"hung "}, "VLLMDegraded": {"slow prefill_heavy", "harmed "}, "VLLMDiagnosisMissing": {"missed "},
		"VLLMDiagnosisGone": {},
	}
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 1000, Timeout: time.Minute})
	for name, expression := range pageAlerts(t) {
		require.Contains(t, want, name)
		assert.ElementsMatch(t, want[name], fires(t, engine, db, expression, now), name)
		if name == "VLLMDiagnosisGone" {
			assert.Len(t, fires(t, engine, fleet{}, expression, now), 1, "no series at all")
		}
	}
}

// fires returns the instances, with their causes, for which an alert fires.
func fires(t *testing.T, engine *promql.Engine, db fleet, expression string, now time.Time) []string {
	t.Helper()
	query, err := engine.NewInstantQuery(t.Context(), db, nil, expression, now)
	require.NoError(t, err)
	result, err := query.Exec(t.Context()).Vector()
	require.NoError(t, err)
	found := []string{}
	for i := range result {
		found = append(found, result[i].Metric.Get("instance")+" "+result[i].Metric.Get("cause"))
	}
	return found
}

// fleet is the series that Prometheus has stored.
type fleet []storage.Series

func (f fleet) Querier(int64, int64) (storage.Querier, error) { return querier{fleet: f}, nil }

type querier struct {
	fleet
	storage.LabelQuerier
}

func (querier) Close() error { return nil }

func (q querier) Select(_ context.Context, _ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	return &seriesSet{all: slices.DeleteFunc(slices.Clone(q.fleet), func(s storage.Series) bool {
		return slices.ContainsFunc(matchers, func(m *labels.Matcher) bool { return !m.Matches(s.Labels().Get(m.Name)) })
	})}
}

type seriesSet struct {
	all []storage.Series
	at  int
}

func (s *seriesSet) Next() bool                      { s.at++; return s.at <= len(s.all) }
func (s *seriesSet) At() storage.Series              { return s.all[s.at-1] }
func (*seriesSet) Err() error                        { return nil }
func (*seriesSet) Warnings() annotations.Annotations { return nil }

type sample struct {
	t int64
	v float64
}

func (s sample) T() int64                    { return s.t }
func (s sample) ST() int64                   { return 0 }
func (s sample) F() float64                  { return s.v }
func (sample) H() *histogram.Histogram       { return nil }
func (sample) FH() *histogram.FloatHistogram { return nil }
func (sample) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (s sample) Copy() chunks.Sample         { return s }
