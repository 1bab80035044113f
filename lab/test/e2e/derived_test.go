//go:build e2e

package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Every derived series at the endpoint, for each engine and over both, is
// compared with the bodies that the server handed out. No series may be missing, and none
// may be there in addition.
func TestDerivedValuesEqualTheNumbersInTheBodies(t *testing.T) {
	t.Parallel()
	server := serveRecorded(t)
	o := observe(t, server)
	o.more(t, 14)
	o.Stop(t)
	assert.Empty(t, o.Complaints())

	scrapes, values := o.compare(t)
	t.Logf("%d values of %d scrapes compared", values, scrapes)
	assert.GreaterOrEqual(t, scrapes, 8)
	assert.Greater(t, values, 100*(scrapes-1))
	moved := map[string]bool{}
	for _, page := range o.pages {
		for series, value := range page.series {
			moved[metricName(series)] = moved[metricName(series)] || value != 0
		}
	}
	for name, hasMoved := range moved {
		assert.True(t, hasMoved, "%s is always 0 with this load", name)
	}
	assert.Len(t, moved, 35, "34 derived metrics that this server has, and the number of the body")
}

// When the traffic stops, series without a value disappear from the endpoint as soon as
// the window has passed. When the server stops, all do.
func TestDerivedSeriesEndWithTheTrafficAndWithTheServer(t *testing.T) {
	t.Parallel()
	server := serveRecorded(t)
	o := observe(t, server)
	o.more(t, 7)
	busy := o.derivedNow(t)
	server.idle()
	// The window has to pass, and one more scrape must be read completely.
	o.more(t, 8)
	quiet := o.derivedNow(t)
	scrapes, _ := o.compare(t)
	assert.GreaterOrEqual(t, scrapes, 8)

	for _, ending := range []string{
		"vllm_prefix_cache_hit_ratio", "vllm_time_to_first_token_mean_seconds", "vllm_time_to_first_token_quantile_seconds",
		"vllm_request_queue_wait_estimate_seconds", "vllm_http_error_ratio",
	} {
		assert.NotZero(t, busy[ending], "%s with traffic", ending)
		assert.Zero(t, quiet[ending], "%s without", ending)
	}
	for _, staying := range []string{
		"vllm_prompt_throughput_per_second", "vllm_generation_throughput_per_second", "vllm_request_throughput_per_second",
		"vllm_first_token_rate_per_second", "vllm_arrival_rate_per_second",
	} {
		assert.Equal(t, 2, quiet[staying], "%s for each engine", staying)
		for _, engine := range []string{"0", "1"} {
			series := labels.FromStrings(model.MetricNameLabel, staying, "engine", engine, "model_name", derivedModel).String()
			assert.Zero(t, parsePage(t, o.page, bare)[series], series)
		}
	}

	server.http.CloseClientConnections()
	server.http.Close()
	o.until(t, "the report that the server is gone", func() bool {
		return strings.Contains(string(o.page), "\nvllm_up{") && o.up(t) == 0
	})
	changed := time.Now()
	o.until(t, "the end of all derived series", func() bool { return len(o.derivedNow(t)) == 0 })
	assert.Less(t, time.Since(changed), 5*time.Second, "a few scrapes, not the five minutes of the exporter")
	o.Stop(t)
	assert.Empty(t, o.Errors())
}

// A new collector counts from its first scrape, not from the server's start. So its first
// batch has no value that needs an earlier one.
func TestARestartedCollectorEmitsNothingAboutTheTimeBefore(t *testing.T) {
	t.Parallel()
	server := serveRecorded(t)
	first := observe(t, server)
	first.more(t, 6)
	first.Kill(t)
	before := len(server.handedOut())

	second := observe(t, server)
	second.more(t, 7)
	second.Stop(t)
	assert.Empty(t, second.Complaints())
	all := second.scraped(t)
	require.GreaterOrEqual(t, all[0].number, before)
	for series := range second.pages[all[0].at/1e6].series {
		assert.Contains(t, []string{numberingOnPage, "vllm_kv_cache_free"}, metricName(series), "the first scrape is the baseline only")
	}
	scrapes, values := second.compare(t)
	t.Logf("%d values of %d scrapes compared", values, scrapes)
	assert.GreaterOrEqual(t, scrapes, 4)
}

// A restart of the server loses nothing: its counts before the restart are in the
// window, and its counts after it begin at 0.
func TestARestartedServerLosesNothingOfTheWindow(t *testing.T) {
	t.Parallel()
	server := serveRecorded(t)
	o := observe(t, server)
	o.more(t, 6)
	server.restart(t)
	o.more(t, 7)
	o.Stop(t)
	assert.Empty(t, o.Errors())

	scrapes, values := o.compare(t)
	t.Logf("%d values of %d scrapes compared", values, scrapes)
	assert.GreaterOrEqual(t, scrapes, 8)
}
