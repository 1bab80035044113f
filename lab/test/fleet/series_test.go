package fleet

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestCountersThatFall(t *testing.T) {
	add := func(samples ...Sample) *Series {
		s := &Series{}
		for _, p := range samples {
			s.Add(p)
		}
		return s
	}
	s := add(Sample{10, 1, 5}, Sample{20, 1, 9}, Sample{30, 1, 12})
	assert.Equal(t, 7.0, s.Increments)
	assert.Zero(t, s.Falls+s.Resets)
	// The sum is what the data model of OpenTelemetry says.
	s = add(Sample{10, 1, 7000}, Sample{20, 1, 100})
	assert.Equal(t, 1, s.Falls)
	assert.Equal(t, 100.0, s.Increments, "a fall is a restart")
	s = add(Sample{10, 1, 100}, Sample{20, 15, 7})
	assert.Equal(t, 7.0, s.Increments, "a restart counts from zero")
	assert.Equal(t, 1, s.Resets)
	assert.Zero(t, add(Sample{10, 1, 100}, Sample{20, 20, 7000}).Increments, "an unknown past is no increase")
	assert.Equal(t, 9.0, add(Sample{10, 1, 5}, Sample{20, 2, 9}).Increments, "another start")
	// Late samples change nothing.
	s = add(Sample{10, 1, 5}, Sample{30, 1, 12}, Sample{20, 1, 9})
	assert.Equal(t, 7.0, s.Increments)
	assert.Zero(t, s.Falls)
	assert.Equal(t, 1, add(Sample{10, 1, 5}, Sample{30, 1, 12}, Sample{20, 1, 13}).Falls)
	assert.Equal(t, 7.0, add(Sample{20, 1, 9}, Sample{30, 1, 12}, Sample{10, 1, 5}).Increments)
	// The same sample again is none, and another value at the same time is wrong.
	assert.Equal(t, 4.0, add(Sample{10, 1, 5}, Sample{20, 1, 9}, Sample{20, 1, 9}).Increments)
	assert.Equal(t, 1, add(Sample{10, 1, 5}, Sample{10, 1, 6}).Falls)
}
