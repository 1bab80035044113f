package normalize

import (
	"slices"
	"strings"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/exposition"
)

// Source is the kind of a target as the user configures it.
type Source string

// The sources of the configuration.
const (
	// SourceAuto means that the body decides.
	SourceAuto Source = "auto"
	// SourceVLLM is a vLLM server, whatever else its body contains.
	SourceVLLM Source = "vllm"
	// SourceGateway is an endpoint picker or another program of a gateway.
	SourceGateway Source = "gateway"
	// SourceLoRA is the LoRA syncer.
	SourceLoRA Source = "lora"
	// SourceDCGM is NVIDIA's exporter of GPUs, and SourceAMD that of AMD. The catalogue has
	// the exporters under these names.
	SourceDCGM Source = "dcgm"
	SourceAMD  Source = "amd"
)

// IsExporter reports whether the targets are exporters of GPUs, which have no version of vLLM.
func (s Source) IsExporter() bool { return s == SourceDCGM || s == SourceAMD }

// ServerKind is the kind of a server, recognised from its body.
type ServerKind string

// The kinds of servers. Their texts are the values of AttributeKind.
const (
	KindServer     ServerKind = ""
	KindGateway    ServerKind = "gateway"
	KindLoRASyncer ServerKind = "lora_syncer"
	// KindRouter is the router of the production stack, which repeats the gauges of the servers
	// behind it under the same names, or vllm-router.
	KindRouter ServerKind = "router"
	// KindSimulator is the llm-d inference simulator. Its body looks like that of a
	// server, but its latencies and counts are simulated.
	KindSimulator ServerKind = "simulator"
	// KindAccelerator is an exporter of GPUs.
	KindAccelerator ServerKind = "accelerator"
)

// The resource attributes with the kind of the server.
const (
	AttributeKind   = "vllm.server.kind"
	AttributeFlavor = "inference_gateway.epp.flavor"
)

// recognise sets the kind of the server. It uses only the families and label names,
// so that the kind is the same from the first body of a process on.
func (b *builder) recognise() {
	b.plan.Server = b.serverKind()
	if b.plan.Server == KindServer {
		return
	}
	b.plan.Resource = append(b.plan.Resource, exposition.Label{Name: AttributeKind, Value: string(b.plan.Server)})
	if b.exporter != nil {
		b.plan.Resource = append(b.plan.Resource, exposition.Label{Name: AttributeExporter, Value: b.exporter.Name})
	}
	if b.plan.Server != KindGateway {
		return
	}
	flavor := ""
	for i := range b.layout.Families {
		// Newer pickers also write the older names, so the newest name decides.
		if p, ok := gatewayPrefix(b.layout.Families[i].Name); ok && p.Flavor != "" && flavor != "llm-d" {
			flavor = p.Flavor
		}
	}
	if flavor != "" {
		b.plan.Resource = append(b.plan.Resource, exposition.Label{Name: AttributeFlavor, Value: flavor})
	}
}

func (b *builder) serverKind() ServerKind {
	switch b.options.Source {
	case SourceGateway:
		return KindGateway
	case SourceLoRA:
		return KindLoRASyncer
	case SourceDCGM, SourceAMD:
		b.exporter = exporterNamed(string(b.options.Source))
		return KindAccelerator
	}
	declared := map[string]bool{}
	vllm, kinds := false, map[string]bool{}
	for i := range b.layout.Families {
		_, isVLLM := b.options.wireKey(b.layout.Families[i].Name)
		vllm = vllm || isVLLM
		declared[b.keys[i]] = true
		if ns := namespaceOf(b.keys[i]); ns != nil && ns.Kind != "" {
			kinds[ns.Kind] = true
		}
		if p, ok := gatewayPrefix(b.layout.Families[i].Name); ok {
			kinds[p.Kind] = true
		}
	}
	isDeclared := func(family string) bool { return declared[family] }
	exporter := b.exporterOf()
	auto := b.options.Source != SourceVLLM
	switch {
	case auto && !vllm && kinds[string(KindGateway)]:
		return KindGateway
	case auto && !vllm && kinds[string(KindLoRASyncer)]:
		return KindLoRASyncer
	case auto && !vllm && exporter != nil:
		b.exporter = exporter
		return KindAccelerator
	case auto && !vllm && kinds[string(KindRouter)]:
		return KindRouter
	case auto && (slices.ContainsFunc(catalog.Router.Families, isDeclared) || b.hasRouterLabel()):
		return KindRouter
	case slices.ContainsFunc(catalog.Simulator.Families, isDeclared) || b.hasSimulatorInfo():
		return KindSimulator
	}
	return KindServer
}

// hasRouterLabel reports whether the body has a gauge per server that a vLLM server
// has per model and engine, and no series per model or engine.
func (b *builder) hasRouterLabel() bool {
	perServer := false
	for i := range b.layout.Families {
		family, key := &b.layout.Families[i], b.keys[i]
		if !strings.HasPrefix(key, "vllm:") {
			continue
		}
		servers := 0
		for s := range family.Series {
			labels := family.Series[s].Labels
			if label(labels, "model_name") != "" || label(labels, engineLabel) != "" {
				return false
			}
			if label(labels, catalog.Router.Label) != "" {
				servers++
			}
		}
		perServer = perServer || servers > 0 && servers == len(family.Series) &&
			family.Kind == exposition.KindGauge && len(catalog.BySource(key)) > 0
	}
	return perServer
}

// hasSimulatorInfo reports whether the cache configuration has exactly the labels of
// the simulator. It exists before the first request, unlike the simulator's own
// families.
func (b *builder) hasSimulatorInfo() bool {
	info := b.byKey["vllm:cache_config_info"]
	if info == nil {
		return false
	}
	for i := range info.Series {
		labels := info.Series[i].Labels
		if len(labels) != len(catalog.Simulator.CacheConfigLabels) || slices.ContainsFunc(labels, func(l exposition.Label) bool {
			return !slices.Contains(catalog.Simulator.CacheConfigLabels, l.Name)
		}) {
			return false
		}
	}
	return true
}

// renameRouter gives the families of the production stack's router the prefix of vllm-router, so that
// both have the same names and the numbers of the servers are not added up with theirs.
func (b *builder) renameRouter() {
	if b.plan.Server != KindRouter {
		return
	}
	wire := strings.Replace(catalog.Router.Name, ".", "_", 1)
	for i, key := range b.keys {
		for _, prefix := range catalog.Router.Prefixes {
			if rest, ok := strings.CutPrefix(key, prefix); ok && rest != "" {
				b.keys[i] = wire + rest
			}
		}
	}
}
