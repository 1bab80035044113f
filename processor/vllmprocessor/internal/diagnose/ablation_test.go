package diagnose

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
)

// What is shipped is the whole method.
func TestNothingIsLeftOut(t *testing.T) {
	assert.Empty(t, without)
	for _, p := range parts {
		assert.False(t, ablated(p), p)
	}
}

func TestOnePartIsLeftOut(t *testing.T) {
	saved := leftOut
	t.Cleanup(func() { leftOut = saved })
	for _, left := range parts {
		leftOut = mustPart(string(left))
		for _, p := range parts {
			assert.Equal(t, p == left, ablated(p), "%s without %s", p, left)
		}
	}
}

// An ablation that leaves out nothing would be measured as one that has no effect.
func TestAnUnknownPartPanics(t *testing.T) {
	assert.PanicsWithValue(t,
		`diagnose.without="lindly", which the linker set, is not a part of the method; the parts are ["fixed_point" "conditional_gates" "lindley" "sequential" "objectives_sequential" "slow_reference" "peers" "learning_by_factor" "floor"]`,
		func() { mustPart("lindly") })
	assert.NotPanics(t, func() { mustPart("") })
}

// The names are parts of file names and of flags of the linker.
func TestThePartsHaveSimpleNames(t *testing.T) {
	for _, p := range parts {
		assert.Regexp(t, `^[a-z]+(_[a-z]+)*$`, string(p))
	}
	assert.Len(t, slices.Compact(slices.Sorted(slices.Values(parts))), len(parts))
}
