package derive

import (
	"math"
	"slices"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/window"
)

// unserved are the paths of requests that are not for inference.
var unserved = []string{
	"/metrics", "/health", "/ping", "/load", "/version", "/server_info", "/v1/models", "/docs", "/openapi.json",
	"/tokenize", "/detokenize",
}

// errorClasses are the status classes of errors.
var errorClasses = []string{"4xx", "5xx"}

func httpErrors(m *Member, to []entry) (all []entry, rest Parts, reason Reason) {
	a, reason := httpAnswers(&m.Now)
	if reason != OK {
		return to, noParts, reason
	}
	for i, class := range errorClasses {
		parts := Parts{Numerator: a.errors[i], Denominator: a.all}
		parts.withhold(a.unclear > 0)
		to = append(to, entry{Extra{class}, parts})
	}
	return to, noParts, OK
}

// These are the places of the own attributes of input.HTTPRequests.
const (
	httpStatus = iota
	httpHandler
	httpMethod
)

// HTTPErrors counts the requests for inference that a server answered over the
// window, and among them those with a status of 4xx and of 5xx. Those with 5xx are only the
// ones that are certainly errors of the server.
func HTTPErrors(v *window.View) (all float64, errors [2]float64, reason Reason) {
	a, reason := httpAnswers(v)
	return a.all, a.errors, reason
}

// NoneServed reports whether a server answered requests for inference over the window with
// 5xx only, while its engines got none. The requests or the server may be at fault, but no
// client was served.
func NoneServed(v *window.View) bool {
	a, reason := httpAnswers(v)
	if reason != OK || a.unclear <= 0 || a.unclear < a.all {
		return false
	}
	counts := false
	for e := range v.Server() {
		known, did := progressOf(e)
		if counts = counts || known; did > 0 {
			return false
		}
	}
	return counts
}

// answers are the requests for inference that a server answered.
type answers struct {
	all    float64
	errors [2]float64
	// unclear are those recorded as 5xx whose clients may have got a 4xx.
	unclear float64
}

func httpAnswers(v *window.View) (a answers, reason Reason) {
	if _, status := v.Increase(input.HTTPRequests); status != window.Present {
		return a, Because(status)
	}
	for label, n := range v.Increases(input.HTTPRequests) {
		status, handler := label.Value(httpStatus), label.Value(httpHandler)
		if slices.Contains(unserved, handler) || status == "" {
			continue
		}
		a.all += n
		for i, class := range errorClasses {
			if status[0] == class[0] {
				a.errors[i] += n
			}
		}
	}
	a.all = max(a.all-v.Canaries(), a.errors[0]+a.errors[1]) // Each was answered with 2xx.
	if recorded := a.errors[1]; recorded > 0 && v.Affected(catalog.DefectClientErrorsAsServerErrors) {
		a.errors[1] = min(recorded, explained(v))
		a.unclear = recorded - a.errors[1]
	}
	return a, OK
}

// explained returns how many answers of 5xx the server's engines explain: as many as there
// are requests that ended with an error. All are explained where an engine restarted or
// stands still, or the server says that it is not healthy.
func explained(v *window.View) (n float64) {
	all := math.Inf(1)
	progress, requests, counts, frozen := 0.0, 0.0, false, false
	for e := range v.Server() {
		if healthy, status := e.Gauge(input.Healthy); e.RestartedWithin() || status == window.Present && healthy == 0 {
			return all
		}
		if failed, status := e.IncreaseOf(input.RequestSuccess, "error"); status == window.Present {
			n += failed
		}
		known, did := progressOf(e)
		running, _ := e.Gauge(input.Running)
		waiting, _ := e.Gauge(input.Waiting)
		counts, progress, requests = counts || known, progress+did, requests+running+waiting
		frozen = frozen || Frozen(e)
	}
	if counts && progress == 0 && requests > 0 && !frozen {
		return all
	}
	return n
}
