// Package catalog describes the project's metrics: their names, units, kinds and
// attributes, and the families on the wire that they are read from. It also has the
// words of the diagnosis. lab/cmd/cataloggen writes the tables from metadata.yaml at the
// root of the repository and from diagnosis.yaml; edit these files, then run
// "make generate".
package catalog

//go:generate go run ../../lab/cmd/cataloggen -root ../..

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
	// Preset is the smallest preset that has the metric.
	Preset Preset
	// EmittedBy names the component: "receiver" or "processor". The processor may
	// also derive a metric of the receiver if its input lacks it.
	EmittedBy string
	// Sources are the families on the wire, oldest first. If a body has several, the
	// newest wins.
	Sources []Source
	// Exporters are the families of GPU exporters that become the metric. Of those with the
	// same exporter and Set, the last one that the body has counts.
	Exporters []Exported
	// Partitions is true for a metric of a GPU that a partition of it (MIG) has its own
	// value of.
	Partitions bool
	// DerivedFrom are the metrics that the processor computes this one from, sorted:
	// metrics of the receiver, or counters that the processor computes from them. It is
	// empty for a metric that the processor does not derive.
	DerivedFrom []string
	// Needs is what a derived metric requires beyond the oldest form of its inputs: a
	// version of vLLM, a flag of the server, or a setting of the processor.
	Needs string
	// BlindSpots is what a derived metric does not include, one or two sentences.
	BlindSpots string
	// Exception is the reason why the name does not translate back to its wire name
	// (the colon rule of docs/reference/naming.md); empty if it does.
	Exception string
	// Sentinel is true where the wire value -1 means "not available".
	Sentinel bool
	// HideZero is a metric of the receiver: a series of this one that is 0 is not emitted while that
	// one's series with the same attributes is 0, too, because the server does not use what it
	// counts. It is empty where 0 is news. Series with an attribute of the value ZeroShown are
	// always emitted.
	HideZero, ZeroShown string
}

// Derived reports whether the processor can compute the metric from others.
func (m *Metric) Derived() bool { return len(m.DerivedFrom) > 0 }

// Source is one family on the wire that becomes a metric.
type Source struct {
	// Family is the name in the text format without any deployment prefix, with
	// "vllm:" and, for counters, with "_total": "vllm:prompt_tokens_total".
	Family string
	// Since and Until are the vLLM versions that expose it, "0.9.2" for example;
	// empty means unknown or still current. Until is the first version without it.
	Since, Until string
	// Version is true if the family means this metric only from Since on and before
	// Until, and another one in other versions. Then the source counts only if the
	// server's version is known to be in that range.
	Version bool
	// Fallback is for a source with Version: true if the source also counts when the
	// server's version is unknown and the body has no newer family of the metric.
	Fallback bool
	// Label is set if the metric comes from this label of an info family instead of
	// the sample's value; see InfoFamilies.
	Label string
}

// Namespace is a prefix of wire names outside vLLM's own, and the prefix of the
// canonical names: "lmcache:" becomes "lmcache.".
type Namespace struct {
	Wire, Name string
	// Kind is that of a program whose body has no other metrics than those of the namespaces; empty for
	// families that a vLLM server also has.
	Kind string
	// Conventions is true where the labels are those of catalog.Conventions.
	Conventions bool
}

// InfoFamily is a family with information in its labels. It is not emitted itself. The
// value "None" of a label means that it is not set.
type InfoFamily struct {
	// Family is the name as Source.Family writes it.
	Family string
	// Numbers are the labels whose value is a number that becomes a metric.
	Numbers []InfoNumber
	// Lists are the labels that hold names joined by commas.
	Lists []InfoList
	// Resource are the labels that become resource attributes if all engines have the
	// same value. All other labels are dropped.
	Resource []InfoAttribute
}

// InfoNumber is a label whose number becomes the value of a metric. It is not emitted where the label Unless is a number, which then replaces it.
type InfoNumber struct{ Label, Metric, Unless string }

// InfoList is a label that holds names joined by commas: each name becomes one
// series of the metric, with the value 1 and the name in the attribute.
type InfoList struct{ Label, Metric, Attribute string }

// InfoAttribute is a label that becomes a resource attribute.
type InfoAttribute struct{ Label, Attribute string }

// GatewayRules are the rules for the families of inference gateways
// (docs/reference/naming.md).
type GatewayRules struct {
	// Prefixes are the prefixes of their families, the oldest generation first.
	Prefixes []GatewayPrefix
	// Labels maps labels to the attributes that they become.
	Labels map[string]string
	// AggregatedLabels are removed: series that differ only in them are added up.
	AggregatedLabels []string
	// AdditiveGauges are the gauges that can be added up over such a label.
	AdditiveGauges []string
}

// GatewayPrefix is a prefix of families, and the prefix of the canonical names.
type GatewayPrefix struct {
	Wire, Name string
	// Kind is the kind of program, "gateway" or "lora_syncer".
	Kind string
	// Flavor is "gaie" or "llm-d" for an endpoint picker.
	Flavor string
}

// RouterRules distinguish the production stack's router, which repeats the gauges of
// its servers, from a vLLM server.
type RouterRules struct {
	// Families mark a body as the router's.
	Families []string
	// Label also marks it, if a known vLLM family has the label.
	Label string
	// Prefixes are the prefixes of its families; they become Name.
	Prefixes []string
	Name     string
}

// SimulatorRules distinguish the llm-d inference simulator from a vLLM server.
type SimulatorRules struct {
	// Families mark a body as the simulator's.
	Families []string
	// CacheConfigLabels are the only labels of its vllm:cache_config_info.
	CacheConfigLabels []string
}
