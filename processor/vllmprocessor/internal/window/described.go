package window

import (
	"slices"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
)

// Reported is the version that the server reports; empty where it does not.
func (r *Resource) Reported() string { return r.evidence.Version }

// Described returns the server as its known defects are looked up for. It reports false
// where it is no vLLM server, where several share the resource, and where our receiver
// has looked them up already.
func (r *Resource) Described() (catalog.Server, bool) {
	server := catalog.Server{Version: r.evidence.Version}
	signs := r.evidence.Signs
	if signs.Has(input.Imitator) || signs.Has(input.Received) || r.severalServers() {
		return server, false
	}
	if !r.Version().Exact {
		server.Version = ""
	}
	var sent [input.NumMetrics]bool
	for _, g := range r.groups {
		for in := range input.NumMetrics {
			sent[in] = sent[in] || len(g.inputs.of(in)) > 0
		}
	}
	for in := range input.NumMetrics {
		if sent[in] && in.String() != "" {
			server.Metrics = append(server.Metrics, in.String())
		}
	}
	for _, setup := range catalog.Setups() {
		if r.Shows(setup.Name) {
			server.Setups = append(server.Setups, setup.Name)
		}
	}
	switch {
	case signs.Has(input.V0):
		server.Engine = "v0"
	case sent[input.IterationTokens] && sent[input.PrefixCacheQueries]:
		// The Rust front end does not observe steps, and the V0 engine counts no lookups.
		server.Engine = "python"
	}
	ofServer := func(name string) bool {
		in, _ := input.ByName(name)
		return !in.OfReceiver()
	}
	return server, slices.ContainsFunc(server.Metrics, ofServer)
}
