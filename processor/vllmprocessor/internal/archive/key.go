package archive

import (
	"crypto/sha256"
	"fmt"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
)

// KeyOf returns the key of a state: of a server, of some attributes of it, and of what
// the state is for. It is the same after a restart. It is a hash, because the identity
// of a server can be long.
func KeyOf(server string, attributes []input.Attribute, name string) string {
	hash := sha256.New()
	for _, part := range []string{name, server} {
		fmt.Fprintf(hash, "%d:%s", len(part), part)
	}
	for _, a := range attributes {
		fmt.Fprintf(hash, "%d:%s%d:%s", len(a.Name), a.Name, len(a.Value), a.Value)
	}
	return string(hash.Sum(nil))
}
