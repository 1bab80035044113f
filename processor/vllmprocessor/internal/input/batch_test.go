package input

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestALabelHasTheValuesItWasMadeOf(t *testing.T) {
	for _, values := range [][]string{{}, {"a"}, {"", ""}, {"200", "/v1/completions", "POST"}, {"", "b", ""}, {"a", "", "c"}} {
		label := NewLabel(values...)
		for i, want := range values {
			assert.Equal(t, want, label.Value(i), "%q", values)
		}
		assert.Empty(t, label.Value(len(values)), "%q", values)
	}
}

// The key leaves out one attribute, and no two lists of attributes have the same key.
func TestAKeyLeavesOutOneAttribute(t *testing.T) {
	a, b := Attribute{Name: "engine", Value: "0"}, Attribute{Name: "model_name", Value: "m"}
	group := GroupOf([]Attribute{a, b})
	assert.Equal(t, group.Key, KeyWithout([]Attribute{a, b}, "pod"))
	assert.Equal(t, GroupOf([]Attribute{b}).Key, KeyWithout([]Attribute{a, b}, "engine"))
	assert.Equal(t, []Attribute{b}, group.Model())
	assert.NotEqual(t, GroupOf([]Attribute{{Name: "ab", Value: "c"}}).Key, GroupOf([]Attribute{{Name: "a", Value: "bc"}}).Key)
}
