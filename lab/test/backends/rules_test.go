//go:build e2e

package backends

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/prometheus/otlptranslator"
	"github.com/prometheus/prometheus/prompb"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
)

// received is all that a backend got from one collector.
type received struct {
	points   []point
	series   []prompb.TimeSeries
	requests []request
}

// rule is one requirement of a backend.
type rule struct {
	// says is the rule as a sentence. source is the public page that states it, or "ours"
	// for what backends do not require but users expect.
	says, source string
	// broken lists what breaks the rule.
	broken func(received) []string
}

const ours = "ours"

// each returns the check of a rule from a check of one point; an empty result passes.
func each(check func(point) string) func(received) []string {
	return func(got received) []string {
		var broken []string
		for _, p := range got.points {
			if problem := check(p); problem != "" {
				broken = append(broken, p.name+": "+problem)
			}
		}
		slices.Sort(broken)
		return slices.Compact(broken)
	}
}

// temporalities requires one temporality of sums and one of histograms.
func temporalities(sums, histograms pmetric.AggregationTemporality) func(received) []string {
	return each(func(p point) string {
		want := pmetric.AggregationTemporalityUnspecified
		switch p.kind {
		case pmetric.MetricTypeSum:
			want = sums
		case pmetric.MetricTypeHistogram:
			want = histograms
		}
		if p.temporality != want {
			return p.kind.String() + " is " + p.temporality.String()
		}
		return ""
	})
}

// kinds requires that nothing has another kind.
func kinds(allowed ...pmetric.MetricType) func(received) []string {
	return each(func(p point) string {
		if !slices.Contains(allowed, p.kind) {
			return "is a " + p.kind.String()
		}
		return ""
	})
}

// requests limits the data points and the bytes, before compression, of a request.
func requests(points, bytes int) func(received) []string {
	return func(got received) (broken []string) {
		for _, r := range got.requests {
			if r.points > points || r.bytes > bytes {
				broken = append(broken, fmt.Sprintf("%d points and %d bytes", r.points, r.bytes))
			}
		}
		return broken
	}
}

// explicit requires histograms with their buckets.
var explicit = each(func(p point) string {
	if p.kind == pmetric.MetricTypeHistogram && (p.bounds != len(bounds) || p.buckets != p.bounds+1) {
		return fmt.Sprintf("%d bounds and %d buckets", p.bounds, p.buckets)
	}
	return ""
})

// names requires names of this form and of at most this many characters.
func names(form string, most int) func(received) []string {
	valid := regexp.MustCompile(form)
	return each(func(p point) string {
		if !valid.MatchString(p.name) || len(p.name) > most {
			return "is no good name"
		}
		return ""
	})
}

// noPrefix requires names that do not begin with one of these.
func noPrefix(prefixes ...string) func(received) []string {
	return each(func(p point) string {
		for _, prefix := range prefixes {
			if strings.HasPrefix(p.name, prefix) {
				return "begins with " + prefix
			}
		}
		return ""
	})
}

// attributeCount limits the attributes of a series, with those of its resource.
func attributeCount(most int) func(received) []string {
	return each(func(p point) string {
		if n := p.attributes.Len() + p.resource.Len(); n > most {
			return fmt.Sprintf("%d attributes", n)
		}
		return ""
	})
}

// attributeForm requires keys of this form, and limits keys and values in length.
func attributeForm(form string, key, value int) func(received) []string {
	valid := regexp.MustCompile(form)
	return each(func(p point) string {
		for name, v := range p.attributes.All() {
			if !valid.MatchString(name) || len(name) > key || len(v.AsString()) > value {
				return "attribute " + name
			}
		}
		for name, v := range p.resource.All() {
			if !valid.MatchString(name) || len(name) > key || len(v.AsString()) > value {
				return "resource attribute " + name
			}
		}
		return ""
	})
}

// without requires that no point has one of these attributes.
func without(attributes ...string) func(received) []string {
	return each(func(p point) string {
		for _, name := range attributes {
			if _, found := p.attributes.Get(name); found {
				return "has the attribute " + name
			}
		}
		return ""
	})
}

// resource requires attributes of the resource, with these values.
func resource(attributes map[string]string) func(received) []string {
	return each(func(p point) string {
		for name, want := range attributes {
			if got, found := p.resource.Get(name); !found || got.AsString() != want {
				return "the resource lacks " + name + "=" + want
			}
		}
		return ""
	})
}

// onlyValues requires numbers, and no points without a recorded value.
var onlyValues = each(func(p point) string {
	switch {
	case p.noValue:
		return "says that there is no value"
	case math.IsNaN(p.value), math.IsInf(p.value, 0):
		return fmt.Sprintf("is %v", p.value)
	}
	return ""
})

