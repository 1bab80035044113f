package judge

import (
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
)

// ShownVersion is the vLLM version that the servers of a story show.
const ShownVersion = "0.24.0"

// dialect is how they show it.
const dialect = "v1"

// Semantics are what servers of this version observe otherwise than they should.
func Semantics() engine.Semantics {
	out, err := vllmsim.Semantics(dialect, ShownVersion)
	if err != nil {
		panic(err) // The constants above.
	}
	return out
}
