package backtest

import (
	"context"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/backtest/history"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/backtest/promapi"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver"
)

// plenty has four servers, each with many series.
type plenty struct{ series int }

func (plenty) Series(context.Context, string, time.Time, time.Time) (out []labels.Labels, err error) {
	for _, instance := range []string{"a", "b", "c", "d"} {
		out = append(out, labels.FromStrings("__name__", "vllm:num_requests_running", "instance", instance))
	}
	return out, nil
}

func (p plenty) Samples(_ context.Context, selector string, from, _ time.Time) (out []promapi.Series, err error) {
	if selector == ownAlerts {
		return nil, nil
	}
	for i := range p.series {
		out = append(out, promapi.Series{Labels: labels.FromStrings("__name__", "vllm:x", "n", string(rune('a'+i))), Times: []int64{from.UnixMilli()}, Values: []float64{1}})
	}
	return out, nil
}

// However many parts are read ahead, their sum has a bound; a history of many windows within it is read to its end.
func TestARunHasABoundOfItsMemory(t *testing.T) {
	run := func(memory int64) error {
		_, err := Run(t.Context(), &Options{
			Server: plenty{series: 20}, Address: "http://test", Period: history.Span{From: hour, To: hour.Add(24 * time.Hour)}, Parallel: 2, MaxTargets: 4, Memory: memory,
			Receiver:  vllmreceiver.NewFactory().CreateDefaultConfig().(*vllmreceiver.Config),
			Processor: vllmprocessor.NewFactory().CreateDefaultConfig().(*vllmprocessor.Config),
		})
		return err
	}
	part := history.Size(must(plenty{series: 20}.Samples(t.Context(), "", hour, hour)))
	// All parts of the day are 96; at most a few are in memory.
	require.NoError(t, run(30*part))
	assert.ErrorContains(t, run(part/2), "the history needs more memory than")
}

func must(series []promapi.Series, err error) []promapi.Series {
	if err != nil {
		panic(err)
	}
	return series
}

// The storage of the rules is in memory for some hours, and a history can have new series in every scrape.
func TestTheSeriesOfTheRulesHaveABound(t *testing.T) {
	e := engine(t, `groups: [{name: g, rules: [{alert: A, expr: 'node_load1 > 0'}]}]`)
	e.mostSeries = 3
	add := func(instances ...string) error {
		var series []promapi.Series
		for _, instance := range instances {
			series = append(series, promapi.Series{Labels: labels.FromStrings("__name__", "node_load1", "instance", instance), Times: []int64{hour.UnixMilli()}, Values: []float64{1}})
		}
		return e.Add(t.Context(), series)
	}
	require.NoError(t, add("a", "b", "c"))
	assert.ErrorContains(t, add("d", "e"), "the rules need 5 series, and the limit is 3; select fewer servers with --match")
}
