package objective

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestPatternMatchesTheWholeNameAndSlashes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern, model string
		want           bool
	}{
		{"meta-llama/*", "meta-llama/Llama-3.1-8B", true},
		{"llama-*", "meta-llama/Llama-3.1-8B", false},
		{"*Llama-*", "meta-llama/Llama-3.1-8B", true},
		{"*", "/models/my model", true},
		{"*", "", true},
		{"*8B", "meta-llama/Llama-3.1-8B", true},
		{"*8B", "meta-llama/Llama-3.1-8B-Instruct", false},
		{"Llama", "llama", false},
		{"gpt-?", "gpt-4", true},
		{"gpt-?", "gpt-", false},
		{"gpt-?", "gpt-44", false},
		{"?", "模", true},
		{"*?模", "模模", true},
		{"a*b*c", "a/b/b/c", true},
		{"a*b*c", "a/c/b", false},
		{"[ab]", "a", false},
	} {
		o := Objective{Models: []string{"never", c.pattern}}
		assert.Equal(t, c.want, o.Matches(c.model), "%s on %s", c.pattern, c.model)
	}
	all := Objective{}
	assert.True(t, all.Matches("anything"))
}

func TestPatternThatMatchesNothingIsWarnedOfOnce(t *testing.T) {
	t.Parallel()
	objectives := []Objective{
		{Name: "all"},
		{Name: "itl", Models: []string{"meta-llama/*", "llama-*", "Llama-*"}},
	}
	minute := int64(time.Minute)
	w := WatchPatterns(objectives)
	assert.Empty(t, w.Warnings(99*minute), "nothing was seen: that is another trouble")
	w.See("meta-llama/Llama-3.1-8B", 100*minute)
	w.See("qwen", 101*minute)
	w.See("qwen", 101*minute)
	assert.Empty(t, w.Warnings(101*minute), "more servers may come")
	assert.Equal(t, []string{
		`objective "itl": the pattern "llama-*" matches none of the models seen: meta-llama/Llama-3.1-8B, qwen; it must match the whole name, and case matters; * also matches /; write for example "meta-llama/Llama-3.1-8B"`,
		`objective "itl": the pattern "Llama-*" matches none of the models seen: meta-llama/Llama-3.1-8B, qwen; it must match the whole name, and case matters; * also matches /; write for example "*Llama-*"`,
	}, w.Warnings(102*minute))
	assert.Empty(t, w.Warnings(103*minute))
	w.See("qwen", 104*minute)
}

func TestPatternThatMatchesALaterModelIsNotWarnedOf(t *testing.T) {
	t.Parallel()
	w := WatchPatterns([]Objective{{Name: "a", Models: []string{"b*"}}})
	for _, model := range strings.Split("c d e f g h i j k l m n o", " ") {
		w.See(model, 1)
	}
	w.See("bert", 2)
	assert.Empty(t, w.Warnings(int64(time.Hour)))
}

func TestWarningNamesABoundedNumberOfModels(t *testing.T) {
	t.Parallel()
	w := WatchPatterns([]Objective{{Name: "a", Models: []string{"x"}}})
	for _, model := range strings.Split("c d e f g h i j k l m n o", " ") {
		w.See(model, 1)
	}
	warnings := w.Warnings(int64(time.Hour))
	require.Len(t, warnings, 1)
	assert.Contains(t, warnings[0], "c, d, e, f, g, h, i, j, k, l and others;")
}
