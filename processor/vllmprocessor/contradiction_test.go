package vllmprocessor

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Between the two counters of one body a request was counted.
func TestMoreAcceptedThanDraftedIsNoNegativeWaste(t *testing.T) {
	r := newRig(t, "")
	heard := r.heard(`
		at 0
		counter vllm.generation_tokens{0} 0
		counter vllm.spec_decode.num_draft_tokens{0} 0
		counter vllm.spec_decode.num_accepted_tokens{0} 0
		counter vllm.spec_decode.num_drafts{0} 0
		counter vllm.spec_decode.num_accepted_tokens_per_pos{0,position=0} 0
		counter vllm.spec_decode.num_accepted_tokens_per_pos{0,position=1} 0
		at 15
		counter vllm.generation_tokens{0} 20
		counter vllm.spec_decode.num_draft_tokens{0} 6
		counter vllm.spec_decode.num_accepted_tokens{0} 7
		counter vllm.spec_decode.num_drafts{0} 3
		counter vllm.spec_decode.num_accepted_tokens_per_pos{0,position=0} 4
		counter vllm.spec_decode.num_accepted_tokens_per_pos{0,position=1} 3`)
	for key, value := range heard[1] {
		assert.NotContains(t, key, "wasted_tokens_ratio")
		assert.NotContains(t, key, "decode.acceptance_ratio")
		if strings.Contains(key, "position_acceptance_ratio") {
			assert.Contains(t, key, "position=1")
			assert.InDelta(t, 1, value, 1e-9)
		}
	}
}
