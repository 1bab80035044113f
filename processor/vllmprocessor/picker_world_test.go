package vllmprocessor

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// A picker's world is what happens to requests in front of an endpoint picker. The bodies of
// the picker are written from it, and what must be derived is worked out from it, never from
// the bodies.

// pickerEvent is one thing that the picker counts.
type pickerEvent struct {
	at time.Duration
	// what is scheduled, error, duration, first, input, output or queue.
	what          string
	model, target string
	// own are the labels that only some releases have.
	priority, fairness, streaming string
	// code is the error_code, or the outcome of the picker's queue.
	code  string
	value float64
}

func (e *pickerEvent) pair() string { return e.model + "|" + e.target }

type pickerWorld struct {
	events  []pickerEvent
	scrapes []time.Duration
	// starts are when the picker began, the first before all scrapes.
	starts []time.Duration
}

var pickerBounds = map[string][]float64{
	"duration": {0.1, 0.5, 1, 2, 5, 10, 30}, "first": {0.05, 0.1, 0.2, 0.4, 1},
	"input": {1, 8, 64, 512, 4096}, "output": {1, 8, 64, 512}, "queue": {0.001, 0.01, 0.1, 1, 10},
}

// newPickerWorld has requests of several models, in which one model appears late, all is
// refused for a while, the picker restarts, and the traffic ends.
func newPickerWorld(seed uint64) *pickerWorld {
	r := rand.New(rand.NewPCG(seed, 11))
	w := &pickerWorld{starts: []time.Duration{-2 * time.Minute}}
	for i := range 44 {
		w.scrapes = append(w.scrapes, time.Duration(i)*15*time.Second+time.Duration(r.IntN(1000))*time.Millisecond)
	}
	restart := w.scrapes[24] + time.Duration(2+r.IntN(8))*time.Second
	w.starts = append(w.starts, restart)
	pairs := [][2]string{{"food", "food-1"}, {"food", "food-2"}, {"llama", "llama"}, {"late", "late-1"}}
	ended := w.scrapes[36]
	for at := w.starts[0] + time.Second; at < ended; at += time.Duration(200+r.IntN(2500)) * time.Millisecond {
		pair := pairs[r.IntN(len(pairs))]
		if pair[0] == "late" && at < w.scrapes[8] {
			continue
		}
		refusing := at > w.scrapes[15] && at < w.scrapes[21]
		w.request(r, at, pair, refusing)
	}
	slices.SortStableFunc(w.events, func(a, b pickerEvent) int { return int(a.at - b.at) })
	return w
}

func (w *pickerWorld) request(r *rand.Rand, at time.Duration, pair [2]string, refusing bool) {
	e := pickerEvent{
		at: at, model: pair[0], target: pair[1], priority: []string{"0", "100"}[r.IntN(2)],
		fairness: []string{"tenant-a", "tenant-b", "tenant-c"}[r.IntN(3)], streaming: []string{"true", "false"}[r.IntN(2)],
	}
	happen := func(after time.Duration, what, code string, value float64) {
		one := e
		one.at, one.what, one.code, one.value = at+after, what, code, value
		// What would come after a restart does not happen.
		if w.life(one.at) == w.life(at) {
			w.events = append(w.events, one)
		}
	}
	fate := r.IntN(12)
	if fate == 0 {
		// The picker does not know the model of a broken request.
		e.model, e.target, e.priority, e.fairness = "", "", "0", "default-flow"
		happen(0, "error", "BadRequest", 1)
		return
	}
	if refusing || fate == 1 {
		waited := time.Duration(1+r.IntN(9000)) * time.Millisecond
		happen(waited, "error", []string{"ResourceExhausted", "ResourceExhausted", "InferencePoolResourceExhausted", "ServiceUnavailable"}[r.IntN(4)], 1)
		happen(waited, "queue", []string{"RejectedCapacity", "EvictedTTL"}[r.IntN(2)], waited.Seconds())
		return
	}
	waited := time.Duration(r.IntN(300)) * time.Millisecond
	happen(waited, "queue", "Dispatched", waited.Seconds())
	happen(waited, "scheduled", "", 1)
	// An exact number of milliseconds, so that sums are nearly exact.
	whole := time.Duration(50+r.IntN(12000)) * time.Millisecond
	first := whole
	if e.streaming == "true" {
		first = whole / 8
	}
	if fate == 2 {
		happen(waited+whole, "error", "ModelServerError", 1)
	}
	happen(waited+first, "first", "", (waited + first).Seconds())
	happen(waited+whole, "duration", "", (waited + whole).Seconds())
	if fate > 3 {
		happen(waited+whole, "input", "", float64(1+r.IntN(5000)))
		happen(waited+whole, "output", "", float64(1+r.IntN(600)))
	}
}

func (w *pickerWorld) life(at time.Duration) int {
	life := 0
	for i, start := range w.starts {
		if at >= start {
			life = i
		}
	}
	return life
}

