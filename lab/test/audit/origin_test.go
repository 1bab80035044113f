package audit

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
)

func TestAPageIsComparedWithThoseAroundIt(t *testing.T) {
	page := func(text string) Page {
		return Page{Body: []byte("# TYPE c_total counter\n# TYPE g gauge\n# TYPE h histogram\n" + text), ContentType: "text/plain"}
	}
	before := page("c_total 1\nc_total{a=\"1\"} 2\ng 1\nh_bucket{le=\"+Inf\"} 3\nh_sum 1\ngone 1\n")
	after := page("c_total 3\nc_total{a=\"1\"} 2\ng 2\nh_bucket{le=\"+Inf\"} 5\nh_sum 2\ngone 1\nc_total{a=\"2\"} 1\n")
	found := Bracket(before, page("c_total 2\nc_total{a=\"1\"} 2\ng 1.5\nh_bucket{le=\"+Inf\"} 4\nh_sum 1\nonly 1\nc_total{a=\"2\"} 1\n"), after)
	assert.Equal(t, Bracketed{Equal: 3, Within: 3, Absent: []string{"gone{}"}, Alone: []string{"only{}"}}, found)

	found = Bracket(before, page("c_total 4\ng 3\nh_bucket{le=\"+Inf\"} 2\n"), after)
	assert.Equal(t, []string{
		"c_total{}: the counter is 4, before 1, after 3",
		"g{}: the gauge is 3, before 1, after 2",
		`h_bucket{le="+Inf"}: the counter is 2, before 3, after 5`,
	}, found.Outside)
}

func TestTheOriginsOfTheMetricsOfAPage(t *testing.T) {
	report := Check(Scrape{Body: []byte(page), ContentType: "text/plain; version=0.0.4"}, pointsOfPage())
	of := map[string]Origin{}
	for _, o := range report.Origins {
		of[o.Family] = o
	}
	assert.Equal(t, Origin{
		Family: "vllm:prompt_tokens_total", Type: "counter", Metric: "vllm.prompt_tokens", Unit: "{token}", Kind: catalog.KindSum,
		Known: true, Fates: map[Fate]int{Emitted: 1},
	}, of["vllm:prompt_tokens_total"])
	assert.Equal(t, Origin{
		Family: "vllm:new_thing_seconds_total", Type: "counter", Metric: "vllm.new_thing", Unit: "s", Kind: catalog.KindSum, Fates: map[Fate]int{Emitted: 1},
	}, of["vllm:new_thing_seconds_total"])
	assert.Equal(t, map[Fate]int{Alias: 1}, of["vllm:gpu_cache_usage_perc"].Fates)
	assert.Empty(t, of["vllm:gpu_cache_usage_perc"].Metric)
	for name, o := range of {
		assert.False(t, o.Mistyped(), name)
	}
	counted := of["vllm:prompt_tokens_total"]
	counted.Kind = catalog.KindGauge
	assert.True(t, counted.Mistyped())
}
