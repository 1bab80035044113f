package vllmprocessor

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver"
)

const epp = "inference_gateway.epp."

// noticed are the events that scrapes after one, up to another, have shown. What happened
// after the last scrape of a life is lost.
func (w *pickerWorld) noticed(from, to int) (all []pickerEvent) {
	for _, e := range w.events {
		for i, at := range w.scrapes {
			if at < e.at {
				continue
			}
			if i > from && i <= to && w.life(at) == w.life(e.at) {
				all = append(all, e)
			}
			break
		}
	}
	return all
}

// known are the models that the page of a scrape has, and what it has of each: requests and
// errors count as one.
func (w *pickerWorld) known(release string, scrape int) map[string]bool {
	known := map[string]bool{}
	for i := range w.events {
		if e := &w.events[i]; e.at <= w.scrapes[scrape] && w.life(e.at) == w.life(w.scrapes[scrape]) {
			known[e.pair()] = true
			switch {
			case e.what == "error":
				known[e.pair()+"scheduled"] = true
			case notDerived(release, e):
			default:
				known[e.pair()+e.what] = true
			}
		}
	}
	return known
}

// notDerived are the waits of refused requests, and the first byte of what is not streamed
// where the release distinguishes it, which only llm-d-router does.
func notDerived(release string, e *pickerEvent) bool {
	return e.what == "queue" && e.code != "Dispatched" || e.what == "first" && release == "llm-d" && e.streaming != "true"
}

// expected is what must be derived at a scrape, by metric and attributes.
func (w *pickerWorld) expected(release string, scrape int) map[string]float64 {
	from := 0
	for i := range scrape {
		if w.scrapes[scrape]-w.scrapes[i] >= time.Minute {
			from = i
		}
	}
	elapsed := (w.scrapes[scrape] - w.scrapes[from]).Seconds()
	want := map[string]float64{}
	known := w.known(release, scrape)
	var whole []pickerEvent
	byPair := map[string][]pickerEvent{}
	for _, e := range w.noticed(from, scrape) {
		what := e.what
		if what == "error" {
			what = "scheduled"
		}
		if !known[e.pair()+what] {
			continue // Its series have ended.
		}
		whole = append(whole, e)
		byPair[e.pair()] = append(byPair[e.pair()], e)
	}
	for _, pair := range []string{"|", "food|food-1", "food|food-2", "llama|llama", "late|late-1"} {
		if !known[pair] {
			continue
		}
		model, target, _ := strings.Cut(pair, "|")
		all, _, _ := refusals(byPair[pair])
		attributes := ""
		if model != "" {
			attributes = fmt.Sprintf("model_name=%s,target_model_name=%s,", model, target)
			w.ratios(release, attributes, byPair[pair], want)
		}
		if scrape > 0 {
			want[epp+"request_rate{"+attributes+"}"] = all / elapsed
		}
	}
	w.ratios(release, "", whole, want)
	return want
}

// refusals counts requests: each once, whether it was scheduled or refused. A model has no
// more errors than requests.
func refusals(events []pickerEvent) (all, failed, shed float64) {
	byPair := map[string][]pickerEvent{}
	for _, e := range events {
		byPair[e.pair()] = append(byPair[e.pair()], e)
	}
	for _, events := range byPair {
		a, f, s := refusalsOf(events)
		all, failed, shed = all+max(a, f), failed+f, shed+s
	}
	return all, failed, shed
}

func refusalsOf(events []pickerEvent) (all, failed, shed float64) {
	for _, e := range events {
		switch {
		case e.what == "scheduled":
			all++
		case e.what == "error" && e.code == "ModelServerError":
			failed++
		case e.what == "error":
			all++
			failed++
			if strings.HasSuffix(e.code, "ResourceExhausted") {
				shed++
			}
		}
	}
	return all, failed, shed
}

func (w *pickerWorld) ratios(release, attributes string, events []pickerEvent, want map[string]float64) {
	if all, failed, shed := refusals(events); all > 0 {
		want[epp+"request.error_ratio{"+attributes+"}"] = failed / all
		want[epp+"request.shed_ratio{"+attributes+"}"] = shed / all
	}
	for what, metric := range map[string]string{
		"input": "request.input_tokens", "output": "request.output_tokens", "duration": "request.duration",
		"first": "request.time_to_first_token", "queue": "flow_control.queue.duration",
	} {
		if release == "1.0" && (what == "first" || what == "queue") {
			continue
		}
		var values []float64
		sum := 0.0
		for _, e := range events {
			if e.what != what || notDerived(release, &e) {
				continue
			}
			values = append(values, e.value)
			sum += e.value
		}
		if len(values) == 0 {
			continue
		}
		want[epp+metric+"_mean{"+attributes+"}"] = sum / float64(len(values))
		if what == "input" || what == "output" {
			continue
		}
		for _, q := range []float64{0.5, 0.95, 0.99} {
			want[fmt.Sprintf("%s%s_quantile{%squantile=%g,}", epp, metric, attributes, q)] = interpolated(values, pickerBounds[what], q)
		}
	}
}

