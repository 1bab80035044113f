package diagnose

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/signal"
)

// A request that is refused reaches no engine: the server counts it, by the limit that refuses it.
func TestTheLimitThatRefusesIsTheDetail(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		requests, tokens float64 // that each limit refuses in 15 s, besides 15 that are admitted
		want             string
	}{
		"too many requests":       {2, 0, "limit_of_requests"},
		"too long prompts":        {0, 2, "limit_of_tokens"},
		"both, requests the more": {2, 1, "limit_of_requests"},
		"both, prompts the more":  {1, 2, "limit_of_tokens"},
	} {
		r := newRig(t)
		r.version = "0.32.0"
		front := func(requests, tokens float64) scraped {
			s := answers(1)
			s.labelledCounts = map[input.Metric]map[string]float64{
				input.Dropped: {"max_num_queued_reqs": requests, "max_num_queued_tokens": tokens},
			}
			return s
		}
		r.minutes(12, front(0, 0), serves("0"))
		r.minutes(3, front(test.requests, test.tokens), serves("0"))
		e := r.engine("0")
		require.Equal(t, RequestsDropped, e.Reported.Primary, name)
		assert.Equal(t, test.want, e.detail(RequestsDropped), name)
		// 60 are admitted in a minute.
		refused := 4 * (test.requests + test.tokens)
		assert.InDelta(t, refused/(60+refused), e.last.Signals[signal.DroppedRatio], 1e-9, "%s: a request counts once", name)
	}
}

// Deferred requests that wait for KV are loading it, or have it and wait for their turn.
func TestDeferredRequestsWaitForKVOrForSomethingElse(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		version string
		stages  map[string]float64
		signs   input.Sign
		want    string
	}{
		"most load":        {"0.32.0", map[string]float64{"waiting_to_start": 0, "in_progress": 3, "completed_waiting": 0}, input.Connector, "kv_fetches"},
		"half have loaded": {"0.32.0", map[string]float64{"waiting_to_start": 0, "in_progress": 1, "completed_waiting": 1}, input.Connector, "kv_fetches"},
		"what waits for capacity is not deferred": {"0.32.0", map[string]float64{"waiting_to_start": 9, "in_progress": 1, "completed_waiting": 0}, input.Connector, "no_kv_fetches"},
		"no connector":                               {"0.32.0", nil, 0, "no_kv_fetches"},
		"a connector that does not say":              {"0.32.0", nil, input.Connector, ""},
		"a version that does not count":              {"0.31.0", nil, 0, ""},
		"a version that is not known, and no family": {"", nil, 0, ""},
	} {
		r := newRig(t)
		r.version, r.signs = test.version, test.signs
		s := serves("0")
		s.gauges[input.Waiting] = 4
		s.labelled[input.WaitingByReason] = map[string]float64{"capacity": 0, "deferred": 4}
		if test.stages != nil {
			s.labelled[input.KVFetches] = test.stages
		}
		r.minutes(2, answers(1), s)
		assert.Equal(t, test.want, r.engine("0").evidentDetail(AdmissionDeferred), name)
	}
}
