package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"

	"go.yaml.in/yaml/v3"
)

// document is metadata.yaml. Fields that mdatagen has too keep its names and
// meanings; the head of the file explains the others.
type document struct {
	Prefixes         []string             `yaml:"prefixes"`
	Namespaces       []namespace          `yaml:"namespaces"`
	Groups           []string             `yaml:"groups"`
	DisabledPrefixes []string             `yaml:"disabled_prefixes"`
	AttributeAliases map[string]string    `yaml:"attribute_aliases"`
	Conventions      map[string]string    `yaml:"conventions"`
	Gateway          gateway              `yaml:"gateway"`
	Accelerators     accelerators         `yaml:"accelerators"`
	Imitators        imitators            `yaml:"imitators"`
	InfoFamilies     []infoFamily         `yaml:"info_families"`
	Topics           []topic              `yaml:"topics"`
	Attributes       map[string]attribute `yaml:"attributes"`
	Metrics          map[string]metric    `yaml:"metrics"`
}

type namespace struct {
	Wire        string `yaml:"wire"`
	Name        string `yaml:"name"`
	Kind        string `yaml:"kind"`
	Conventions bool   `yaml:"conventions"`
}

type gateway struct {
	Prefixes         []gatewayPrefix   `yaml:"prefixes"`
	Labels           map[string]string `yaml:"labels"`
	AggregatedLabels []string          `yaml:"aggregated_labels"`
	AdditiveGauges   []string          `yaml:"additive_gauges"`
}

type gatewayPrefix struct {
	Wire   string `yaml:"wire"`
	Name   string `yaml:"name"`
	Kind   string `yaml:"kind"`
	Flavor string `yaml:"flavor"`
}

type imitators struct {
	Router struct {
		Families []string `yaml:"families"`
		Label    string   `yaml:"label"`
		Prefixes []string `yaml:"prefixes"`
		Name     string   `yaml:"name"`
	} `yaml:"router"`
	Simulator struct {
		Families          []string `yaml:"families"`
		CacheConfigLabels []string `yaml:"cache_config_labels"`
	} `yaml:"simulator"`
}

type topic struct {
	ID    string `yaml:"id"`
	Title string `yaml:"title"`
	// Intro is printed above the topic's metrics in the receiver's reference, DerivedIntro
	// in the processor's.
	Intro        string `yaml:"intro"`
	DerivedIntro string `yaml:"derived_intro"`
	// Together is how the names of metrics begin that have one kind, one unit and one meaning.
	Together        string `yaml:"together"`
	TogetherMeaning string `yaml:"together_meaning"`
}

type attribute struct {
	Description string   `yaml:"description"`
	Type        string   `yaml:"type"`
	Enum        []string `yaml:"enum"`
}

type infoFamily struct {
	Family      string `yaml:"family"`
	Description string `yaml:"description"`
	Numbers     []struct {
		Label  string `yaml:"label"`
		Metric string `yaml:"metric"`
		Unless string `yaml:"unless"`
	} `yaml:"numbers"`
	Lists []struct {
		Label     string `yaml:"label"`
		Metric    string `yaml:"metric"`
		Attribute string `yaml:"attribute"`
	} `yaml:"lists"`
	Resource []struct {
		Label     string `yaml:"label"`
		Attribute string `yaml:"attribute"`
	} `yaml:"resource"`
}

