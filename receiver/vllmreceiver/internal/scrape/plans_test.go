package scrape

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/exposition"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/normalize"
)

// churn is a body of n counters; with all, every label set is new each time, else
// one in the middle is.
func churn(n, scrape int, all bool) []byte {
	var b strings.Builder
	b.WriteString("# TYPE vllm:prompt_tokens_total counter\n")
	for k := range n {
		life := 0
		if all || k == n/2 {
			life = scrape
		}
		fmt.Fprintf(&b, "vllm:prompt_tokens_total{engine=\"%d-%d\",model_name=\"m\"} %d\n", k, life, 1000+scrape)
	}
	return []byte(b.String())
}

// One target whose layout changes with every scrape keeps the plans of layouts
// that are gone until there are sixteen of them, each as large as the body's
// series are many.
func TestPlansOfLayoutsThatAreGoneAreFreed(t *testing.T) {
	live := func() float64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc) / 1e6
	}
	before := live()
	plans := benchPlans()
	p := newPipeline(exposition.NewMemory(maxRememberedBlocks), plans)
	var first, last float64
	var longest time.Duration
	for i := range 14 {
		body := churn(20000, i, false)
		at := time.Now()
		p.scrape(body)
		longest = max(longest, time.Since(at))
		if i == 3 {
			first = live() - before
		}
	}
	last = live() - before
	t.Logf("%.0f MB live after 4 scrapes, %.0f MB after 14; the longest scrape took %s; %d plans", first, last, longest, len(plans.byKey))
	assert.Less(t, last, 1.5*first, "memory grows with the number of layouts that were, not with those that are")
	runtime.KeepAlive(p)
}

// Every scrape needs its plan, so only the first scrape of a layout makes one.
func TestAPlanIsMadeOnceForALayout(t *testing.T) {
	made := 0
	plans := newPlans(normalize.Options{}, func(*normalize.Plan) { made++ })
	snapshot := exposition.NewReader(exposition.NewMemory(0)).Read([]byte(gauge("1")+"vllm:new_depth 1\n"), exposition.DialectText)
	first := plans.get(snapshot.Layout, "")
	assert.Same(t, first, plans.get(snapshot.Layout, ""))
	assert.Same(t, first, plans.get(snapshot.Layout, "dev"), "an unreadable version has the same class")
	assert.Equal(t, 1, made)
	assert.Less(t, testing.AllocsPerRun(10, func() { plans.get(snapshot.Layout, "") }), 20.0, "it is not made again")
	assert.NotSame(t, first, plans.get(snapshot.Layout, "0.9.1"))
	assert.Equal(t, 2, made)
	runtime.KeepAlive(snapshot)
}
