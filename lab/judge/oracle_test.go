package judge

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/scenario"
)

// clientView is what a client sees of a request, its attempts together.
type clientView struct {
	arrived, first, rest, tokens float64
	complete, refused            bool
}

// clientViews runs engines from the beginning to a time, one after the other where the server
// restarts, and collects what their clients see. It shares no code with the judge but
// the changes of injections and the seed of a process.
func clientViews(t *testing.T, cfg engine.Config, injections []Injection, restart *Fault, until float64) map[[2]int]*clientView {
	t.Helper()
	changes := scenario.Changes(injections, 0, cfg.Engines)
	out := map[[2]int]*clientView{}
	process := func(n int, from, to float64) {
		cfg := cfg
		cfg.KeepOutcomes = true
		cfg.Seed += uint64(n) * restartSeed
		cfg.Changes = nil
		for _, ch := range changes {
			ch.At = max(0, ch.At-from)
			cfg.Changes = append(cfg.Changes, ch)
		}
		server, err := engine.New(cfg)
		require.NoError(t, err)
		server.AdvanceTo(to - from)
		// Attempts are in the order of their ends; unfinished ones are the last.
		for _, o := range append(server.Outcomes(), server.Unfinished()...) {
			r := out[[2]int{n, o.First}]
			if r == nil {
				r = &clientView{arrived: from + o.Arrived}
				out[[2]int{n, o.First}] = r
			}
			r.refused = o.End == engine.EndRefused
			r.complete = (o.End == engine.EndStop || o.End == engine.EndLength) && !o.Corrupted
			r.first = from + o.Ended - r.arrived
			r.rest, r.tokens = 0, 0
			if o.FirstToken > 0 {
				first := from + o.Arrived + o.FirstToken
				r.first = first - r.arrived
				if o.Output > 1 {
					r.rest, r.tokens = from+o.Ended-first, float64(o.Output-1)
				}
			}
		}
	}
	if restart == nil {
		process(0, 0, until)
		return out
	}
	process(0, 0, restart.At)
	process(1, restart.Until, until)
	return out
}

// promise is an objective for a time that each request has.
type promise struct {
	metric            string
	threshold, target float64
}

// took is what a request took of the time that a promise is about, and the place of that
// time among the means.
func (p promise) took(r *clientView) (float64, int) {
	switch p.metric {
	case "vllm.time_to_first_token":
		return r.first, 0
	case "vllm.request.time_per_output_token":
		return r.rest / math.Max(1, r.tokens), 1
	default:
		return r.first + r.rest, 2
	}
}

// settings are the promises as settings of the processor.
func settings(promises []promise) map[string]any {
	var all []any
	for i, p := range promises {
		all = append(all, map[string]any{
			"name": fmt.Sprint("o", i), "metric": p.metric, "threshold": fmt.Sprint(p.threshold, "s"), "target": p.target,
		})
	}
	return map[string]any{"objectives": all}
}

// means are the means of the first token, of a further token and of the whole request, and
// the number of complete answers.
func means(of []*clientView) (m [3]float64, complete float64) {
	var first, rest, tokens float64
	for _, r := range of {
		first, rest, tokens = first+r.first, rest+r.rest, tokens+r.tokens
		if r.complete {
			complete++
		}
	}
	n := float64(len(of))
	return [3]float64{first / n, rest / math.Max(1, tokens), (first + rest) / n}, complete
}

