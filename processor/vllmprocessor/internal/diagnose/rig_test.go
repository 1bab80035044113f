package diagnose

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/derive"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/window"
)

// rig is a server whose every number the test chooses. It is scraped every 15 s, the
// window is one minute, and hold is 2. The diagnosis reads it through real windows.
type rig struct {
	t        *testing.T
	settings *Settings
	window   *window.Resource
	state    *State
	at       int64
	// counters are the running totals, by engine and series.
	counters map[series]float64
	sums     map[series][2]float64
	buckets  map[series][]float64
	changes  []Transition
	// started is the start time of the counters.
	started int64
	// version is the attribute service.version of the resource.
	version string
	signs   input.Sign
	// process is when the process of the server began, in Unix seconds; 0 where that is not
	// known.
	process float64
	// model is the model of all engines; planted is added to the next sums.
	model    string
	planted  map[input.Metric]float64
	upgrades []Upgrade
	// away is true while no collector reads the server.
	away bool
}

type series struct {
	engine, label string
	input         input.Metric
}

// bounds are those of all distributions.
var bounds = []float64{0.02, 0.05, 0.1, 0.2, 0.5, 1e6}

// scraped is what one engine, or with an empty name the server, reports in one scrape.
type scraped struct {
	engine string
	gauges map[input.Metric]float64
	// labelled are gauges with a label.
	labelled map[input.Metric]map[string]float64
	// counts are increases since the previous scrape.
	counts map[input.Metric]float64
	// labelledCounts are increases by label.
	labelledCounts map[input.Metric]map[string]float64
	// observed are the number and the mean of new observations.
	observed map[input.Metric][2]float64
}

func newRig(t *testing.T) *rig {
	t.Helper()
	return &rig{
		t: t, settings: settings(2), state: &State{}, at: int64(time.Hour) * 400_000,
		window:  window.NewResource(window.Settings{Window: time.Minute, MaxStaleness: 5 * time.Minute}),
		version: "0.27.0", model: "m", counters: map[series]float64{}, sums: map[series][2]float64{}, buckets: map[series][]float64{},
	}
}

// serves is an engine that answers a request a second with usual latencies: 500 prompt
// tokens, 100 tokens of output, 0.1 s to the first token and 0.02 s between two.
func serves(engine string) scraped {
	return scraped{
		engine:         engine,
		gauges:         map[input.Metric]float64{input.Running: 2, input.Waiting: 0, input.KVCacheUtilization: 0.1},
		labelled:       map[input.Metric]map[string]float64{input.SleepState: {"awake": 1}},
		counts:         map[input.Metric]float64{input.PromptTokens: 7500, input.GenerationTokens: 1500},
		labelledCounts: map[input.Metric]map[string]float64{input.RequestSuccess: {"stop": 15, "error": 0}},
		observed: map[input.Metric][2]float64{
			input.TimeToFirstToken: {15, 0.1}, input.InterTokenLatency: {1485, 0.02}, input.RequestGenerationTokens: {15, 100},
		},
	}
}

// standsStill is an engine that holds requests and does nothing.
func standsStill(engine string) scraped {
	return scraped{
		engine: engine,
		gauges: map[input.Metric]float64{input.Running: 2, input.Waiting: 3, input.KVCacheUtilization: 0.1},
		counts: map[input.Metric]float64{input.PromptTokens: 0, input.GenerationTokens: 0},
		observed: map[input.Metric][2]float64{
			input.TimeToFirstToken: {0, 0}, input.InterTokenLatency: {0, 0}, input.RequestGenerationTokens: {0, 0},
		},
	}
}

// rests is an engine without requests.
func rests(engine string) scraped {
	s := standsStill(engine)
	s.gauges = map[input.Metric]float64{input.Running: 0, input.Waiting: 0, input.KVCacheUtilization: 0}
	return s
}

// answers is the server: whether the scrape succeeded.
func answers(up float64) scraped {
	return scraped{gauges: map[input.Metric]float64{input.Up: up}}
}

// scrape reads the server once, and returns what has changed.
func (r *rig) scrape(all ...scraped) []Transition {
	r.t.Helper()
	r.at += scrape
	return r.part(all...)
}