// ends requires the stale markers that end a series in Prometheus.
func ends(got received) []string {
	var broken []string
	for _, name := range []string{gaugeGone, sumGone, histogramGone} {
		if !slices.ContainsFunc(got.points, func(p point) bool { return p.name == name && p.noValue }) {
			broken = append(broken, name+" does not end")
		}
	}
	return broken
}

// starts requires that each count has a start time, and that deltas follow one
// another without gap or overlap.
func starts(got received) []string {
	broken := each(func(p point) string {
		counts := p.kind == pmetric.MetricTypeSum || p.kind == pmetric.MetricTypeHistogram
		if counts && (p.start == 0 || p.start >= p.at) {
			return "a start that is not before its end"
		}
		return ""
	})(got)
	for name, stream := range byName(got) {
		for i := range stream {
			if i > 0 && stream[i].temporality == pmetric.AggregationTemporalityDelta && stream[i].start != stream[i-1].at {
				broken = append(broken, name+": a gap or an overlap between deltas")
			}
			if i > 0 && stream[i].temporality == pmetric.AggregationTemporalityCumulative && stream[i].start != stream[0].start {
				broken = append(broken, name+": the start moves without a reset")
			}
		}
	}
	return broken
}

// onlyOnce requires that a series has one point of one time. Of several, a backend keeps one,
// refuses all, or adds them up.
func onlyOnce(got received) []string {
	seen := map[string]int{}
	for _, p := range got.points {
		tags := p.tagged()
		series := []string{p.name}
		for _, key := range slices.Sorted(maps.Keys(tags)) {
			series = append(series, key+"="+tags[key])
		}
		seen[fmt.Sprintf("%s at %d", strings.Join(series, " "), p.at)]++
	}
	var broken []string
	for series, count := range seen {
		if count > 1 {
			broken = append(broken, fmt.Sprintf("%d points of %s", count, series))
		}
	}
	slices.Sort(broken)
	return broken
}

// byName returns the points of the catalogue's metrics in the order of their time, as the
// test sent them. Each has one series.
func byName(got received) map[string][]point {
	streams := map[string][]point{}
	for _, p := range got.points {
		if !strings.HasPrefix(p.name, "vllm.test.") && !strings.HasPrefix(p.name, "vllm_test_") && !p.derived() {
			streams[p.name] = append(streams[p.name], p)
		}
	}
	for _, stream := range streams {
		slices.SortStableFunc(stream, func(a, b point) int { return int(a.at) - int(b.at) })
	}
	return streams
}

// arrives requires every metric of the catalogue with its unit, a point of every
// scrape and, after the last one, its value: deltas add up to it. A summary may
// have become two counters.
func arrives(got received) []string {
	return arrivesAs(func(m catalog.Metric) string { return m.Name })(got)
}

// arrivesAs is arrives with other names.
func arrivesAs(name func(catalog.Metric) string) func(received) []string {
	return func(got received) []string { return missing(got, name) }
}

func missing(got received, nameOf func(catalog.Metric) string) []string {
	streams := byName(got)
	var broken []string
	demand := func(name, unit string, value float64, count uint64) {
		stream := streams[name]
		if len(stream) == 0 {
			broken = append(broken, name+" is missing")
			return
		}
		if stream[0].unit != unit {
			broken = append(broken, fmt.Sprintf("%s: unit %q, not %q", name, stream[0].unit, unit))
		}
		if len(stream) != scrapeCount {
			broken = append(broken, fmt.Sprintf("%s: %d points of %d scrapes", name, len(stream), scrapeCount))
		}
		last := stream[len(stream)-1]
		if last.temporality == pmetric.AggregationTemporalityDelta {
			for _, p := range stream[:len(stream)-1] {
				last.value += p.value
				last.count += p.count
			}
		}
		if math.Abs(last.value-value) > 1e-9*value || last.count != count {
			broken = append(broken, fmt.Sprintf("%s: %v (%d observations), not %v (%d)", name, last.value, last.count, value, count))
		}
	}
	const n = scrapeCount
	for _, m := range catalog.All() {
		name := nameOf(m)
		switch _, whole := streams[name]; {
		case m.Kind == catalog.KindGauge:
			demand(name, m.Unit, 0.25*n, 0)
		case m.Kind == catalog.KindSum:
			demand(name, m.Unit, 100*n, 0)
		case m.Kind == catalog.KindHistogram:
			n := observedAt(m, n)
			demand(name, m.Unit, 94.1*float64(n), uint64(n*(len(bounds)+1)))
		case whole:
			demand(name, m.Unit, 100*n, 100*n)
		default:
			demand(name+"_count", "{request}", 100*n, 0)
			demand(name+"_sum", m.Unit, 100*n, 0)
		}
	}
	return broken
}