// effectOf is the definition of the bar of harm, for requests that arrived in a minute of
// the first run.
func effectOf(a, w map[[2]int]*clientView, minute int, promises []promise) (requests int, effect float64) {
	var inA, inW []*clientView
	for id, x := range a {
		if y := w[id]; y != nil && !x.refused && !y.refused && int(x.arrived/60) == minute {
			inA, inW = append(inA, x), append(inW, y)
		}
	}
	if len(inA) < 20 {
		return len(inA), 0
	}
	meansA, completeA := means(inA)
	meansW, completeW := means(inW)
	effect = max(0, (1-completeA/completeW)/0.05)
	promised, kept := [3]bool{}, [3]bool{true, true, true}
	for _, p := range promises {
		share := func(of []*clientView) (late float64, place int) {
			for _, r := range of {
				took, at := p.took(r)
				if place = at; took > p.threshold {
					late++
				}
			}
			return late / float64(len(of)), place
		}
		lateA, place := share(inA)
		lateW, _ := share(inW)
		promised[place] = true
		if lateW > 1-p.target+1e-9 {
			kept[place] = false
			effect = max(effect, (lateA-lateW)/(1-p.target))
		} else if lateA > lateW {
			effect = max(effect, lateA/(1-p.target))
		}
	}
	for place, least := range [3]float64{0.1, 0.005, 0.1} {
		// Nothing is said of whole requests where they have no objective.
		if !promised[place] && place < 2 || promised[place] && !kept[place] {
			effect = max(effect, (meansA[place]-meansW[place])/max(0.3*meansW[place], least))
		}
	}
	return len(inA), effect
}

