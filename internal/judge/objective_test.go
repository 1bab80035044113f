package judge

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
)

// A target may be so close to 1 that nothing is allowed after rounding.
func TestTheEffectOfTheStrictestObjectiveIsFinite(t *testing.T) {
	strict := []objective{{of: interToken, threshold: 0.02, target: 0.9999999999999}}
	h := assess(answered(strict, 100, 0.2, 0.04, 0), answered(strict, 100, 0.2, 0.01, 0), strict)
	assert.Greater(t, h.effect(), 1.0)
	assert.Less(t, h.effect(), math.Inf(1))
	h = assess(answered(strict, 100, 0.2, 0.01, 0), answered(strict, 100, 0.2, 0.04, 0), strict)
	assert.Zero(t, h.effect())
}
