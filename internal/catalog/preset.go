package catalog

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Preset is a choice of metrics. Each has all metrics of the smaller ones. It is no number: a configuration with
// one would be accepted.
type Preset string

const (
	// Essential has what a person alerts on or looks at first, for backends that bill by series. It has no
	// histograms of servers.
	Essential Preset = "essential"
	// Standard is the default.
	Standard Preset = ""
	// Full has every metric of the catalogue.
	Full Preset = "full"
)

var presets = []string{"essential", "standard", "full"}

// String is the preset as a configuration spells it.
func (p Preset) String() string { return cmp.Or(string(p), "standard") }

func (p Preset) rank() int { return slices.Index(presets, p.String()) }

// MarshalText implements encoding.TextMarshaler.
func (p Preset) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler. It returns an error for an unknown name.
func (p *Preset) UnmarshalText(text []byte) error {
	if !slices.Contains(presets, string(text)) {
		return fmt.Errorf("%q is unknown; write essential, standard or full", text)
	}
	*p = Preset(strings.Replace(string(text), "standard", "", 1))
	return nil
}

// In reports whether a preset has the metric.
func (m *Metric) In(p Preset) bool { return m.Preset.rank() <= p.rank() }

// Feeds reports whether a preset has the metric, or a metric that is computed from it.
func (m *Metric) Feeds(p Preset) bool { return m.In(p) || m.In(Standard) && feeds()[m.Name] }

// feeds are the metrics that those of Essential are computed from.
var feeds = sync.OnceValue(func() map[string]bool {
	needed := map[string]bool{}
	var need func(names []string)
	need = func(names []string) {
		for _, name := range names {
			if from, known := ByName(name); known && !needed[name] {
				needed[name] = true
				need(from.DerivedFrom)
			}
		}
	}
	for i := range metrics {
		if m := &metrics[i]; m.In(Essential) {
			need(m.DerivedFrom)
		}
	}
	return needed
})
