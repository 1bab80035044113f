package content

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The first step of a runbook on burn rates asks for a short window. The panel that it names
// shows this window; that of 2h has no panel, and the longer ones are closest to it.
func TestAStepOnABurnRateNamesThePanelOfItsWindow(t *testing.T) {
	board, found := BoardByUID("vllm-objectives")
	require.True(t, found)
	seen := 0
	for _, g := range Groups() {
		for i := range g.Alerts {
			a := &g.Alerts[i]
			if !strings.HasPrefix(a.Name, "VLLMBudgetBurn") {
				continue
			}
			seen++
			step := a.Diagnosis[0]
			_, window, _ := strings.Cut(step.Query, ":rate")
			if window == "2h" {
				window = "6h"
			}
			for _, row := range board.Rows {
				for _, p := range row.Panels {
					if p.Title == step.Panel {
						shown := ""
						for _, q := range p.Queries {
							shown += q.Expr
						}
						assert.Regexp(t, `\[`+window+`[:\]]`, shown, "%s: %s", a.Name, p.Title)
					}
				}
			}
		}
	}
	assert.Equal(t, 4, seen)
}
