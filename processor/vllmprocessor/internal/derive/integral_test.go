package derive_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/derive"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/emit"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/window"
)

// histories is the number of random histories; with -short there are fewer, as
// under the race detector, which has nothing to find in a pure package.
func histories() (n uint64, enough int) {
	if testing.Short() {
		return 40, 10
	}
	return 120, 50
}

// TestDerivedValuesAreTheIntegralsOfWhatHappened holds every row to a reference
// that knows the events and never sees a total. Engines restart, with other
// bounds too, come and go, scrapes fail and jitter, series are made late, and
// what comes from one scrape is split, shuffled, repeated or late.
func TestDerivedValuesAreTheIntegralsOfWhatHappened(t *testing.T) {
	const groups = 8
	n, enough := histories()
	var counts, above [groups]map[string]int // how often a value was expected, and how often one that is not 0
	t.Run("histories", func(t *testing.T) {
		for group := range uint64(groups) {
			t.Run(fmt.Sprint(group), func(t *testing.T) {
				t.Parallel()
				count, other := map[string]int{}, map[string]int{}
				for seed := group; seed < n; seed += groups {
					compare(t, newWorld(seed), seed, count, other)
				}
				counts[group], above[group] = count, other
			})
		}
	})
	if t.Failed() {
		return // The counts of a history that ended early say nothing.
	}
	for _, row := range derive.Rows() {
		if strings.HasPrefix(row.Metric, "inference_gateway.") {
			continue // see TestAPickersValuesAreTheIntegralsOfWhatHappened
		}
		emitted, positive := 0, 0
		for group := range groups {
			emitted += counts[group][row.Metric]
			positive += above[group][row.Metric]
		}
		require.Greater(t, emitted, enough, "%s was hardly emitted", row.Metric)
		require.Positive(t, positive, "%s was always 0: simulation_test.go has no events of its inputs", row.Metric)
	}
}

// compare counts the values that the reference expects by metric: all, and those other than 0.
func compare(t *testing.T, w *world, seed uint64, count, other map[string]int) {
	t.Helper()
	r := newReference(w)
	r.perEngine = w.random.IntN(2) == 0
	settings := &derive.Settings{
		PerEngineQuantiles: r.perEngine, Peak: derive.Peak{FLOPS: r.peak, Bandwidth: r.peak},
	}
	for range derive.Rows() {
		settings.Enabled = append(settings.Enabled, true)
	}
	for _, q := range quantiles {
		settings.Quantiles = append(settings.Quantiles, derive.NewQuantile(q))
	}
	resource := window.NewResource(window.Settings{
		Window: time.Duration(w.window), MaxStaleness: time.Duration(w.staleness),
	})
	var evaluator derive.Evaluator
	var memory emit.Memory
	open := map[string]int{} // the scrape at which a derived series was emitted last
	for scrape, at := range w.scrapes {
		emitted, ended := values{}, map[string]bool{}
		for _, batch := range w.batches(scrape) {
			if !resource.Observe(batch, math.MaxInt).Changed {
				continue
			}
			if seed%2 == 0 {
				// The processor takes evaluators from a pool, so that any batch can meet a new one.
				evaluator = derive.Evaluator{}
			}
			written, metrics := emit.NewOutput(batch.Time, 0), pmetric.NewMetrics()
			written.Append(&memory, evaluator.Evaluate(settings, resource), resource.Time())
			scopes := metrics.ResourceMetrics().AppendEmpty().ScopeMetrics()
			new(emit.History).Put(written, nil, metrics, &input.Batch{Ends: -1})
			out := pmetric.NewMetricSlice()
			if scopes.Len() > 0 {
				out = scopes.At(0).Metrics()
			}
			for key, value := range points(t, out, at) {
				if _, again := emitted[key]; again || ended[key] {
					t.Fatalf("seed %d, scrape %d: %s is emitted twice at one time", seed, scrape, key)
				}
				if math.IsNaN(value) {
					if _, was := open[key]; !was {
						t.Fatalf("seed %d, scrape %d: %s ends and never was", seed, scrape, key)
					}
					delete(open, key)
					ended[key] = true
				} else {
					emitted[key] = value
				}
			}
		}
		want := r.everything(scrape)
		for key, value := range want {
			got, ok := emitted[key]
			if !ok || math.Abs(got-value) > 1e-9*math.Abs(value) {
				t.Errorf("seed %d, scrape %d: %s is %v, emitted: %t, as %v", seed, scrape, key, value, ok, got)
			}
			name, _, _ := strings.Cut(key, "{")
			count[name]++
			if value != 0 {
				other[name]++
			}
			open[key] = scrape
		}
		for key, value := range emitted {
			if _, ok := want[key]; !ok {
				t.Errorf("seed %d, scrape %d: %s is emitted as %v, and the reference has no value: it cannot be known, "+
					"or rows_test.go does not compute this metric yet", seed, scrape, key, value)
			}
		}
		if t.Failed() {
			t.FailNow()
		}
		for key, last := range open {
			// Engines can be missing one after the other, and a roll-up is pending with each.
			if last < scrape-5 || w.markers && last < scrape {
				t.Fatalf("seed %d, scrape %d: %s was not ended", seed, scrape, key)
			}
		}
	}
}

