// Package catalog is the one place where the project's metrics are described:
// what each is called, its unit and kind, which attributes it carries, and the
// families on the wire that it comes from. The table in
// catalog_generated.go is written by cmd/cataloggen from the metadata.yaml at
// the root of the repository; edit that file, then run "make generate".
package catalog

//go:generate go run ../../cmd/cataloggen -root ../..

// Kind is the OTLP data type of a metric.
type Kind uint8

// The kinds a metric can have.
const (
	KindGauge Kind = iota
	// KindSum is a monotonic cumulative sum: a counter.
	KindSum
	KindHistogram
	KindSummary
)

// String returns the kind's name as metadata.yaml spells it.
func (k Kind) String() string {
	return [...]string{"gauge", "sum", "histogram", "summary"}[k]
}

// Metric describes one emitted metric.
type Metric struct {
	// Name is the canonical dotted name, for example "vllm.prompt_tokens".
	Name string
	// Description is one or two sentences for a reader who does not know vLLM.
	Description string
	// Unit is a UCUM unit, "{annotation}" for counted things.
	Unit string
	Kind Kind
	// Attributes are the names of the data point attributes it can carry.
	Attributes []string
	// Enabled says whether the metric is emitted without any configuration.
	Enabled bool
	// Stability is "development", "alpha", "beta" or "stable".
	Stability string
	// EmittedBy names the component: "receiver" or "processor". What the
	// receiver emits the processor may derive as well, where its input lacks it.
	EmittedBy string
	// Sources are the families on the wire, oldest first. A newer source wins
	// over an older one where a body carries both.
	Sources []Source
	// DerivedFrom are the metrics that the processor computes this one from,
	// sorted: the receiver's, or counters of its own that come from those. Empty
	// for what the processor does not derive.
	DerivedFrom []string
	// Formula is the computation in one line; the reference of the processor,
	// metrics.md, explains its words.
	Formula string
	// Exception says why the name does not translate back to its wire name (the
	// colon rule of docs/reference/naming.md); empty where it does.
	Exception string
	// Sentinel is true where the wire value -1 means "not available".
	Sentinel bool
}

// Derived tells whether the processor can compute the metric from others.
func (m *Metric) Derived() bool { return len(m.DerivedFrom) > 0 }

// Source is one family on the wire that becomes a metric.
type Source struct {
	// Family is the name in the text format without any deployment prefix, with
	// "vllm:" and, for counters, with "_total": "vllm:prompt_tokens_total".
	Family string
	// Since and Until are the vLLM versions that expose it, "0.9.2" for example;
	// empty means unknown or still current. Until is the first version without it.
	Since, Until string
	// Version is true where the family means this metric only from Since on and
	// before Until, and something else in other versions: it is folded only when
	// the server's version is known to lie in that range.
	Version bool
	// Fallback goes with Version: true where the family is also taken as this
	// metric when the server's version is unknown and the body has no newer
	// family of the same thing.
	Fallback bool
	// Label is set where the metric comes from this label of an info family
	// instead of the sample's own value; InfoFamilies says how.
	Label string
}

// Namespace is a beginning of wire names outside vLLM's own, and what it
// becomes in a canonical name: "lmcache:" becomes "lmcache.".
type Namespace struct{ Wire, Name string }

// InfoFamily is a family whose facts are in its labels. It is not emitted
// itself. The value "None" of a label means that it is not set.
type InfoFamily struct {
	// Family is the name as Source.Family writes it.
	Family string
	// Numbers are the labels whose value is a number that becomes a metric.
	Numbers []InfoNumber
	// Lists are the labels that hold names joined by commas.
	Lists []InfoList
	// Resource are the labels that become resource attributes where all engines
	// agree on the value. All other labels are left out.
	Resource []InfoAttribute
}

// InfoNumber is a label whose number becomes the value of a metric.
type InfoNumber struct{ Label, Metric string }

// InfoList is a label that holds names joined by commas: each name becomes one
// series of the metric, with the value 1 and the name in the attribute.
type InfoList struct{ Label, Metric, Attribute string }

// InfoAttribute is a label that becomes a resource attribute.
type InfoAttribute struct{ Label, Attribute string }

// GatewayRules are what is particular about the families of inference gateways
// (docs/reference/naming.md).
type GatewayRules struct {
	// Prefixes are the beginnings of their families, oldest generation first.
	Prefixes []GatewayPrefix
	// Labels maps labels to the attributes that they become.
	Labels map[string]string
	// AggregatedLabels are left out by adding up the series that differ in
	// nothing else.
	AggregatedLabels []string
	// AdditiveGauges are the metrics for which a sum over such a label has a
	// meaning although they are gauges.
	AdditiveGauges []string
}

// GatewayPrefix is a beginning of families, and what it becomes.
type GatewayPrefix struct {
	Wire, Name string
	// Kind is the kind of program, "gateway" or "lora_syncer".
	Kind string
	// Flavor is "gaie" or "llm-d" for an endpoint picker.
	Flavor string
}

// RouterRules tell the production stack's router, which repeats its servers'
// gauges, from a vLLM server.
type RouterRules struct {
	// Families mark a body as the router's.
	Families []string
	// Label does so too where a known vLLM family has it.
	Label string
	// Prefixes are the beginnings of its families, which become Name.
	Prefixes []string
	Name     string
}

// SimulatorRules tell the llm-d inference simulator from a vLLM server.
type SimulatorRules struct {
	// Families mark a body as the simulator's.
	Families []string
	// CacheConfigLabels are the only labels of its vllm:cache_config_info.
	CacheConfigLabels []string
}
