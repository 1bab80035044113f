package signal

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
)

func TestSignalsAreThoseOfTheCatalogue(t *testing.T) {
	t.Parallel()
	var want, got []string
	for _, s := range catalog.Signals() {
		want = append(want, s.Name)
	}
	for s := range Count {
		got = append(got, s.String())
		named, is := Named(s.String())
		assert.True(t, is)
		assert.Equal(t, s, named)
	}
	assert.ElementsMatch(t, want, got)
	_, is := Named("another")
	assert.False(t, is)
}

func TestWhatIsNotKnownIsNoNumber(t *testing.T) {
	t.Parallel()
	for _, x := range Unknown() {
		assert.False(t, Known(x))
	}
	assert.False(t, Known(math.Inf(1)) || Known(math.Inf(-1)))
	assert.True(t, Known(0))
	assert.InDelta(t, 3, Or(math.NaN(), 3), 0)
	assert.InDelta(t, 2, Or(2, 3), 0)
	assert.InDelta(t, 0, OrZero(math.NaN()), 0)
	assert.InDelta(t, 2, OrZero(2), 0)
}