// everything is all values that are expected at a scrape.
func (r *reference) everything(now int) values {
	all := values{}
	put := func(group string, rows map[string]values) {
		for metric, values := range rows {
			for extra, value := range values {
				all[metric+"{"+group+named(metric, extra)+"}"] = value
			}
		}
	}
	var present []string
	missing := 0
	for _, e := range r.engines {
		if r.here(e, now) {
			present = append(present, e)
		} else if r.missing(e, now) {
			missing++
		}
	}
	several := len(present)+missing > 1
	for _, e := range present {
		rows := r.scope(now, e).expect(false, !several, several && r.misattributed(now))
		put("engine="+e+",model_name="+model+",", rows)
	}
	if several && missing == 0 {
		put("model_name="+model+",", r.scope(now, present...).expect(true, false, false))
	}
	for _, e := range r.engines {
		if tokens := r.scope(now, e); r.up[e][now] {
			value, _ := tokens.level(e, input.CacheConfigTokens, "")
			put("engine="+e+",", map[string]values{"vllm.kv_cache.capacity": {"": value}})
		}
	}
	put("", r.scope(now).expectOfFrontEnd())
	return all
}

// named writes a row's own attributes as points does.
func named(metric, extra string) string {
	for _, row := range derive.Rows() {
		if row.Metric != metric {
			continue
		}
		var b strings.Builder
		values := strings.Split(extra, "\x00")
		for i, name := range row.Extra {
			if i < len(values) && values[i] != "" {
				fmt.Fprintf(&b, "%s=%s,", name, values[i])
			}
		}
		return b.String()
	}
	return ""
}

// points are the values of the metrics; NaN for an end.
func points(t *testing.T, metrics pmetric.MetricSlice, at int64) values {
	t.Helper()
	all := values{}
	for i := range metrics.Len() {
		metric := metrics.At(i)
		data := metric.Gauge().DataPoints()
		for j := range data.Len() {
			point := data.At(j)
			if int64(point.Timestamp()) != at {
				t.Fatalf("%s has not the time of the batch", metric.Name())
			}
			var names []string
			for name := range point.Attributes().All() {
				names = append(names, name)
			}
			order := func(name string) int { return slices.Index(attributeOrder, name) }
			slices.SortFunc(names, func(a, b string) int { return order(a) - order(b) })
			key := metric.Name() + "{"
			for _, name := range names {
				value, _ := point.Attributes().Get(name)
				key += name + "=" + value.AsString() + ","
			}
			key += "}"
			if _, again := all[key]; again {
				t.Fatalf("%s is emitted twice in one batch", key)
			}
			all[key] = point.DoubleValue()
			if point.Flags().NoRecordedValue() {
				if data.Len() != 1 {
					t.Fatalf("the end of %s shares a metric", metric.Name())
				}
				all[key] = math.NaN()
			}
		}
	}
	return all
}

var attributeOrder = []string{
	"engine", "model_name", "finished_reason", "position", "source", "status_class", "reason", "quantile", "bound",
}
