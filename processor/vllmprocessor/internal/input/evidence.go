package input

import "github.com/otelcol-vllm/otelcol-vllm/internal/catalog"

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
	if e.Least.Compare(other.Least) < 0 {
		e.Least = other.Least
	}
	e.Signs |= other.Signs
}
