package collect

import (
	"slices"
	"strings"
	"sync"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
)

// receiverScope is the instrumentation scope of our receiver.
const receiverScope = "github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver"

// seen is filled while the parts of a resource are read.
type seen struct{ input.Evidence }

func (e *seen) resource(attributes pcommon.Map) {
	if version, has := attributes.Get("service.version"); has {
		e.Version = version.AsString()
	}
	// The receiver writes the kind only of what is not a vLLM server.
	if kindOf(attributes) != "" {
		e.Signs |= input.Imitator
	}
}

// processStart is the gauge of Prometheus's client libraries. vLLM has it only where one
// process serves the API.
const processStart = "process_start_time_seconds"

// process reads the start of the process. Our receiver sends it only on request, others do.
func (e *seen) process(metric pmetric.Metric) {
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
func (e *seen) label(name string) (alias string, imitator bool) {
	switch name {
	case "engine", "model_name":
		return "", false
	case "WorkerId", "ReplicaId":
		e.Signs |= input.Ray
	}
	if alias, imitator = catalog.AttributeAliases[name]; imitator {
		e.Signs |= input.Imitator
	}
	return alias, imitator
}

// schedulerPolicy is a family of vLLM's open change #58078, and of nothing else.
const schedulerPolicy = "vllm:scheduler_policy_info"

func signsOf(family string) (signs input.Sign) {
	if slices.Contains(catalog.OnlyV0, family) {
		signs |= input.V0
	}
	if slices.ContainsFunc(catalog.ConnectorPrefixes, func(prefix string) bool { return strings.HasPrefix(family, prefix) }) {
		signs |= input.Connector
	}
	if strings.HasPrefix(family, catalog.AdapterPrefix) {
		signs |= input.LoRA
	}
	if slices.Contains(catalog.Simulator.Families, family) || slices.Contains(catalog.Router.Families, family) {
		signs |= input.Imitator
	}
	return signs
}

// proofs maps each name of each metric of vLLM to what it shows. A family that the
// catalogue gives to several metrics, and a name that several families become, prove the
// oldest of their versions only. A name that the processor can derive proves nothing.
var proofs = sync.OnceValue(func() map[string]input.Evidence {
	index := map[string]input.Evidence{}
	add := func(name string, p input.Evidence) {
		if known, taken := index[name]; taken {
			if known.Least.Compare(p.Least) < 0 {
				p.Least = known.Least
			}
			p.Signs &= known.Signs
		}
		index[name] = p
	}
	for _, metric := range catalog.All() {
		canonical, first := input.Evidence{}, true
		for i := range metric.Sources {
			source := &metric.Sources[i]
			if !strings.HasPrefix(source.Family, catalog.Prefixes[0]) {
				canonical, first = input.Evidence{}, false
				continue
			}
			of := input.Evidence{Signs: signsOf(source.Family)}
			of.Least, _ = catalog.ParseRelease(source.Since)
			if first {
				canonical, first = of, false
			}
			if of.Least.Compare(canonical.Least) < 0 {
				canonical.Least = of.Least
			}
			canonical.Signs &= of.Signs
			if source.Label != "" {
				// The family is older than its label.
				of.Least = catalog.Release{}
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
		addSpellings(family, input.Evidence{Signs: input.Imitator}, add)
	}
	for _, name := range []string{schedulerPolicy, strings.ReplaceAll(schedulerPolicy, ":", "."), strings.ReplaceAll(schedulerPolicy, ":", "_")} {
		addSpellings(name, input.Evidence{Signs: input.LateFirstTokens}, add)
	}
	return index
})

func addSpellings(family string, of input.Evidence, add func(string, input.Evidence)) {
	for _, name := range spellings(family, "_total", "_seconds", "_info") {
		p := of
		if strings.HasPrefix(name, "ray_") {
			p.Signs |= input.Ray
		}
		add(name, p)
	}
}