// part reads another part of the same batch.
func (r *rig) part(all ...scraped) []Transition {
	r.t.Helper()
	batch := input.Batch{Resource: "server", Time: r.at, Evidence: input.Evidence{Version: r.version, Signs: r.signs, ProcessStart: r.process}}
	for i, s := range all {
		var attributes []input.Attribute
		if s.engine != "" {
			attributes = []input.Attribute{{Name: "engine", Value: s.engine}, {Name: "model_name", Value: r.model}}
		}
		batch.Groups = append(batch.Groups, input.GroupOf(attributes))
		add := func(sample input.Sample) {
			sample.Group = i
			if sample.Input.Define().Kind != input.Gauge {
				sample.Start = r.started
			}
			batch.Samples = append(batch.Samples, sample)
		}
		count := func(in input.Metric, label string, by float64) {
			key := series{s.engine, label, in}
			r.counters[key] += by
			add(input.Sample{Input: in, Label: input.Label(label), Value: r.counters[key]})
		}
		for _, in := range slices.Sorted(maps.Keys(s.gauges)) {
			add(input.Sample{Input: in, Value: s.gauges[in]})
		}
		for in, states := range s.labelled {
			for label, value := range states {
				add(input.Sample{Input: in, Label: input.Label(label), Value: value})
			}
		}
		for in, by := range s.counts {
			count(in, "", by)
		}
		for in, labels := range s.labelledCounts {
			for label, by := range labels {
				count(in, label, by)
			}
		}
		for in, o := range s.observed {
			key := series{s.engine, "", in}
			was := r.sums[key]
			was[0] += o[0]
			was[1] += o[0]*o[1] + r.planted[in]
			r.sums[key] = was
			if r.buckets[key] == nil {
				r.buckets[key] = make([]float64, len(bounds)+1)
			}
			place, _ := slices.BinarySearch(bounds, o[1])
			r.buckets[key][place] += o[0]
			add(input.Sample{
				Input: in, Bounds: slices.Clone(bounds), Counts: slices.Clone(r.buckets[key]), Count: was[0], Sum: was[1], HasSum: true,
			})
		}
	}
	if r.away {
		return nil
	}
	require.True(r.t, r.window.Observe(&batch, 1_000_000).Observed)
	changes := slices.Clone(r.state.Observe(r.settings, r.window))
	r.changes = append(r.changes, changes...)
	if upgrade := r.state.Upgraded(); upgrade != nil {
		r.upgrades = append(r.upgrades, *upgrade)
	}
	return changes
}

// minutes scrapes the same so often that some minutes pass.
func (r *rig) minutes(n float64, all ...scraped) {
	r.t.Helper()
	for range int(4 * n) {
		r.scrape(all...)
	}
}

// plant reads the server once, of which some sums have something in addition.
func (r *rig) plant(server, engine scraped, sums map[input.Metric]float64) {
	r.t.Helper()
	r.planted = sums
	r.scrape(server, engine)
	r.planted = nil
}

// restart makes all counters begin at 0.
func (r *rig) restart() {
	clear(r.counters)
	clear(r.sums)
	clear(r.buckets)
	r.started = r.at + scrape - 1
}

// verdict is that of an engine; of the server with an empty name.
func (r *rig) verdict(engine string) *Verdict {
	r.t.Helper()
	e := r.engine(engine)
	require.NotNil(r.t, e, "no engine %q", engine)
	return &e.Reported
}

func (r *rig) engine(name string) *engine {
	for _, e := range r.state.engines {
		if (&input.Group{Attributes: e.attributes}).Engine() == name {
			return e
		}
	}
	return nil
}

// misses is the objective that an engine misses in the newest window by the most, relative to
// what its target allows; empty where it misses none.
func (r *rig) misses(engine string) string {
	r.t.Helper()
	worst := r.engine(engine).last.worst
	if worst.share <= worst.allowed {
		return ""
	}
	return worst.name
}

// conditions are those that an engine was in, in their order, as the changes have them.
func (r *rig) conditions(engine string) string {
	var names []string
	for _, t := range r.changes {
		if (&input.Group{Attributes: t.Attributes}).Engine() == engine && (len(names) == 0 || names[len(names)-1] != t.To.Condition.String()) {
			names = append(names, t.To.Condition.String())
		}
	}
	return strings.Join(names, " ")
}

func allRows() map[*derive.Row]bool {
	all := map[*derive.Row]bool{}
	for _, row := range Rows() {
		all[row] = true
	}
	return all
}
