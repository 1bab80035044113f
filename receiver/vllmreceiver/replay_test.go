package vllmreceiver

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/internal/test/recorded"
)

// sent is the metrics as they are sent, so that no difference can hide in how they are shown.
func sent(t *testing.T, metrics pmetric.Metrics) string {
	t.Helper()
	data, err := (&pmetric.ProtoMarshaler{}).MarshalMetrics(metrics)
	require.NoError(t, err)
	return string(data)
}

// lines are the points without the kind of a failure, which a history does not have.
func lines(metrics pmetric.Metrics) []string {
	return slices.DeleteFunc(slices.Sorted(strings.SplitSeq(render(metrics), "\n")), func(line string) bool {
		return strings.HasPrefix(line, "vllm.scrape.failure ")
	})
}

// The same bodies give the same points to the byte, whether the receiver fetches them or
// they are replayed: through growth, restarts, failures, changed versions and junk.
func TestAReplayEmitsWhatALiveScrapeEmits(t *testing.T) {
	r := newRig(t)
	r.without = true // A history has no Date header.
	replays, err := NewReplays(r.receiver.shared.config, "test")
	require.NoError(t, err)
	replay, err := replays.Target("http://vllm-0:8000", nil)
	require.NoError(t, err)
	t.Cleanup(replay.Close)

	all := recorded.Answers(t, "two engines")
	body := func() string {
		text := all[0].Body
		all = all[1:]
		return text
	}
	points, bytes := 0, 0
	step := func(name, text, version string) {
		t.Helper()
		r.version = version
		at := r.now
		live := r.scrape(text)
		again := replay.Scrape(at, []byte(text), version)
		// The ends of vanished series have no order.
		require.Equal(t, lines(live), lines(again), name)
		if !strings.Contains(render(live), " end\n") {
			require.Equal(t, sent(t, live), sent(t, again), name)
			bytes++
		}
		points += live.DataPointCount()
	}
	first := body()
	step("first", first, "0.20.0")
	for i := range 5 {
		step(fmt.Sprint("later ", i), body(), "0.20.0")
	}
	step("restart", first, "0.21.0")
	step("junk", "<html>", "0.21.0")
	step("empty", "", "0.21.0")
	step("after junk", body(), "0.21.0")
	step("a series less", "vllm:num_requests_running{model_name=\"m\"} 1\n", "0.21.0")
	step("NaN and infinity", "vllm:num_requests_running{model_name=\"m\"} NaN\nvllm:prompt_tokens_total{model_name=\"m\"} +Inf\n", "")
	assert.Greater(t, points, 1000)
	assert.GreaterOrEqual(t, bytes, 6)

	// The reason is not recorded; all else is the same.
	at := r.now
	live, again := r.fail(http.StatusInternalServerError), replay.Fail(at, "")
	assert.Contains(t, render(again), fmt.Sprintf("vllm.up gauge {state} {} @%v 0\n", at.Sub(firstScrape).Seconds()))
	assert.Equal(t, lines(live), lines(again))
	assert.Contains(t, render(replay.Fail(at, "refused")), `outcome="refused"`)
	step("after a failure", body(), "0.21.0")
	at = r.now
	ends := replay.End(at)
	assert.Positive(t, ends.DataPointCount())
	assert.Contains(t, render(ends), " end\n")
}

func TestAReplayNeedsAnAddress(t *testing.T) {
	replays, err := NewReplays(createDefaultConfig().(*Config), "")
	require.NoError(t, err)
	_, err = replays.Target("vllm-0", nil)
	require.ErrorContains(t, err, "endpoint: has no scheme")
}
