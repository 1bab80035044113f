package judge

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
)

// A server that falls asleep gives up requests that their clients send again: each of them is
// one request, and it counts once.
func TestARequestCountsOnceWhereItsServerFallsAsleep(t *testing.T) {
	cfg := chatServer(3, 8)
	cfg.Workload.Timeout, cfg.Workload.Retries, cfg.Workload.RetryAfter = 90, 2, 2
	cfg.Changes = []engine.Change{{At: 120, Parameter: engine.ParamSleep, Value: 1}, {At: 180, Parameter: engine.ParamSleep, Value: 0}}
	given := map[key]int{}
	again := 0
	w, err := newWorld(cfg, nil, nil, func(s *seen) {
		given[s.key]++
		if s.complete && s.arrived < 120 && s.arrived+s.first > 180 {
			again++
		}
	})
	require.NoError(t, err)
	require.NoError(t, w.advance(300))
	w.close()
	for k, n := range given {
		assert.Equal(t, 1, n, "%v", k)
	}
	assert.Positive(t, again, "requests that were given up, sent again and answered")
}
