// Package spelling translates PromQL from the names that Prometheus stores by default into
// the names of its other ways of translation. Content is written once, in the suffixed
// spelling; the catalogue knows each metric, so the other spellings follow.
package spelling

import (
	"fmt"
	"strings"
	"sync"

	"github.com/prometheus/otlptranslator"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
)

// Spelling is a way in which a backend writes the names of metrics and labels.
type Spelling string

// The spellings. Suffixed is the default of the Prometheus exporter, of remote write and
// of Prometheus's OTLP endpoint: vllm_time_to_first_token_seconds. Unsuffixed is
// the same without units and _total: vllm_time_to_first_token. Dotted is the name as it
// is sent: vllm.time_to_first_token; it needs Prometheus 3.
const (
	Suffixed   Spelling = "suffixed"
	Unsuffixed Spelling = "unsuffixed"
	Dotted     Spelling = "dotted"
)

// Wire is the content on vLLM's own names, which are not translated. Its labels are those of Suffixed.
const Wire Spelling = "wire"

// All are the spellings of this project's names, the default first.
func All() []Spelling { return []Spelling{Suffixed, Unsuffixed, Dotted} }

// strategy is Prometheus's own word for a spelling.
func (s Spelling) strategy() otlptranslator.TranslationStrategyOption {
	switch s {
	case Unsuffixed:
		return otlptranslator.UnderscoreEscapingWithoutSuffixes
	case Dotted:
		return otlptranslator.NoTranslation
	default:
		return otlptranslator.UnderscoreEscapingWithSuffixes
	}
}

// Name returns the name of a metric of the catalogue, without the suffix of a histogram.
func Name(m *catalog.Metric, to Spelling) (string, error) {
	namer := otlptranslator.NewMetricNamer("", to.strategy())
	name, err := namer.Build(otlptranslator.Metric{Name: m.Name, Unit: m.Unit, Type: types[m.Kind]})
	if err != nil {
		return "", fmt.Errorf("metric %s: %w", m.Name, err)
	}
	return name, nil
}

var types = map[catalog.Kind]otlptranslator.MetricType{
	catalog.KindGauge:     otlptranslator.MetricTypeGauge,
	catalog.KindSum:       otlptranslator.MetricTypeMonotonicCounter,
	catalog.KindHistogram: otlptranslator.MetricTypeHistogram,
	catalog.KindSummary:   otlptranslator.MetricTypeSummary,
}

// parts are the suffixes of the series that a kind is stored as.
var parts = map[catalog.Kind][]string{
	catalog.KindGauge:     {""},
	catalog.KindSum:       {""},
	catalog.KindHistogram: {"_bucket", "_sum", "_count"},
	catalog.KindSummary:   {"", "_sum", "_count"},
}

type entry struct {
	metric *catalog.Metric
	suffix string
}

// stored has every name of a series in the suffixed spelling.
var stored = sync.OnceValue(func() map[string]entry {
	index := map[string]entry{}
	all := catalog.All()
	for i := range all {
		m := &all[i]
		name, err := Name(m, Suffixed)
		if err != nil {
			continue // a test proves that every name can be translated.
		}
		for _, part := range parts[m.Kind] {
			index[name+part] = entry{metric: m, suffix: part}
		}
	}
	return index
})

// Metric returns the entry of the catalogue for a series in the suffixed spelling, and
// the suffix that a histogram or summary adds: _bucket, _sum or _count.
func Metric(name string) (m *catalog.Metric, suffix string, ok bool) {
	found, ok := stored()[name]
	return found.metric, found.suffix, ok
}

// foreign are the prefixes of names that other programs write. They are the same in every
// spelling, because no OTLP endpoint has translated them.
var foreign = []string{"otelcol_", "DCGM_FI_", "ALERTS", "scrape_"}

// Foreign reports whether a series is not of the catalogue on purpose: of a recording
// rule or of vLLM itself (both have a colon), or of another program.
func Foreign(name string) bool {
	if strings.Contains(name, ":") || name == "up" || name == "target_info" {
		return true
	}
	for _, prefix := range foreign {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// Series translates the name of a series.
func Series(name string, to Spelling) (string, error) {
	m, suffix, ok := Metric(name)
	if !ok {
		if Foreign(name) {
			return name, nil
		}
		return "", fmt.Errorf("%q is neither a series of the catalogue, nor of a recording rule, nor of a program that is known", name)
	}
	base, err := Name(m, to)
	if err != nil {
		return "", err
	}
	return base + suffix, nil
}
