package scrape

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/emit"
)

func TestAFailedScrapeReportsTheKindOfFailure(t *testing.T) {
	r := newRig(t)
	const body = "vllm:num_requests_running 1\n"
	assert.Empty(t, points(r.scrape(body), "vllm.scrape.failure"))
	assert.Equal(t, []string{`gauge {state} {outcome="unauthorized"} @15 1`},
		points(r.fail(http.StatusUnauthorized), "vllm.scrape.failure"))
	assert.Equal(t, []string{`gauge {state} {outcome="unauthorized"} @30 1`},
		points(r.fail(http.StatusUnauthorized), "vllm.scrape.failure"))
	assert.Equal(t, []string{`gauge {state} {outcome="unauthorized"} @45 end`, `gauge {state} {outcome="not_found"} @45 1`},
		points(r.fail(http.StatusNotFound), "vllm.scrape.failure"), "another failure ends the former")
	assert.Equal(t, []string{`gauge {state} {outcome="not_found"} @60 end`},
		points(r.scrape(body), "vllm.scrape.failure"), "a success ends it")
	assert.Empty(t, points(r.scrape(body), "vllm.scrape.failure"), "and once is enough")
}

func TestAMetricOfTheFailureCanBeSwitchedOff(t *testing.T) {
	off := false
	r := newRig(t, func(c *Config) {
		c.Metrics = map[string]MetricConfig{"vllm.scrape.failure": {Enabled: &off}}
	})
	assert.Empty(t, points(r.fail(http.StatusNotFound), "vllm.scrape.failure"))
}

func TestWhatKubernetesReportsAboutThePodIsInEveryScrape(t *testing.T) {
	r := newRig(t)
	const body = "vllm:num_requests_running 1\n"
	out := r.scrape(body)
	assert.Empty(t, points(out, "vllm.pod.ready"), "not a pod")
	assert.Empty(t, points(out, "vllm.pod.terminating"), "not a pod")
	r.scraper.pod.Store(&emit.Pod{Ready: true})
	out = r.scrape(body)
	assert.Equal(t, []string{`gauge {state} {} @15 1`}, points(out, "vllm.pod.ready"))
	assert.Equal(t, []string{`gauge {state} {} @15 0`}, points(out, "vllm.pod.terminating"))
	r.scraper.pod.Store(&emit.Pod{Terminating: true})
	out = r.fail(http.StatusInternalServerError)
	assert.Equal(t, []string{`gauge {state} {} @30 0`}, points(out, "vllm.pod.ready"))
	assert.Equal(t, []string{`gauge {state} {} @30 1`}, points(out, "vllm.pod.terminating"))
	assert.Equal(t, []string{`gauge {state} {} @30 0`}, points(out, "vllm.up"))
}
