package derive

import (
	"slices"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/window"
)

// generating are the paths whose requests are each one request of the engine, unless a client asks for
// several choices or sends several prompts.
var generating = []string{"/v1/completions", "/v1/chat/completions", "/v1/messages", "/generate", "/inference/v1/generate"}

// cancelled is the number of requests that clients cancelled, as Cancelled counts them. Where nothing counts
// them it is estimated from the requests that got their first token and have neither finished nor are still
// running. Running requests without a token make that too low for a while.
func cancelled(_ *Settings, m *Member) (float64, Reason) {
	gone, _, counted := Cancelled(&m.Long)
	if counted == OK || counted == Pending {
		return perSecond(gone, m.Long.Elapsed, counted)
	}
	n, status := firstTokens(&m.Long)
	done, statusDone := m.Long.Increase(input.RequestSuccess)
	change, statusChange := m.Long.Change(input.Running)
	return perSecond(max(n-done-change, 0), m.Long.Elapsed, unbroken(&m.Long, unmixed(&m.Long, worst(status, statusDone, statusChange))))
}

// Cancelled counts the requests of an engine over the window that ended, and among them those that their clients
// cancelled. The API server counts a request when its answer ends, also where its client left before that, and
// the engine counts only those that it has finished: the difference left. A request with several choices or
// prompts is finished several times, and the front end written in Rust counts who left as finished, so that the
// number can be too low, and is never too high.
//
// It is Missing where the two do not count the same requests: several engines or API servers behind one
// address, no paths, answers of paths whose requests are none or several of the engine, or more finished
// requests than answers.
func Cancelled(v *window.View) (gone, ended float64, reason Reason) {
	finished, status := v.Increase(input.RequestSuccess)
	if reason = unbroken(v, Because(status)); reason != OK {
		return 0, 0, reason
	}
	if v.Shows("api_servers") || v.Shows("data_parallel") || v.Shows("ray") {
		return 0, 0, Missing
	}
	counts := false
	for other := range v.Server() {
		if _, status := other.Total(input.RequestSuccess); status != window.Missing && other.Group() != v.Group() {
			return 0, 0, Missing
		}
		if _, status := other.Total(input.HTTPRequests); status == window.Pending || status == window.Defective {
			return 0, 0, Because(status)
		}
		// A path that is new in the window is left out, because nobody knows how it began.
		for label, n := range other.Increases(input.HTTPRequests) {
			class, handler, method := label.Value(httpStatus), label.Value(httpHandler), label.Value(httpMethod)
			switch {
			case class == "" || class[0] != '2' || slices.Contains(unserved, handler) || method != "" && method != "POST":
			case slices.Contains(generating, handler):
				ended, counts = ended+n, true
			case n > 0:
				return 0, 0, Missing
			}
		}
	}
	if ended -= v.Canaries(); !counts || ended < finished {
		return 0, 0, Missing
	}
	return ended - finished, ended, OK
}
