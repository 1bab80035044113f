package collect

import (
	"slices"
	"strings"
	"sync"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
)

// Evidence is what a resource and the names of its metrics show of the server.
type Evidence struct {
	// Version is the attribute service.version; empty without it.
	Version string
	// Least is the oldest version that can expose all families that were seen; 0 where
	// none of them proves a version.
	Least catalog.Release
	// ProcessStart is when the process of the server began, in Unix seconds of its own
	// clock; 0 where it does not say.
	ProcessStart float64
	// Signs are the signs of an implementation or of a setup.
	Signs Sign
}

// Sign is a set of what can be seen of a server.
type Sign uint8

// The signs.
const (
	// Imitator means: another program that writes vLLM's names. Its version is not one of
	// vLLM.
	Imitator Sign = 1 << iota
	// V0 means: a family that only the V0 engine has.
	V0
	// Ray means: metrics through the agent of Ray.
	Ray
	// Connector means: a family of a KV connector.
	Connector
	// LoRA means: a family of adapters.
	LoRA
	// Processes means: a gauge of one process of several.
	Processes
	// Received means: metrics of our receiver, which logs itself what is known of them.
	Received
)

// receiverScope is the instrumentation scope of our receiver.
const receiverScope = "github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver"

// Has reports whether all given signs were seen.
func (s Sign) Has(signs Sign) bool { return s&signs == signs }

// Join adds the evidence of another part of the same server.
func (e *Evidence) Join(other *Evidence) {
	if other.Version != "" {
		e.Version = other.Version
	}
	if other.ProcessStart != 0 {
		e.ProcessStart = other.ProcessStart
	}
	e.raise(other.Least)
	e.Signs |= other.Signs
}

func (e *Evidence) raise(least catalog.Release) {
	if e.Least.Compare(least) < 0 {
		e.Least = least
	}
}

// proof is what the name of a metric shows.
type proof struct {
	least catalog.Release
	signs Sign
}

// resource reads the attributes of a resource.
func (e *Evidence) resource(attributes pcommon.Map) {
	if version, has := attributes.Get("service.version"); has {
		e.Version = version.AsString()
	}
	// The receiver writes the kind only of what is no vLLM server.
	if kind, has := attributes.Get("vllm.server.kind"); has && kind.AsString() != "" {
		e.Signs |= Imitator
	}
}

// scope reads the name of an instrumentation scope.
func (e *Evidence) scope(name string) {
	if name == receiverScope {
		e.Signs |= Received
	}
}

// prove takes what the name of a metric shows.
func (e *Evidence) prove(p *proof) {
	e.raise(p.least)
	e.Signs |= p.signs
}

// processStart is the gauge of Prometheus's client libraries. vLLM has it only where one
// process serves the API.
const processStart = "process_start_time_seconds"

// process reads the start of the process. Our receiver sends it only on request, others do.
func (e *Evidence) process(metric pmetric.Metric) {
	if metric.Name() != processStart || metric.Type() != pmetric.MetricTypeGauge || metric.Gauge().DataPoints().Len() != 1 {
		return
	}
	point := metric.Gauge().DataPoints().At(0)
	if start := point.DoubleValue(); !point.Flags().NoRecordedValue() && finite(start) && start > 0 {
		e.ProcessStart = start
	}
}

// label reads the name of an attribute of a point, and returns the attribute that it means
// where an imitator has another name for it.
func (e *Evidence) label(name string) (alias string, imitator bool) {
	switch name {
	case "engine", "model_name":
		return "", false
	case "WorkerId", "ReplicaId":
		e.Signs |= Ray
	}
	if alias, imitator = catalog.AttributeAliases[name]; imitator {
		e.Signs |= Imitator
	}
	return alias, imitator
}

// signsOf returns the signs of a family.
func signsOf(family string) (signs Sign) {
	if slices.Contains(catalog.OnlyV0, family) {
		signs |= V0
	}
	if slices.ContainsFunc(catalog.ConnectorPrefixes, func(prefix string) bool { return strings.HasPrefix(family, prefix) }) {
		signs |= Connector
	}
	if strings.HasPrefix(family, catalog.AdapterPrefix) {
		signs |= LoRA
	}
	if slices.Contains(catalog.Simulator.Families, family) || slices.Contains(catalog.Router.Families, family) {
		signs |= Imitator
	}
	return signs
}

// proofs maps each name of each metric of vLLM to what it shows. A family that the
// catalogue gives to several metrics, and a name that several families become, prove the
// oldest of their versions only. A name that the processor can derive proves nothing.
var proofs = sync.OnceValue(func() map[string]proof {
	index := map[string]proof{}
	add := func(name string, p proof) {
		if known, taken := index[name]; taken {
			if known.least.Compare(p.least) < 0 {
				p.least = known.least
			}
			p.signs &= known.signs
		}
		index[name] = p
	}
	for _, metric := range catalog.All() {
		canonical, first := proof{}, true
		for i := range metric.Sources {
			source := &metric.Sources[i]
			if !strings.HasPrefix(source.Family, catalog.Prefixes[0]) {
				canonical, first = proof{}, false
				continue
			}
			of := proof{signs: signsOf(source.Family)}
			of.least, _ = catalog.ParseRelease(source.Since)
			if first {
				canonical, first = of, false
			}
			if of.least.Compare(canonical.least) < 0 {
				canonical.least = of.least
			}
			canonical.signs &= of.signs
			if source.Label != "" {
				// The family is older than its label.
				of.least = catalog.Release{}
			}
			addSpellings(source.Family, of, add)
		}
		if first || metric.Derived() {
			continue
		}
		for _, name := range append(translations(metric.Name), metric.Name) {
			add(name, canonical)
		}
	}
	for _, family := range slices.Concat(catalog.Simulator.Families, catalog.Router.Families) {
		addSpellings(family, proof{signs: Imitator}, add)
	}
	return index
})

// addSpellings calls add for each spelling of a family.
func addSpellings(family string, of proof, add func(string, proof)) {
	for _, name := range spellings(family) {
		p := of
		if strings.HasPrefix(name, "ray_") {
			p.signs |= Ray
		}
		add(name, p)
		for _, suffix := range []string{"_total", "_seconds", "_info"} {
			if short, cut := strings.CutSuffix(name, suffix); cut {
				add(short, p)
			}
		}
	}
}
