package live

import "github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/plain"

// maxName is the longest name that is kept of a server, a model, a version and so on, in
// bytes. A name of vLLM is a path at most.
const maxName = 300

// printable is a text of another machine as one line of at most most bytes.
func printable(text string, most int) string { return plain.Text(text, most) }
