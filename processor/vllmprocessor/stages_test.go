package vllmprocessor

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/derive"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/emit"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/stages"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/metadata"
)

// counting is a stage that counts the batches of a server. It has a metric of the
// catalogue that no other stage of these tests emits.
type counting struct {
	calls []string
	fails bool
}

var countingRow = derive.Row{Metric: "vllm.slo.valid"}

func (c *counting) Start(context.Context, component.Host) error {
	c.calls = append(c.calls, "start")
	if c.fails {
		return errors.New("no port is free")
	}
	return nil
}

func (c *counting) Shutdown(context.Context) error {
	c.calls = append(c.calls, "shutdown")
	return nil
}

func (*counting) Derives(metric string) bool { return metric == countingRow.Metric }

func (c *counting) Begin(server *stages.Server, series *emit.Memory) stages.State {
	c.calls = append(c.calls, "begin "+server.Key[strings.LastIndex(server.Key, "vllm"):strings.LastIndex(server.Key, ":")])
	return &count{counting: c, series: series}
}

type count struct {
	*counting
	series  *emit.Memory
	batches float64
	// at is the time of the newest batch.
	at int64
}

func (c *count) Observe(_ context.Context, batch *stages.Batch) {
	c.batches++
	c.at = batch.Time
	call := "observe"
	if batch.Elsewhere {
		call += " elsewhere"
	}
	c.calls = append(c.calls, call)
}

func (c *count) Append(_ context.Context, out *emit.Output) {
	c.calls = append(c.calls, "append")
	value := derive.Value{Row: &countingRow, Attributes: []input.Attribute{{Name: "model_name", Value: "m"}}, Number: c.batches}
	out.Append(c.series, []derive.Value{value}, c.at)
}

func (c *count) Snapshot(put func(string, []byte)) { put("batches", []byte{byte(c.batches)}) }
func (c *count) End()                              { c.calls = append(c.calls, "end") }

// withCounting is a processor to whose list of stages one was added, and nothing else.
func withCounting(t *testing.T, config string) (*vllmProcessor, *counting) {
	t.Helper()
	p, c := create(t, configured(t, config), processortest.NewNopSettings(metadata.Type)), &counting{}
	p.stages = append(p.stages, c)
	return p, c
}

// send passes the batches of a story through, and returns the values of the counting
// stage in each; -1 is an end.
func (c *counting) send(t *testing.T, p *vllmProcessor, text string) (values []float64) {
	t.Helper()
	for _, call := range readStory(t, text).calls {
		p.now = clock(call.at)
		metrics, err := p.process(t.Context(), call.input)
		require.NoError(t, err)
		values = append(values, c.values(metrics)...)
	}
	return values
}

func (*counting) values(metrics pmetric.Metrics) (values []float64) {
	for _, rm := range takeAdded(metrics).ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				if m.Name() != countingRow.Metric {
					continue
				}
				for _, point := range m.Sum().DataPoints().All() {
					value := point.DoubleValue()
					if point.Flags().NoRecordedValue() {
						value = -1
					}
					values = append(values, value)
				}
			}
		}
	}
	return values
}

func TestAStageThatIsAddedToTheListIsRun(t *testing.T) {
	p, c := withCounting(t, "")
	require.NoError(t, p.start(t.Context(), componenttest.NewNopHost()))
	assert.Equal(t, []float64{1, 2}, c.send(t, p, every(0, 15)))
	assert.Equal(t, []byte{2}, p.snapshot()["batches"])
	p.now = clock(storyBegin.Add(10 * time.Minute))
	p.expireSilent(t.Context(), p.now())
	require.NoError(t, p.shutdown(t.Context()))
	assert.Equal(t, []string{"start", "begin vllm-0", "observe", "append", "observe", "append", "end", "shutdown"}, c.calls)
}

// The processor itself keeps its guarantees for the new stage: a batch that is sent
// again has the same values, and no more is counted.
func TestABatchThatIsSentAgainHasTheValuesOfAllStages(t *testing.T) {
	p, c := withCounting(t, "")
	assert.Equal(t, []float64{1, 2, 2}, c.send(t, p, every(0, 15)+every(15)))
	assert.Equal(t, []string{"begin vllm-0", "observe", "append", "observe", "append"}, c.calls)
}

func TestAStageDoesNotAppendWhatAnotherProcessorDerives(t *testing.T) {
	p, c := withCounting(t, "")
	upstream, u := withCounting(t, "")
	for _, call := range readStory(t, every(0, 15)).calls {
		p.now, upstream.now = clock(call.at), clock(call.at)
		metrics, err := upstream.process(t.Context(), call.input)
		require.NoError(t, err)
		_, err = p.process(t.Context(), metrics)
		require.NoError(t, err)
	}
	assert.Equal(t, []string{"begin vllm-0", "observe elsewhere", "observe elsewhere"}, c.calls)
	assert.Equal(t, []string{"begin vllm-0", "observe", "append", "observe", "append"}, u.calls)
}

func TestNoStageIsStartedAfterOneThatFails(t *testing.T) {
	p, c := withCounting(t, "")
	c.fails = true
	last := &counting{}
	p.stages = append(p.stages, last)
	require.EqualError(t, p.start(t.Context(), componenttest.NewNopHost()), "no port is free")
	assert.Empty(t, last.calls)
	require.NoError(t, p.shutdown(t.Context()))
	assert.Equal(t, []string{"shutdown"}, last.calls)
}

// stopping is a stage that records when it is stopped.
type stopping struct {
	counting
	name  string
	order *[]string
}

func (s *stopping) Shutdown(context.Context) error {
	*s.order = append(*s.order, s.name)
	return errors.New(s.name)
}

// A stage may use those before it in the list, so it stops first. Each is stopped,
// although another one fails.
func TestTheLastStageStopsFirst(t *testing.T) {
	p, _ := withCounting(t, "")
	var order []string
	p.stages = append(p.stages, &stopping{name: "first", order: &order}, &stopping{name: "second", order: &order})
	require.EqualError(t, p.shutdown(t.Context()), "second\nfirst")
	assert.Equal(t, []string{"second", "first"}, order)
}

func TestTheConfigurationChoosesTheStages(t *testing.T) {
	for config, want := range map[string]int{
		"":                            3,
		"diagnosis: {enabled: false}": 2,
		"pool: {}":                    4,
		"objectives: [{name: a, metric: vllm.time_to_first_token, threshold: 1s, target: 0.9}]": 4,
	} {
		p := create(t, configured(t, config), processortest.NewNopSettings(metadata.Type))
		assert.Len(t, p.stages, want, config)
	}
}
