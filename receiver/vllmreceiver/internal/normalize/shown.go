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

// The families that show whether a server serves.
const (
	familyGenerated = "vllm:generation_tokens_total"
	familySleep     = "vllm:engine_sleep_state"
	labelSleep      = "sleep_state"
)

// Serving is what a body shows of the requests that a server answers.
type Serving struct {
	// Tokens is how many tokens were generated, of all engines and models; -1 where it is not shown.
	Tokens float64
	// Asleep is true where an engine sleeps, so that it cannot serve.
	Asleep bool
}

// Serving returns what a body shows of the requests that a server answers.
func (o *Options) Serving(s *exposition.Snapshot) Serving {
	out := Serving{Tokens: -1}
	for i := range s.Layout.Families {
		family := &s.Layout.Families[i]
		switch o.SourceName(family.Name) {
		case familyGenerated:
			out.Tokens = total(family, s.Values)
		case familySleep:
			out.Asleep = slices.ContainsFunc(family.Series, func(series exposition.Series) bool {
				state := label(series.Labels, labelSleep)
				return series.Value != exposition.NoSlot && state != "" && (s.Values[series.Value] > 0) != (state == "awake")
			})
		}
	}
	return out
}

// total adds up the values of all series; -1 where none has one.
func total(family *exposition.Family, values []float64) float64 {
	sum, found := 0.0, false
	for i := range family.Series {
		if at := family.Series[i].Value; at != exposition.NoSlot {
			sum, found = sum+values[at], true
		}
	}
	if !found || !(sum >= 0) {
		return -1
	}
	return sum
}

// Answers reports whether the server answers requests itself, so that one can be sent to it: it
// is vLLM or its simulator, and the body is its own and not that of a Ray agent.
func (p *Plan) Answers() bool {
	return (p.Server == KindServer && p.signs&signImitator == 0 || p.Server == KindSimulator) && p.signs&signRay == 0 &&
		slices.ContainsFunc(p.Metrics, func(m Metric) bool { return m.Engine })
}

// Transfers reports whether the server takes KV from other servers, or sends it.
func (p *Plan) Transfers() bool { return p.signs&signTransfer != 0 }

// Parallel reports whether the server has several engines.
func (p *Plan) Parallel() bool { return p.signs&signDataParallel != 0 }
