package catalog

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// The test decodes metadata.yaml without the generator's schema, so that a field which the
// generator forgets is a difference.
func TestTheTableIsTheYAML(t *testing.T) {
	content, err := os.ReadFile(filepath.Join("..", "..", "metadata.yaml"))
	require.NoError(t, err)
	var doc map[string]any
	require.NoError(t, yaml.Unmarshal(content, &doc))

	entries := doc["metrics"].(map[string]any)
	var names []string
	for name := range entries {
		names = append(names, name)
	}
	slices.Sort(names)
	var table []string
	for _, m := range All() {
		table = append(table, m.Name)
	}
	// All that the catalogue says of each metric would be the rest of a long message.
	require.Equal(t, names, table, "the metrics of metadata.yaml and of catalog_generated.go; run make generate")
	for i, name := range names {
		assert.Equal(t, metricOf(t, name, entries[name].(map[string]any)), All()[i], "%s: run make generate", name)
	}

	assert.Equal(t, stringsOf(doc["prefixes"]), Prefixes)
	assert.Equal(t, stringsOf(doc["groups"]), Groups)
	assert.Equal(t, stringsOf(doc["disabled_prefixes"]), DisabledPrefixes)
	values := namesOfTheDiagnosis()
	for name, attribute := range doc["attributes"].(map[string]any) {
		want, diagnosed := values[name]
		if !diagnosed {
			want = stringsOf(attribute.(map[string]any)["enum"])
		}
		assert.Equal(t, want, Values(name), name)
	}
	aliases := map[string]string{}
	for alias, attribute := range doc["attribute_aliases"].(map[string]any) {
		aliases[alias] = attribute.(string)
	}
	assert.Equal(t, aliases, AttributeAliases)
	var namespaces []Namespace
	for _, n := range mapsOf(doc["namespaces"]) {
		namespaces = append(namespaces, Namespace{
			Wire: text(n["wire"]), Name: text(n["name"]), Kind: text(n["kind"]), Conventions: n["conventions"] == true,
		})
	}
	assert.Equal(t, namespaces, Namespaces)
	conventions := map[string]string{}
	for label, attribute := range doc["conventions"].(map[string]any) {
		conventions[label] = attribute.(string)
	}
	assert.Equal(t, conventions, Conventions)
	var families []InfoFamily
	for _, f := range mapsOf(doc["info_families"]) {
		families = append(families, infoFamilyOf(f))
	}
	assert.Equal(t, families, InfoFamilies)
	assert.Equal(t, gatewayOf(doc["gateway"].(map[string]any)), Gateway)
	assert.Equal(t, acceleratorsOf(doc["accelerators"].(map[string]any)), Accelerators)
	imitators := doc["imitators"].(map[string]any)
	router := imitators["router"].(map[string]any)
	assert.Equal(t, RouterRules{
		Families: stringsOf(router["families"]), Label: text(router["label"]),
		Prefixes: stringsOf(router["prefixes"]), Name: text(router["name"]),
	}, Router)
	simulator := imitators["simulator"].(map[string]any)
	assert.Equal(t, SimulatorRules{
		Families: stringsOf(simulator["families"]), CacheConfigLabels: stringsOf(simulator["cache_config_labels"]),
	}, Simulator)
}

func TestEveryAttributeIsDeclared(t *testing.T) {
	content, err := os.ReadFile(filepath.Join("..", "..", "metadata.yaml"))
	require.NoError(t, err)
	var doc struct {
		Attributes map[string]any `yaml:"attributes"`
	}
	require.NoError(t, yaml.Unmarshal(content, &doc))
	for _, m := range All() {
		for _, a := range m.Attributes {
			assert.Contains(t, doc.Attributes, a, m.Name)
		}
	}
	for _, attribute := range AttributeAliases {
		assert.Contains(t, doc.Attributes, attribute)
	}
}

