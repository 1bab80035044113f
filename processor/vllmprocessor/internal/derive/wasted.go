package derive

import (
	"math"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/window"
)

// rejectedDrafts is the reason of drafted tokens that were rejected. It has no bound.
var rejectedDrafts = Extra{"rejected_drafts"}

func wasted(m *Member, to []entry) (all []entry, rest Parts, reason Reason) {
	drafted, status := m.Now.Increase(input.DraftTokens)
	accepted, statusToo := m.Now.Increase(input.AcceptedTokens)
	generated, statusAll := m.Now.Increase(input.GenerationTokens)
	drafts := worst(status, statusToo, statusAll)
	prompts, lower, upper, abandoned := abandonedPrompts(m)
	if drafts == Pending || abandoned == Pending {
		return to, noParts, Pending
	}
	abandoned = unbroken(&m.Long, unmixed(&m.Long, abandoned))
	if m.Now.AffectedV0(catalog.DefectMultiStepMiscounts) {
		drafts, abandoned = defective(drafts), defective(abandoned)
	}
	if drafts == OK || drafts == KnownDefect {
		if accepted > drafted {
			drafts = Contradiction
		}
		to = append(to, entry{rejectedDrafts, Parts{Numerator: drafted - accepted, Denominator: drafted + generated, Reason: drafts}})
	}
	to = append(to,
		entry{Extra{"abandoned_prefill", "lower"}, Parts{lower, prompts, abandoned, true}},
		entry{Extra{"abandoned_prefill", "upper"}, Parts{upper, prompts, abandoned, true}},
	)
	return to, noParts, OK
}

// abandonedPrompts returns the prompt tokens that no finished or running request accounts
// for, as a lower and an upper bound. A prompt is counted when its prefill ends, and
// again when its request finishes. So the difference is the abandoned tokens, plus the
// tokens of the requests that run now, minus those of the requests that ran when the
// window began. No running request is assumed to have more tokens than the bound of the
// highest bucket of finished prompts.
func abandonedPrompts(m *Member) (prompts, lower, upper float64, reason Reason) {
	prompts, status := m.Long.Increase(input.PromptTokens)
	_, done, hasSum, statusDone := m.Long.Moments(input.RequestPromptTokens)
	now, statusNow := m.Long.Gauge(input.Running)
	change, statusChange := m.Long.Change(input.Running)
	if status == window.Present && statusDone == window.Missing {
		// No request has ever finished.
		done, hasSum, statusDone = 0, true, window.Present
	}
	if reason = worst(status, statusDone, statusNow, statusChange); reason != OK {
		return 0, 0, 0, reason
	}
	if !hasSum {
		return 0, 0, 0, Missing
	}
	before := now - change
	held := 0.0
	if now > 0 || before > 0 {
		longest, known := longestPrompt(&m.Long)
		if !known {
			return 0, 0, 0, Missing
		}
		held = longest
	}
	lower = math.Min(math.Max(prompts-done-now*held, 0), prompts)
	upper = math.Min(math.Max(prompts-done+before*held, 0), prompts)
	return prompts, lower, upper, OK
}

// longestPrompt returns the upper bound of the highest bucket of finished prompts. vLLM's
// bounds are 1, 2 and 5 times the powers of ten up to the longest prompt that the server
// accepts (build_1_2_5_buckets of its metrics). So a prompt in the open bucket is shorter
// than the next of these numbers.
func longestPrompt(v *window.View) (float64, bool) {
	bound, open, known := v.Highest(input.RequestPromptTokens)
	if !known || !open {
		return bound, known
	}
	power := math.Pow(10, math.Floor(math.Log10(bound)))
	switch bound {
	case power:
		return 2 * power, true
	case 2 * power:
		return 5 * power, true
	case 5 * power:
		return 10 * power, true
	}
	return 0, false
}