// pickerFamily is a family of one release: how it is called, and which labels it has.
type pickerFamily struct {
	name, what string
	labels     []string
}

const (
	pickerModels = "model_name target_model_name"
	flowLabels   = pickerModels + " fairness_id priority outcome inference_pool"
)

func pickerFamilies(names ...string) (all []pickerFamily) {
	for i := 0; i < len(names); i += 3 {
		all = append(all, pickerFamily{names[i], names[i+1], strings.Fields(names[i+2])})
	}
	return all
}

// pickerReleases are the families of three releases as their documentation lists them.
var pickerReleases = map[string][]pickerFamily{
	"1.0": pickerFamilies(
		"inference_model_request_total", "scheduled", pickerModels,
		"inference_model_request_error_total", "error", pickerModels+" error_code",
		"inference_model_request_duration_seconds", "duration", pickerModels,
		"inference_model_input_tokens", "input", pickerModels,
		"inference_model_output_tokens", "output", pickerModels,
	),
	"1.5": pickerFamilies(
		// Only the requests have a priority.
		"inference_objective_request_total", "scheduled", pickerModels+" priority",
		"inference_objective_request_error_total", "error", pickerModels+" error_code",
		"inference_objective_request_duration_seconds", "duration", pickerModels,
		"inference_objective_request_ttft_seconds", "first", pickerModels,
		"inference_objective_input_tokens", "input", pickerModels,
		"inference_objective_output_tokens", "output", pickerModels,
		"inference_extension_flow_control_request_queue_duration_seconds", "queue", flowLabels,
	),
}

func init() {
	// llm-d-router writes both generations.
	pickerReleases["llm-d"] = append(pickerFamilies(
		"llm_d_epp_request_total", "scheduled", pickerModels+" fairness_id priority",
		"llm_d_epp_request_error_total", "error", pickerModels+" fairness_id priority error_code",
		"llm_d_epp_request_duration_seconds", "duration", pickerModels+" fairness_id priority",
		"llm_d_epp_request_ttft_seconds", "first", pickerModels+" fairness_id priority streaming",
		"llm_d_epp_request_input_tokens", "input", pickerModels+" fairness_id priority",
		"llm_d_epp_request_output_tokens", "output", pickerModels+" fairness_id priority",
		"llm_d_epp_flow_control_request_queue_duration_seconds", "queue", flowLabels,
	), pickerReleases["1.5"]...)
}

func (e *pickerEvent) label(name string) string {
	return map[string]string{
		"model_name": e.model, "target_model_name": e.target, "priority": e.priority, "fairness_id": e.fairness,
		"streaming": e.streaming, "error_code": e.code, "outcome": e.code, "inference_pool": "pool-a",
	}[name]
}

// body is the page of a release at a scrape: all that the present life of the picker has
// counted.
func (w *pickerWorld) body(release string, scrape int) []byte {
	now := w.scrapes[scrape]
	var b strings.Builder
	b.WriteString("# TYPE inference_pool_ready_pods gauge\ninference_pool_ready_pods{name=\"pool-a\"} 4\n")
	for _, f := range pickerReleases[release] {
		values := map[string][]float64{}
		for i := range w.events {
			e := &w.events[i]
			if e.what != f.what || e.at > now || w.life(e.at) != w.life(now) {
				continue
			}
			var labels []string
			for _, name := range f.labels {
				labels = append(labels, fmt.Sprintf("%s=%q", name, e.label(name)))
			}
			key := strings.Join(labels, ",")
			values[key] = append(values[key], e.value)
		}
		if len(values) == 0 {
			continue
		}
		bounds, isHistogram := pickerBounds[f.what]
		kind := map[bool]string{false: "counter", true: "histogram"}[isHistogram]
		fmt.Fprintf(&b, "# HELP %s [ALPHA] What it is.\n# TYPE %s %s\n", f.name, f.name, kind)
		for _, labels := range slices.Sorted(maps.Keys(values)) {
			all := values[labels]
			if !isHistogram {
				fmt.Fprintf(&b, "%s{%s} %d\n", f.name, labels, len(all))
				continue
			}
			sum := 0.0
			for _, v := range all {
				sum += v
			}
			for _, bound := range bounds {
				fmt.Fprintf(&b, "%s_bucket{%s,le=\"%g\"} %d\n", f.name, labels, bound, atMost(all, bound))
			}
			fmt.Fprintf(&b, "%s_bucket{%s,le=\"+Inf\"} %d\n%s_sum{%s} %g\n%s_count{%s} %d\n", f.name, labels, len(all), f.name, labels, sum, f.name, labels, len(all))
		}
	}
	return []byte(b.String())
}

func atMost(values []float64, bound float64) (n int) {
	for _, v := range values {
		if v <= bound {
			n++
		}
	}
	return n
}
