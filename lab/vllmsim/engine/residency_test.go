package engine

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestObservationsOfAFollowedBlock(t *testing.T) {
	p := newBlockPool(3)
	p.residency = &residency{share: 1, lives: map[int32]*blockLife{}}
	at := func(now float64, do func()) {
		p.residency.setTime(now)
		do()
	}
	var a, b int32
	at(1, func() { a, b = p.take(), p.take() })
	at(2, func() { p.release([]int32{a}) })
	for _, now := range []float64{3, 4, 6, 9, 13} {
		at(now, func() { p.hold(a); p.release([]int32{a}) })
	}
	assert.Empty(t, p.residency.ended, "to be free is not to be thrown out")
	at(20, func() { require.Equal(t, a, p.take()) })
	at(21, func() { p.release([]int32{b}) })
	at(24, func() { require.Equal(t, b, p.take()) })
	assert.Equal(t, []blockEnd{
		// Of five uses the last four are known, and between them are three gaps.
		{lifetime: 19, idle: 7, gaps: []float64{2, 3, 4}},
		{lifetime: 23, idle: 23},
	}, p.residency.ended)
}

func TestAnEmptiedCacheAndWithheldBlocksAreNotFollowed(t *testing.T) {
	p := newBlockPool(4)
	p.residency = &residency{share: 1, lives: map[int32]*blockLife{}}
	p.release([]int32{p.take()})
	p.reset()
	for range 3 {
		p.take()
	}
	assert.Empty(t, p.residency.ended)
	assert.Len(t, p.residency.lives, 3)

	p = newBlockPool(3)
	p.residency = &residency{share: 1, lives: map[int32]*blockLife{}}
	p.wanted = 1
	p.withhold()
	assert.Empty(t, p.residency.lives)
}

// Following blocks must not change what an engine does.
func TestFollowingChangesNothing(t *testing.T) {
	cfg := bare(Chat(12), func(*Config) {})
	quiet := byID(t, cfg)
	cfg.FollowBlocks = 0.5
	assert.Equal(t, quiet, byID(t, cfg))
}
