package diagnose

import (
	"cmp"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/signal"
)

const (
	// promptsGrew and longerAnswers are the details of work that has become longer.
	promptsGrew, longerAnswers = "prompts_grew", "longer_outputs"
	// reuseFell is the detail of prompts that are computed more and are not longer.
	reuseFell = "reuse_fell"
	// unknownDetail is the detail of a queue for an unknown limit.
	unknownDetail = "unknown"
)

// details are the reported details of causes. They follow the evidence: an overload that
// begins at the limit of sequences and then fills the KV cache needs another remedy.
type details struct {
	Reported [NumCauses]string `json:",omitzero"`
	// Shown are the causes that have a reported detail, which can be empty.
	Shown [NumCauses]bool `json:",omitzero"`
	// differs is, for each cause, since when the evidence has shown another detail than the
	// reported one; 0 where it does not.
	differs [NumCauses]int64
}

// follow takes what one reading shows of a cause. The first detail of a cause is reported
// at once. Another one replaces it when the reported one has not been shown for the hold,
// so that a signal at the edge of two details does not change it; and at once where the
// reported one says nothing.
func (d *details) follow(c Cause, now string, at, hold int64) (changed bool) {
	was := d.Reported[c]
	switch {
	case !d.Shown[c]:
	case now == was:
		d.differs[c] = 0
		return false
	case was == "", was == unknownDetail, was == notThrottled:
	default:
		if d.differs[c] = cmp.Or(d.differs[c], at); at-d.differs[c] < hold {
			return false
		}
	}
	d.Reported[c], d.Shown[c], d.differs[c] = now, true, 0
	return now != was
}

// forget is for a cause that is not reported any more.
func (d *details) forget(c Cause) { d.Reported[c], d.Shown[c], d.differs[c] = "", false, 0 }

// refine updates the details of the reported causes, and reports whether one of them, and
// whether that of the primary cause, is another one than before. Readings that show no
// harm, as the last ones before its end is reported, say nothing about why there was any.
func (e *engine) refine(raw Condition, at, hold int64) (changed, primary bool) {
	for c := range NumCauses {
		is := e.Reported.Explained && e.Reported.Primary == c
		switch {
		case !is && !e.Reported.Contributing[c] && !e.Reported.Notices[c]:
			e.Details.forget(c)
		case e.Details.Shown[c] && !e.Reported.Notices[c] && !raw.harms():
		case e.Details.follow(c, e.evidentDetail(c), at, hold):
			changed = true
			primary = primary || is
		}
	}
	return changed, primary
}

// detail is the detail of a cause: the reported one, else what the newest reading shows.
func (e *engine) detail(c Cause) string {
	if e.Details.Shown[c] {
		return e.Details.Reported[c]
	}
	return e.evidentDetail(c)
}

// evidentDetail is the detail of a cause that the newest reading shows; empty where it has
// none.
func (e *engine) evidentDetail(c Cause) string {
	if e.described != nil {
		return e.described[c]
	}
	r, b := &e.last, e.baseline
	switch c {
	case DemandExceedsCapacity:
		queued := signal.OrZero(r.Signals[signal.Waiting]) - signal.OrZero(r.Signals[signal.Deferred])
		switch {
		case cacheFull(r):
			return "kv"
		case queued >= 1 && b.Step.Ready() && b.PromptShare(&r.Window) > 0.5, queued >= 1 && !b.Step.Ready() && promptPart(r) > 0.5:
			return "tokens"
		case queued >= 1 && r.Signals[signal.KVUtilization] <= full:
			return "seqs"
		}
		return unknownDetail
	case PrefillHeavy:
		prompt, computed := signal.OrZero(b.Growth(&r.Window, signal.PromptTokens)), signal.OrZero(b.Growth(&r.Window, signal.ComputedTokens))
		switch {
		case prompt >= quiet && prompt >= computed-prompt:
			return promptsGrew
		case computed-prompt >= quiet:
			return reuseFell
		}
		return ""
	case SlowSteps:
		shown := e.excess.now.detail
		if b.Earlier != "" && (shown == "" || shown == notThrottled) {
			return sinceVersion
		}
		return shown
	case RequestsDropped:
		switch {
		case r.overTokens > r.overRequests:
			return "limit_of_tokens"
		case r.overRequests > 0:
			return "limit_of_requests"
		}
	case AdmissionDeferred:
		switch {
		case r.fetching >= r.Signals[signal.Deferred]/2:
			return "kv_fetches"
		case r.fetching < r.Signals[signal.Deferred]/2:
			return "no_kv_fetches"
		}
	case DecodeLoad:
		if signal.OrZero(b.Growth(&r.Window, signal.OutputTokens)) >= signal.OrZero(b.Growth(&r.Window, signal.ArrivalRate)) {
			return longerAnswers
		}
		return "more_sequences"
	}
	return ""
}
