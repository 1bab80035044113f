package catalog

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestEditDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0},
		{"", "abc", 3},
		{"abc", "", 3},
		{"kitten", "sitting", 3},
		{"flaw", "lawn", 2},
		{"same", "same", 0},
	} {
		assert.Equal(t, c.want, editDistance(c.a, c.b), "%q %q", c.a, c.b)
	}
}

func TestTheNearestNameFits(t *testing.T) {
	receiver := func(m *Metric) bool { return m.EmittedBy == "receiver" }
	processor := func(m *Metric) bool { return m.EmittedBy == "processor" }
	assert.Equal(t, "vllm.prompt_tokens", Nearest("vllm.promt_tokens", receiver))
	assert.Equal(t, "vllm.prompt_throughput", Nearest("vllm.promt_throughput", processor))
	assert.Empty(t, Nearest("vllm.prompt_tokens", func(*Metric) bool { return false }))
}