// derived requires the derived values of the test's scrapes: those of the second and the
// third follow from the increase of counters and histograms.
func derived(got received) []string {
	return derivedAs(func(m catalog.Metric) string { return m.Name })(got)
}

// derivedAs is derived with other names.
func derivedAs(nameOf func(catalog.Metric) string) func(received) []string {
	return func(got received) []string {
		values := map[string][]float64{}
		for _, p := range got.points {
			if p.derived() && !p.noValue {
				name := p.name
				if q, found := p.attributes.Get("quantile"); found {
					name += " " + q.AsString()
				}
				values[name] = append(values[name], p.value)
			}
		}
		return follow(values, nameOf)
	}
}

// follow compares values by name and quantile with what follows from the scrapes.
func follow(values map[string][]float64, nameOf func(catalog.Metric) string) []string {
	var broken []string
	for _, want := range []struct {
		metric, quantile string
		value            float64
	}{
		{"vllm.prefix_cache.hit_ratio", "", 1},
		{"vllm.time_to_first_token_mean", "", 94.1 / float64(len(bounds)+1)},
		// One observation in each bucket: the middle one lies in the middle of the
		// fifth of nine buckets, from 0.5 to 1; the last is open.
		{"vllm.time_to_first_token_quantile", " 0.5", 0.75},
		{"vllm.time_to_first_token_quantile", " 0.95", 80},
	} {
		metric, known := catalog.ByName(want.metric)
		if !known {
			broken = append(broken, want.metric+" is not in the catalogue")
			continue
		}
		found := values[nameOf(*metric)+want.quantile]
		if len(found) != scrapeCount-1 {
			broken = append(broken, fmt.Sprintf("%s%s: %d values of %d scrapes after the first", want.metric, want.quantile, len(found), scrapeCount-1))
		}
		for _, value := range found {
			if math.Abs(value-want.value) > 1e-9*want.value {
				broken = append(broken, fmt.Sprintf("%s%s is %v, not %v", want.metric, want.quantile, value, want.value))
			}
		}
	}
	return broken
}

// prometheusName returns a metric's name after the standard translation.
func prometheusName(m catalog.Metric) string {
	return spelled(otlptranslator.UnderscoreEscapingWithSuffixes)(m)
}

// spelled names metrics as a strategy of Prometheus's does.
func spelled(strategy otlptranslator.TranslationStrategyOption) func(catalog.Metric) string {
	return func(m catalog.Metric) string { return nameIn(m, strategy) }
}

func nameIn(m catalog.Metric, strategy otlptranslator.TranslationStrategyOption) string {
	types := map[catalog.Kind]otlptranslator.MetricType{
		catalog.KindGauge:     otlptranslator.MetricTypeGauge,
		catalog.KindSum:       otlptranslator.MetricTypeMonotonicCounter,
		catalog.KindHistogram: otlptranslator.MetricTypeHistogram,
		catalog.KindSummary:   otlptranslator.MetricTypeSummary,
	}
	namer := otlptranslator.NewMetricNamer("", strategy)
	name, err := namer.Build(otlptranslator.Metric{Name: m.Name, Unit: m.Unit, Type: types[m.Kind]})
	if err != nil {
		return "untranslatable"
	}
	return name
}

// prometheusNames requires that a backend that translates as Prometheus does gets
// valid names of which no two become one.
func prometheusNames(got received) []string {
	var broken []string
	valid := regexp.MustCompile(`^[a-zA-Z_:][a-zA-Z0-9_:]*$`)
	from := map[string]string{}
	types := map[pmetric.MetricType]catalog.Kind{
		pmetric.MetricTypeGauge: catalog.KindGauge, pmetric.MetricTypeSum: catalog.KindSum,
		pmetric.MetricTypeHistogram: catalog.KindHistogram, pmetric.MetricTypeSummary: catalog.KindSummary,
	}
	for _, p := range got.points {
		name := prometheusName(catalog.Metric{Name: p.name, Unit: p.unit, Kind: types[p.kind]})
		if !valid.MatchString(name) {
			broken = append(broken, p.name+" becomes "+name)
		}
		if other, taken := from[name]; taken && other != p.name {
			broken = append(broken, other+" and "+p.name+" both become "+name)
		}
		from[name] = p.name
	}
	return broken
}