func metricOf(t *testing.T, name string, fields map[string]any) Metric {
	t.Helper()
	m := Metric{
		Name: name, Attributes: stringsOf(fields["attributes"]),
		DerivedFrom: stringsOf(fields["derived_from"]),
		Needs:       text(fields["needs"]), BlindSpots: text(fields["blind_spots"]),
	}
	for key, value := range fields {
		switch key {
		case "enabled":
			if !value.(bool) {
				m.Preset = Full
			}
		case "preset":
			assert.NoError(t, m.Preset.UnmarshalText([]byte(text(value))), name)
		case "description":
			m.Description = text(value)
		case "unit":
			m.Unit = text(value)
		case "emitted_by":
			m.EmittedBy = text(value)
		case "exception":
			m.Exception = text(value)
		case "partitions":
			m.Partitions = value.(bool)
		case "sentinel":
			m.Sentinel = value.(bool)
		case "hide_zero":
			m.HideZero = value.(string)
		case "zero_shown":
			m.ZeroShown = value.(string)
		case "gauge":
			m.Kind = KindGauge
		case "sum":
			m.Kind = KindSum
		case "histogram":
			m.Kind = KindHistogram
		case "summary":
			m.Kind = KindSummary
		case "attributes", "sources", "exporters", "derived_from", "needs", "blind_spots":
		case "topic", "extended_documentation", "stability", "formula", "decided_as":
			// For readers of the pages only.
		case "also_derived":
			assert.Equal(t, "receiver", fields["emitted_by"], "%s: also_derived is only for metrics of the receiver", name)
		default:
			t.Errorf("%s: the test does not know the key %q", name, key)
		}
	}
	for _, s := range mapsOf(fields["sources"]) {
		m.Sources = append(m.Sources, Source{
			Family: text(s["family"]), Since: text(s["since"]), Until: text(s["until"]), Label: text(s["label"]),
			Version: s["version"] == true, Fallback: s["fallback"] == true,
		})
	}
	for _, e := range mapsOf(fields["exporters"]) {
		m.Exporters = append(m.Exporters, Exported{
			Exporter: text(e["exporter"]), Family: text(e["family"]), Scale: number(e["scale"]), Bit: uint64(number(e["bit"])),
			Set: textMap(e["set"]), Labels: textMap(e["labels"]), Plus: stringsOf(e["plus"]), Off: e["off"] == true,
		})
	}
	return m
}

func acceleratorsOf(fields map[string]any) AcceleratorRules {
	rules := AcceleratorRules{Labels: map[Role][]string{}, Values: map[string]map[string]string{}}
	for _, e := range mapsOf(fields["exporters"]) {
		rules.Exporters = append(rules.Exporters, Exporter{
			Name: text(e["name"]), Vendor: text(e["vendor"]), Program: text(e["program"]), Prefixes: stringsOf(e["prefixes"]),
			Families: stringsOf(e["families"]), Label: text(e["label"]), Unknown: text(e["unknown"]),
		})
	}
	for _, l := range mapsOf(fields["labels"]) {
		rules.Labels[Role(text(l["role"]))] = stringsOf(l["names"])
	}
	for attribute, values := range fields["values"].(map[string]any) {
		rules.Values[attribute] = textMap(values)
	}
	return rules
}

// number returns 0 for a key that is absent.
func number(value any) float64 {
	switch n := value.(type) {
	case int:
		return float64(n)
	case float64:
		return n
	}
	return 0
}

// textMap returns nil for a key that is absent.
func textMap(value any) map[string]string {
	items, ok := value.(map[string]any)
	if !ok {
		return nil
	}
	m := map[string]string{}
	for key, item := range items {
		m[key] = item.(string)
	}
	return m
}

func gatewayOf(fields map[string]any) GatewayRules {
	g := GatewayRules{
		Labels:           map[string]string{},
		AggregatedLabels: stringsOf(fields["aggregated_labels"]), AdditiveGauges: stringsOf(fields["additive_gauges"]),
	}
	for _, p := range mapsOf(fields["prefixes"]) {
		g.Prefixes = append(g.Prefixes, GatewayPrefix{
			Wire: text(p["wire"]), Name: text(p["name"]), Kind: text(p["kind"]), Flavor: text(p["flavor"]),
		})
	}
	for label, attribute := range fields["labels"].(map[string]any) {
		g.Labels[label] = attribute.(string)
	}
	return g
}

func infoFamilyOf(fields map[string]any) InfoFamily {
	f := InfoFamily{Family: text(fields["family"])}
	for _, n := range mapsOf(fields["numbers"]) {
		f.Numbers = append(f.Numbers, InfoNumber{Label: text(n["label"]), Metric: text(n["metric"]), Unless: text(n["unless"])})
	}
	for _, l := range mapsOf(fields["lists"]) {
		f.Lists = append(f.Lists, InfoList{Label: text(l["label"]), Metric: text(l["metric"]), Attribute: text(l["attribute"])})
	}
	for _, r := range mapsOf(fields["resource"]) {
		f.Resource = append(f.Resource, InfoAttribute{Label: text(r["label"]), Attribute: text(r["attribute"])})
	}
	return f
}

func text(value any) string {
	s, _ := value.(string)
	return s
}

func stringsOf(value any) []string {
	var list []string
	items, _ := value.([]any)
	for _, item := range items {
		list = append(list, item.(string))
	}
	return list
}

func mapsOf(value any) []map[string]any {
	var list []map[string]any
	items, _ := value.([]any)
	for _, item := range items {
		list = append(list, item.(map[string]any))
	}
	return list
}

// namesOfTheDiagnosis are the values of the attributes that metadata.yaml does not list.
func namesOfTheDiagnosis() map[string][]string {
	values := map[string][]string{}
	for _, c := range Conditions() {
		values["condition"] = append(values["condition"], c.Name)
	}
	for _, c := range Causes() {
		values["cause"] = append(values["cause"], c.Name)
		for _, d := range c.Details {
			values["detail"] = append(values["detail"], d.Name)
		}
	}
	for _, s := range Signals() {
		values["signal"] = append(values["signal"], s.Name)
	}
	for _, names := range values {
		slices.Sort(names)
	}
	return values
}
