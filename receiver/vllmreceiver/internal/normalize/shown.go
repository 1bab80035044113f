package normalize

import (
	"slices"
	"strings"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/exposition"
)

// sign is a set of what the structure of a body shows of the server.
type sign uint16

// The first signs are those of setups.
const (
	signDataParallel sign = 1 << iota
	signProcesses
	signRay
	signSpeculation
	signConnector
	signLoRA
	// signV0 and signV1 are families that only one of the Python server's engines has.
	signV0
	signV1
	// signImitator is a label that no vLLM server has.
	signImitator
	// signTransfer is a connector by which servers send KV to each other or to a store.
	signTransfer
)

// setups are the setups of the catalogue that a body can show, in the order of their signs.
var setups = [...]string{"data_parallel", "api_servers", "ray", "speculation", "connector", "lora"}

// familySigns returns the signs of a family.
func familySigns(key string) (signs sign) {
	has := func(prefix string) bool { return strings.HasPrefix(key, prefix) }
	if has("vllm:spec_decode_") {
		signs |= signSpeculation
	}
	if slices.ContainsFunc(catalog.ConnectorPrefixes, has) {
		signs |= signConnector
		// Offloading stays on the machine.
		if !strings.Contains(key, "kv_offload_") {
			signs |= signTransfer
		}
	}
	if has(catalog.AdapterPrefix) {
		signs |= signLoRA
	}
	if slices.Contains(catalog.OnlyV0, key) {
		signs |= signV0
	}
	if has("vllm:prefix_cache_queries") || has("vllm:gpu_prefix_cache_queries") {
		signs |= signV1
	}
	return signs
}

// readSigns reads the signs of the whole body.
func (b *builder) readSigns() sign {
	var signs sign
	if b.ray.agent {
		signs |= signRay
	}
	for i := range b.layout.Families {
		family, key := &b.layout.Families[i], b.keys[i]
		if len(family.Series) == 0 || !strings.HasPrefix(key, catalog.Prefixes[0]) {
			continue
		}
		signs |= familySigns(key)
		for s := range family.Series {
			signs |= labelSigns(family.Series[s].Labels)
		}
	}
	return signs
}

func labelSigns(labels []exposition.Label) (signs sign) {
	for i := range labels {
		switch name := labels[i].Name; {
		case name == engineLabel && labels[i].Value != "0":
			// Of some versions only the last engine is seen.
			signs |= signDataParallel
		case name == pidLabel:
			signs |= signProcesses
		case name == rayReplica || name == rayWorker:
			signs |= signRay
		default:
			if _, alias := catalog.AttributeAliases[name]; alias {
				signs |= signImitator
			}
		}
	}
	return signs
}

// Shown returns what the plan shows of a vLLM server, for its known defects. It reports
// false for other programs and for bodies without the metrics of a server. The options
// are those that the plan was made with. openMetrics is true for a body in that format,
// which only the Rust front end sends to a client that asks for plain text.
func (p *Plan) Shown(options *Options, version string, openMetrics bool) (catalog.Server, bool) {
	server := catalog.Server{Version: version}
	if p.Server != KindServer || p.signs&signImitator != 0 {
		return server, false
	}
	for i := range p.Metrics {
		m := &p.Metrics[i]
		if !options.Wire {
			server.Metrics = append(server.Metrics, m.Name)
			continue
		}
		key, _ := options.wireKey(m.Family)
		for _, match := range slices.Concat(catalog.BySource(key), catalog.BySource(key+"_total")) {
			if !slices.Contains(server.Metrics, match.Metric.Name) {
				server.Metrics = append(server.Metrics, match.Metric.Name)
			}
		}
	}
	for i, setup := range setups {
		if p.signs&(1<<i) != 0 {
			server.Setups = append(server.Setups, setup)
		}
	}
	switch {
	case openMetrics:
		server.Engine = "rust"
	case p.signs&signV0 != 0:
		server.Engine = "v0"
	case p.signs&signV1 != 0:
		server.Engine = "python"
	}
	return server, slices.ContainsFunc(p.Metrics, func(m Metric) bool { return m.Engine })
}
