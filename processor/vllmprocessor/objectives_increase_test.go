package vllmprocessor

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-vllm/otelcol-vllm/internal/test/promstore"
)

// samples are what a Prometheus stores of the sums of objectives.
type samples struct{ promstore.Store }

const between = 15 * time.Second

func timeOf(scrape int) time.Time { return time.Unix(0, 0).Add(time.Duration(scrape) * between) }

// store adds what was reported about a server with a scrape, from 0.
func (s samples) store(server string, scrape int, got emittedObjectives) {
	put := func(series string, value float64) {
		if name, _, _ := strings.Cut(series, "{"); name == "valid" || name == "good" {
			s.Add(timeOf(scrape), value, "__name__", "vllm_slo_"+name+"_total", "instance", server)
		}
	}
	for series, value := range got.values {
		put(series, value)
	}
	for _, series := range got.ended {
		put(series, promstore.Stale)
	}
}

// ask has Prometheus's own engine evaluate an expression at a scrape.
func (s samples) ask(t *testing.T, query string, scrape int) float64 {
	t.Helper()
	return s.Ask(t, query, timeOf(scrape))
}

const (
	allSum = "sum(increase(vllm_slo_valid_total[10m]))"
	badSum = allSum + " - sum(increase(vllm_slo_good_total[10m]))"
)

// A rollout replaces a pod by one whose first requests are slow. What Prometheus adds up
// over both has all of them: the counters of the new pod begin at 0, so that its first
// scrape with requests is an increase.
func TestTheIncreaseOverPodsHasTheFirstRequestsOfANewOne(t *testing.T) {
	p := run(t, within(promise("ttft", firstToken, 2500*time.Millisecond, 0.99)))
	stored := samples{promstore.Store{}}
	before, after := map[string]*engineLog{"0": {born: noon}}, map[string]*engineLog{}
	for scrape := range 41 {
		p.at = noon.Add(time.Duration(scrape) * between)
		if scrape < 20 {
			before["0"].firstTokenTook(p.at.Add(-time.Second), 1, 1, 1, 1)
		}
		switch metrics := body("old:8000", "m", p.at, []string{firstToken}, before); {
		case scrape < 20:
			stored.store("old", scrape, p.take(metrics))
		case scrape == 20:
			markGone(metrics)
			stored.store("old", scrape, p.take(metrics))
		}
		if scrape < 18 {
			continue
		}
		if scrape == 18 {
			after["0"] = &engineLog{born: p.at.Add(-time.Second)}
		}
		seconds := []float64{1, 1, 1, 1}
		if scrape == 19 {
			seconds = slices.Repeat([]float64{9}, 30)
		}
		if scrape > 18 {
			after["0"].firstTokenTook(p.at.Add(-time.Second), seconds...)
		}
		stored.store("new", scrape, p.take(body("new:8000", "m", p.at, []string{firstToken}, after)))
	}
	assert.InDelta(t, 30, stored.ask(t, badSum, 19), 1e-6, "at once")
	assert.InDelta(t, 30, stored.ask(t, badSum, 30), 1e-6, "and after the old pod has gone")
	// The window of ten minutes ends at scrape 40 and begins after scrape 0. The new pod
	// had 30 + 21*4 requests. The old one had 4 at each of the scrapes 1 to 19, and
	// Prometheus extrapolates at both of its ends by half an interval or a whole one.
	assert.InDelta(t, 30+21*4+19*4, stored.ask(t, allSum, 40), 4+2)
	assert.InDelta(t, 30, stored.ask(t, badSum, 40), 1e-6)
}

// The counters begin at 0 again when the collector restarts. Prometheus sees a reset, also
// where the collector has counted more soon after its start than all the time before.
func TestTheIncreaseOverARestartOfTheCollectorIsWhatItHasSeen(t *testing.T) {
	config := within(promise("ttft", firstToken, 2500*time.Millisecond, 0.99))
	stored := samples{promstore.Store{}}
	engines := map[string]*engineLog{"0": {born: noon}}
	p := run(t, config)
	for scrape := range 20 {
		if scrape == 5 {
			p = run(t, config)
		}
		p.at = noon.Add(time.Duration(scrape) * between)
		seconds := []float64{9}
		if scrape == 6 {
			seconds = slices.Repeat([]float64{9}, 50)
		}
		engines["0"].firstTokenTook(p.at.Add(-time.Second), seconds...)
		stored.store("one", scrape, p.take(body("one:8000", "m", p.at, []string{firstToken}, engines)))
	}
	// Scrapes 1 to 4 and 7 to 19 have one each, 6 has 50. That of scrape 5 ended between
	// two collectors.
	assert.InDelta(t, 4+50+13, stored.ask(t, badSum, 19), 1e-6)
}