// The lines agree with the definition of harm, computed another way from two runs.
func TestTheEffectIsThatOfTheDefinition(t *testing.T) {
	with := func(cfg engine.Config, change func(*engine.Workload)) engine.Config {
		change(&cfg.Workload)
		return cfg
	}
	long := with(chatServer(9, 0.8), func(w *engine.Workload) { w.Prompt.Median = 9000 })
	long.Model, long.MaxModelLen = engine.Models()["70b-tp4-h100"], 32768
	for name, c := range map[string]struct {
		cfg        engine.Config
		injections []Injection
		restart    *Fault
		promises   []promise
	}{
		"slow steps, also at the end": {cfg: chatServer(1, 5), injections: []Injection{{Parameter: engine.ParamBandwidth, Value: 0.35, At: 240}}},
		"more requests":               {cfg: overloaded(2), injections: []Injection{{Parameter: engine.ParamArrivalRate, Value: 2.5, At: 200, Until: 430}}},
		"fewer requests and slow steps": {cfg: chatServer(3, 8), injections: []Injection{
			{Parameter: engine.ParamArrivalRate, Value: 0.4, At: 120}, {Parameter: engine.ParamClock, Value: 0.2, At: 240, Over: 200},
		}},
		"clients that try again": {
			cfg: with(overloaded(2), func(w *engine.Workload) { w.Timeout, w.Retries, w.RetryAfter = 15, 2, 2 }),
			injections: []Injection{
				{Parameter: engine.ParamErrorRate, Value: 0.4, At: 180, Until: 300}, {Parameter: engine.ParamBandwidth, Value: 0.4, At: 320, Until: 420},
			},
		},
		"a closed loop": {
			cfg:        with(chatServer(4, 0), func(w *engine.Workload) { w.Clients, w.Think = 30, 3 }),
			injections: []Injection{{Parameter: engine.ParamBandwidth, Value: 0.3, At: 200, Until: 400}},
		},
		"more clients": {
			cfg:        with(overloaded(0), func(w *engine.Workload) { w.Clients, w.Think = 10, 2 }),
			injections: []Injection{{Parameter: engine.ParamArrivalRate, Value: 3, At: 200, Until: 400}},
		},
		"a restart": {
			cfg: chatServer(5, 5), injections: []Injection{{Parameter: engine.ParamBandwidth, Value: 0.3, At: 150, Until: 450}},
			restart: &Fault{Kind: Restart, At: 250, Until: 275},
		},
		"refused requests and errors": {
			cfg: with(chatServer(6, 6), func(w *engine.Workload) { w.Refused = 0.1 }),
			injections: []Injection{
				{Parameter: engine.ParamClientErrors, Value: 0.3, At: 120}, {Parameter: engine.ParamUnscheduled, Value: 0.1, At: 240, Until: 400},
			},
		},
		"long prompts": {
			cfg:        long,
			injections: []Injection{{Parameter: engine.ParamClock, Value: 0.6, At: 200}},
		},
		"clients that leave": {
			cfg:        with(overloaded(2), func(w *engine.Workload) { w.Timeout = 1 }),
			injections: []Injection{{Parameter: engine.ParamBandwidth, Value: 0.3, At: 200}},
		},
		"corrupted answers": {cfg: chatServer(7, 5), injections: []Injection{{Parameter: engine.ParamCorruption, Value: 0.1, At: 240}}},
		"objectives that are met": {
			cfg: chatServer(1, 5), injections: []Injection{{Parameter: engine.ParamBandwidth, Value: 0.35, At: 240}},
			promises: []promise{{"vllm.time_to_first_token", 5, 0.9}, {"vllm.request.time_per_output_token", 0.02, 0.9}},
		},
		"objectives that are missed by all": {
			cfg: chatServer(1, 5), injections: []Injection{{Parameter: engine.ParamBandwidth, Value: 0.35, At: 240}},
			promises: []promise{{"vllm.time_to_first_token", 0.001, 0.9}, {"vllm.request.time_per_output_token", 0.001, 0.9}},
		},
		"an objective for whole answers that some miss": {
			cfg: chatServer(1, 5), injections: []Injection{{Parameter: engine.ParamClock, Value: 0.3, At: 240}},
			promises: []promise{
				{"vllm.e2e_request_latency", 4, 0.9}, {"vllm.time_to_first_token", 60, 0.9}, {"vllm.request.time_per_output_token", 60, 0.9},
			},
		},
		"an objective that some miss, and a little slower": {
			cfg: chatServer(1, 5), injections: []Injection{{Parameter: engine.ParamBandwidth, Value: 0.8, At: 240}},
			promises: []promise{{"vllm.e2e_request_latency", 3, 0.95}},
		},
		"corrupted answers beyond an objective": {
			cfg: chatServer(7, 5), injections: []Injection{{Parameter: engine.ParamCorruption, Value: 0.1, At: 240}},
			promises: []promise{{"vllm.time_to_first_token", 0.001, 0.95}, {"vllm.e2e_request_latency", 0.001, 0.95}},
		},
		"few requests": {cfg: chatServer(8, 0.2), injections: []Injection{{Parameter: engine.ParamBandwidth, Value: 0.1, At: 240}}},
	} {
		t.Run(name, func(t *testing.T) {
			story := &Story{Name: name, Servers: []engine.Config{c.cfg}, Injections: c.injections, Length: 9 * time.Minute}
			if c.promises != nil {
				story.Processor = settings(c.promises)
			}
			if c.restart != nil {
				story.Faults = []Fault{*c.restart}
			}
			played, err := Play(t.Context(), story)
			require.NoError(t, err)
			until := story.Length.Seconds() + 600
			a, w := clientViews(t, c.cfg, c.injections, c.restart, until), clientViews(t, c.cfg, nil, c.restart, until)
			greatest := 0.0
			for i := range played.Lines {
				l := &played.Lines[i]
				requests, effect := effectOf(a, w, i, c.promises)
				if c.cfg.Workload.Clients == 0 {
					assert.Equal(t, requests, l.Requests, "minute %d", i)
				} else {
					// The judge does not wait for what only one run will ever send.
					assert.InDelta(t, requests, l.Requests, 2, "minute %d", i)
				}
				assert.InDelta(t, effect, l.Effect, 0.05+0.03*effect, "minute %d", i)
				assert.Equal(t, l.Effect > 1, l.Harmful, "minute %d", i)
				greatest = math.Max(greatest, effect)
			}
			if name == "few requests" {
				assert.Zero(t, greatest)
			} else {
				assert.Greater(t, greatest, 1.0, "the story does harm")
			}
		})
	}
}
