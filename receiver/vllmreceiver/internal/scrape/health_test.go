package scrape

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// newHealthRig returns a rig with health_check.
func newHealthRig(t *testing.T) *rig {
	t.Helper()
	return newRig(t, func(cfg *Config) { cfg.HealthCheck = true })
}

func ok(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }

// The value of vllm.healthy is 1 for an answer of 200 and 0 for everything else, also
// for no answer: an operator alerts on 0.
func TestHealthyIsOneOnlyWhileHealthAnswers200(t *testing.T) {
	s := newHealthRig(t)
	for _, tt := range []struct {
		name   string
		health http.HandlerFunc
		want   string
	}{
		{"200", ok, "1"},
		{"503, as of an engine that died", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }, "0"},
		{"200 again", ok, "1"},
		{"204", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }, "0"},
		{"404", http.NotFound, "0"},
		{"no answer", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "0"},
		{"200 after no answer", ok, "1"},
	} {
		s.answerHealth(tt.health)
		got := points(s.scrape(gauge("1")), "vllm.healthy")
		require.Len(t, got, 1, tt.name)
		assert.Equal(t, tt.want, got[0][strings.LastIndex(got[0], " ")+1:], tt.name)
	}
}

// A server that answers /health while its metrics fail is up for its clients: both facts
// are reported.
func TestHealthIsReportedWhileTheMetricsFail(t *testing.T) {
	s := newHealthRig(t)
	s.answerHealth(ok)
	assert.Equal(t, []string{"gauge {state} {} @0 1"}, points(s.scrape(gauge("1")), "vllm.healthy"))
	out := s.fail(http.StatusInternalServerError)
	assert.Equal(t, []string{"gauge {state} {} @15 1"}, points(out, "vllm.healthy"))
	assert.Equal(t, []string{"gauge {state} {} @15 0"}, points(out, "vllm.up"))
}

// A target that leaves ends its series, or the backend would show it as healthy for
// minutes.
func TestHealthyEndsWithTheTarget(t *testing.T) {
	s := newHealthRig(t)
	s.answerHealth(ok)
	s.scrape(gauge("1"))
	out := pmetric.NewMetrics()
	s.scraper.emitter.End(s.now, out)
	assert.Equal(t, []string{"gauge {state} {} @15 end"}, points(out, "vllm.healthy"))
	assert.Equal(t, []string{"gauge {state} {} @15 end"}, points(out, "vllm.up"))
	again := pmetric.NewMetrics()
	s.scraper.emitter.End(s.now, again)
	assert.Empty(t, points(again, "vllm.healthy"), "an end is sent once")
}

// Without health_check the server is not asked and nothing is claimed.
func TestHealthIsNotAskedByDefault(t *testing.T) {
	r := newRig(t)
	assert.Empty(t, points(r.scrape(gauge("1")), "vllm.healthy"))
	assert.Zero(t, r.asked["/health"])
	off := false
	r = newRig(t, func(cfg *Config) {
		cfg.HealthCheck, cfg.Metrics = true, map[string]MetricConfig{"vllm.healthy": {Enabled: &off}}
	})
	assert.Empty(t, points(r.scrape(gauge("1")), "vllm.healthy"), "switched off by name")
}
