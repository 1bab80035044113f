package main

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The bar reads a sentence that another command writes.
func TestTheBarOfRealServersReadsTheirPage(t *testing.T) {
	bar := func(seen ...[2]int) Bar { return elsewhere(Beside{Real: seen})[1] }
	assert.Equal(t, "not measured", bar().Verdict())
	assert.Equal(t, "held", bar([2]int{90, 80}, [2]int{99, 99}).Verdict())
	assert.Equal(t, "missed", bar([2]int{99, 99}, [2]int{99, 79}).Verdict())
	assert.Equal(t, "78 %, 81 %; 63 %, 92 %", bar([2]int{78, 81}, [2]int{63, 92}).Seen)
	page, err := os.ReadFile("../../../../" + realFile)
	require.NoError(t, err)
	assert.Len(t, realShares(string(page)), 2, "two intervals")
}