// interpolated is the quantile by linear interpolation between the shares of the values up
// to two bounds.
func interpolated(values, bounds []float64, q float64) float64 {
	rank, lower, below := q*float64(len(values)), 0.0, 0.0
	for _, bound := range bounds {
		n := float64(atMost(values, bound))
		if n > below && n >= rank {
			return lower + (bound-lower)*(rank-below)/(n-below)
		}
		lower, below = bound, n
	}
	return bounds[len(bounds)-1]
}

// ofPicker are the values of a picker's derived metrics; ends are left out.
func ofPicker(metrics pmetric.Metrics) map[string]float64 {
	values := map[string]float64{}
	for _, rm := range metrics.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				described, known := catalog.ByName(m.Name())
				if !known || !described.Derived() || !strings.HasPrefix(m.Name(), "inference_gateway.") {
					continue
				}
				for _, p := range m.Gauge().DataPoints().All() {
					if p.Flags().NoRecordedValue() {
						continue
					}
					key := m.Name() + "{"
					for _, name := range []string{"model_name", "target_model_name", "bound", "quantile"} {
						if value, has := p.Attributes().Get(name); has {
							key += name + "=" + value.AsString() + ","
						}
					}
					if _, twice := values[key+"}"]; twice {
						values[key+"} twice"] = math.NaN()
					}
					values[key+"}"] = p.DoubleValue()
				}
			}
		}
	}
	return values
}

// derivePicker sends batches through a processor and returns what it derives from each.
func derivePicker(t *testing.T, batches []pmetric.Metrics, change func(*Config)) (derived []map[string]float64) {
	t.Helper()
	p, sink := startWith(t, change)
	for _, batch := range batches {
		require.NoError(t, p.ConsumeMetrics(t.Context(), batch))
		all := sink.AllMetrics()
		derived = append(derived, ofPicker(all[len(all)-1]))
	}
	require.NoError(t, p.Shutdown(t.Context()))
	return derived
}

// ways are how the pages of a picker reach the processor.
var pickerWays = map[string]func(t *testing.T, w *pickerWorld, scrapes []answer) []pmetric.Metrics{
	"our receiver": func(t *testing.T, _ *pickerWorld, scrapes []answer) []pmetric.Metrics {
		t.Helper()
		return received(t, scrapes, vllmreceiver.NamingCanonical)
	},
	"our receiver, naming wire": func(t *testing.T, _ *pickerWorld, scrapes []answer) []pmetric.Metrics {
		t.Helper()
		return received(t, scrapes, vllmreceiver.NamingWire)
	},
	"the Prometheus receiver": func(t *testing.T, _ *pickerWorld, scrapes []answer) []pmetric.Metrics {
		t.Helper()
		return prometheusReceived(t, scrapes)
	},
	// It has no times of starts and no ends.
	"the names of the wire": func(t *testing.T, _ *pickerWorld, scrapes []answer) (batches []pmetric.Metrics) {
		t.Helper()
		for _, s := range scrapes {
			batches = append(batches, wirePoints(t, s.body, s.at))
		}
		return batches
	},
}

// Every derived value of a picker is what happened to its requests, in three releases and in
// three ways to the processor: while a model appears, while everything is refused, over a
// restart, and after the traffic has ended.
func TestAPickersValuesAreTheIntegralsOfWhatHappened(t *testing.T) {
	t.Parallel()
	for release := range pickerReleases {
		for way, send := range pickerWays {
			t.Run(release+" "+way, func(t *testing.T) {
				t.Parallel()
				w := newPickerWorld(uint64(len(release) + len(way)))
				var scrapes []answer
				for i, at := range w.scrapes {
					scrapes = append(scrapes, answer{at: noon.Add(at), body: w.body(release, i), contentType: "text/plain; version=0.0.4"})
				}
				compared, refused := 0, 0
				for i, got := range derivePicker(t, send(t, w, scrapes), nil) {
					want := w.expected(release, i)
					restarted := i > 0 && w.life(w.scrapes[i]) != w.life(w.scrapes[i-1])
					for series, value := range want {
						is, has := got[series]
						if !has && restarted {
							continue // A part of the old life may still come.
						}
						if assert.True(t, has, "scrape %d: %s is missing, and should be %v", i, series, value) {
							assert.InDelta(t, value, is, 1e-9*math.Max(1, math.Abs(value)), "scrape %d: %s", i, series)
							compared++
						}
						if strings.Contains(series, "error_ratio") && value == 1 {
							refused++
						}
					}
					for series, value := range got {
						_, known := want[series]
						assert.True(t, known, "scrape %d: %s is %v, and cannot be known", i, series, value)
					}
				}
				assert.Greater(t, compared, 700)
				assert.Positive(t, refused, "everything was refused for a while")
			})
		}
	}
}
