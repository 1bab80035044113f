package main

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The README shows a part of what "make run" prints.
func TestTheReadmeShowsWhatIsPrinted(t *testing.T) {
	readme, err := os.ReadFile("../../../README.md")
	require.NoError(t, err)
	_, shown, found := strings.Cut(string(readme), "```\n"+head[1:])
	require.True(t, found, "the README has the head of the table")
	shown, _, _ = strings.Cut(shown, "```")

	slow := verdictOf("degraded", slowMemory.cause)
	w := slow.Words()
	next := w.Next[:mostSteps]
	words := strings.Join(strings.Fields(shown), " ")
	assert.Contains(t, words, "now "+slow.String()+" found: "+w.Sentence+" why: ")
	assert.Contains(t, words, "next: "+strings.Join(next, " ")+" read: "+w.Runbook)
}
