package objective

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/window"
)

const (
	begin = 1_700_000_000
)

func at(seconds int64) int64 { return (begin + seconds) * second }

// firstToken is met up to 2 s, which is a bound of the histogram in these tests.
var firstToken = Objective{
	Name: "ttft", Metric: "vllm.time_to_first_token", Threshold: Duration(2 * time.Second), Target: 0.9,
}

// between has a threshold inside the bucket from 2 s to 5 s.
var between = Objective{
	Name: "between", Metric: "vllm.time_to_first_token", Threshold: Duration(3 * time.Second), Target: 0.9,
}

// keeper records what a state asks of its outer layer.
type keeper struct {
	began, ended []string
	begins       []int64
	buckets      [][]float64
	refused      int
	outcomes     map[Outcome]int
	// full is true where there is no room for another tracker.
	full bool
}

func (k *keeper) Begin(group []input.Attribute, o *Objective, tracker *Tracker, at int64) (string, bool) {
	if k.full {
		return "", false
	}
	_, start := tracker.Totals()
	k.begins = append(k.begins, start, at)
	key := fmt.Sprint(o.Name, group)
	k.began = append(k.began, key)
	return key, true
}

func (k *keeper) Buckets(_ *Objective, bounds []float64) {
	k.buckets = append(k.buckets, bounds)
}
func (k *keeper) End(key string, _ *Tracker) { k.ended = append(k.ended, key) }
func (k *keeper) Refused()                   { k.refused++ }
func (k *keeper) Took(outcome Outcome) {
	if k.outcomes == nil {
		k.outcomes = map[Outcome]int{}
	}
	k.outcomes[outcome]++
}

// service is a resource with its objectives.
type service struct {
	t         *testing.T
	plan      *Plan
	state     State
	resource  *window.Resource
	keeper    keeper
	evaluator Evaluator
	now       int64
	// evidence is what the server shows of itself.
	evidence input.Evidence
}

func newService(t *testing.T, objectives ...Objective) *service {
	t.Helper()
	plan, err := NewPlan(objectives, Duration(24*time.Hour), []Duration{Duration(time.Hour)},
		func(string) bool { return true })
	require.NoError(t, err)
	return &service{
		t: t, plan: plan,
		resource: window.NewResource(window.Settings{Window: time.Minute, MaxStaleness: 5 * time.Minute, Steps: plan.Steps()}),
	}
}

// distribution is a histogram of an engine, with the bounds 1, 2 and 5.
type distribution struct {
	engine, model string
	input         input.Metric
	counts        []float64
	gone          bool
	// wrong is what a defect adds to the sum.
	wrong float64
	// total is the value where the input is a counter.
	total float64
}

func latencies(engine string, counts ...float64) distribution {
	return distribution{engine: engine, model: "m", input: input.TimeToFirstToken, counts: counts}
}

func (d distribution) of(model string) distribution       { d.model = model; return d }
func (d distribution) as(input input.Metric) distribution { d.input = input; return d }
func (d distribution) ends() distribution                 { d.gone = true; return d }

func (s *service) observe(seconds int64, all ...distribution) {
	s.now = at(seconds)
	b := &input.Batch{Time: s.now, Evidence: s.evidence}
	for _, d := range all {
		g := input.GroupOf([]input.Attribute{{Name: "engine", Value: d.engine}, {Name: "model_name", Value: d.model}})
		i := slices.IndexFunc(b.Groups, func(other input.Group) bool { return other.Key == g.Key })
		if i < 0 {
			i = len(b.Groups)
			b.Groups = append(b.Groups, g)
		}
		sample := input.Sample{Input: d.input, Group: i, Gone: d.gone}
		if !d.gone {
			sample.Bounds, sample.Counts, sample.HasSum = []float64{1, 2, 5}, d.counts, true
			for i, value := range []float64{0.5, 1.5, 3, 7} {
				if i < len(d.counts) {
					sample.Sum += value * d.counts[i]
				}
			}
			sample.Sum += d.wrong
			sample.Value = d.total
		}
		b.Samples = append(b.Samples, sample)
	}
	s.resource.Observe(b, math.MaxInt)
	s.state.Observe(s.plan, s.resource, &s.keeper)
}

// pending marks a model for which part of the batch is missing.
const pending = "pending"

// values returns what is emitted: "metric extra{model}" without the metrics' prefix.
func (s *service) values() map[string]float64 {
	all := map[string]float64{}
	for _, v := range s.evaluator.Evaluate(s.plan, &s.state, s.resource) {
		if v.Pending {
			all[fmt.Sprint(pending, " ", v.Group)] = 1
			continue
		}
		name := strings.TrimPrefix(v.Row.Metric, "vllm.slo.") + " " + strings.TrimRight(strings.Join(v.Extra[:], " "), " ")
		for _, a := range v.Attributes {
			if a.Value != "m" {
				name += "{" + a.Value + "}"
			}
			require.NotEqual(s.t, "engine", a.Name)
		}
		require.NotContains(s.t, all, name)
		all[name] = v.Number
	}
	return all
}

func assertValues(t *testing.T, want, got map[string]float64) {
	t.Helper()
	assert.ElementsMatch(t, slices.Collect(maps.Keys(want)), slices.Collect(maps.Keys(got)))
	for name, value := range want {
		assert.InDelta(t, value, got[name], 1e-9, name)
	}
}

// coverage is 120 s of a window that is a whole number of slots and begins on one.
func (s *service) coverage(of time.Duration) float64 {
	slot := int64(of) / 120
	begin := (s.now - int64(of)) / slot * slot
	return float64(120*second) / float64(s.now-begin)
}