type metric struct {
	Enabled               *bool         `yaml:"enabled"`
	Preset                string        `yaml:"preset"`
	Description           string        `yaml:"description"`
	ExtendedDocumentation string        `yaml:"extended_documentation"`
	Unit                  string        `yaml:"unit"`
	Stability             string        `yaml:"stability"`
	Gauge                 *measurements `yaml:"gauge"`
	Sum                   *measurements `yaml:"sum"`
	Histogram             *measurements `yaml:"histogram"`
	Summary               *struct{}     `yaml:"summary"`
	Attributes            []string      `yaml:"attributes"`
	EmittedBy             string        `yaml:"emitted_by"`
	Topic                 string        `yaml:"topic"`
	Sources               []source      `yaml:"sources"`
	Exporters             []exporting   `yaml:"exporters"`
	Partitions            bool          `yaml:"partitions"`
	Exception             string        `yaml:"exception"`
	Sentinel              bool          `yaml:"sentinel"`
	HideZero              string        `yaml:"hide_zero"`
	ZeroShown             string        `yaml:"zero_shown"`
	AlsoDerived           bool          `yaml:"also_derived"`
	DerivedFrom           []string      `yaml:"derived_from"`
	Formula               string        `yaml:"formula"`
	Needs                 string        `yaml:"needs"`
	BlindSpots            string        `yaml:"blind_spots"`
	DecidedAs             []string      `yaml:"decided_as"`
}

// measurements are the settings of a kind. The exposition formats have one type of
// number and one temporality, so only these are accepted.
type measurements struct {
	ValueType              string `yaml:"value_type"`
	Monotonic              bool   `yaml:"monotonic"`
	AggregationTemporality string `yaml:"aggregation_temporality"`
}

type source struct {
	Family   string `yaml:"family"`
	Since    string `yaml:"since"`
	Until    string `yaml:"until"`
	Version  bool   `yaml:"version"`
	Fallback bool   `yaml:"fallback"`
	Label    string `yaml:"label"`
}

// kind returns the name of the metric's kind; validate has made sure that
// there is exactly one.
func (m metric) kind() string {
	switch {
	case m.Sum != nil:
		return "sum"
	case m.Histogram != nil:
		return "histogram"
	case m.Summary != nil:
		return "summary"
	default:
		return "gauge"
	}
}

// preset is the Go name of the smallest preset that has the metric.
func (m metric) preset() string {
	switch {
	case m.Preset != "":
		return "Essential"
	case *m.Enabled:
		return "Standard"
	default:
		return "Full"
	}
}

// derived reports whether the processor computes the metric from others.
func (m metric) derived() bool { return m.EmittedBy == componentProcessor || m.AlsoDerived }

// received reports whether the receiver emits it.
func (m metric) received() bool { return m.EmittedBy == componentReceiver }

// parse decodes and checks the catalogue. Unknown keys and keys out of order are
// errors: a sorted file has one place for every entry.
func parse(content []byte) (*document, error) {
	var doc document
	if err := decode(content, &doc); err != nil {
		return nil, err
	}
	var tree yaml.Node
	if err := yaml.Unmarshal(content, &tree); err != nil {
		return nil, err
	}
	if err := errors.Join(sortedKeys(&tree, "attributes"), sortedKeys(&tree, "metrics"), doc.validate()); err != nil {
		return nil, err
	}
	return &doc, nil
}

// decode decodes a file, in which unknown keys are errors. What stands after the end of its
// document would be lost without a word.
func decode(content []byte, into any) error {
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	decoder.KnownFields(true)
	if err := decoder.Decode(into); err != nil {
		return err
	}
	if err := decoder.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return errors.New("the file must be one YAML document: remove the line \"---\"")
	}
	return nil
}

// sortedKeys checks the order of the keys of one top-level mapping, which is
// lost once it is decoded into a Go map.
func sortedKeys(tree *yaml.Node, section string) error {
	top := tree.Content[0].Content
	for i := 0; i+1 < len(top); i += 2 {
		if top[i].Value != section {
			continue
		}
		var keys []string
		for j := 0; j < len(top[i+1].Content); j += 2 {
			keys = append(keys, top[i+1].Content[j].Value)
		}
		for j := 1; j < len(keys); j++ {
			if keys[j-1] > keys[j] {
				return fmt.Errorf("%s: %q must stand before %q", section, keys[j], keys[j-1])
			}
		}
	}
	return nil
}

// sortedNames returns the keys of a map in order.
func sortedNames[V any](m map[string]V) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
