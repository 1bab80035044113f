package vllmprocessor

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/component/componenttest"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/archive"
)

// Every way in which servers, and receivers before this processor, name what they drop.
func TestDroppedRequestsAreHarmInEveryDialect(t *testing.T) {
	for name, gauge := range map[string]bool{
		"vllm.num_dropped": true, "vllm:num_dropped": true, "vllm_num_dropped": true, "ray_vllm_num_dropped": true,
		"vllm.num_dropped_counter": false, "vllm:num_dropped_total": false, "ray_vllm:num_dropped": false,
		"vllm.admission_rejections": false, "vllm:admission_rejections_total": false,
	} {
		for _, test := range []struct {
			dropped             float64 // in 15 s, besides 15 that are admitted
			condition, severity float64
			want                string
		}{
			{dropped: 0, severity: 0, want: "healthy"},
			{dropped: 1, severity: 2, want: "degraded"},
			{dropped: 3, severity: 2, want: "degraded"},
			{dropped: 5, severity: 3, want: "failing"},
		} {
			t.Run(fmt.Sprintf("%s/%g", name, test.dropped), func(t *testing.T) {
				p := newInstance(t, createDefaultConfig().(*Config), &archive.Shared{})
				p.begin(componenttest.NewNopHost())
				defer p.end()
				server := steady("one:8000", noon)
				of := map[string]float64{name: 1000}
				if server.counts = of; gauge {
					server.counts, server.levels = nil, of
				}
				p.watch(server, 8*time.Minute)
				var reported map[string]float64
				for range 20 {
					of[name] += test.dropped
					reported = p.diagnoses(server)
				}
				assert.Equal(t, test.severity, reported["severity"])
				assert.Equal(t, 1.0, reported["condition="+test.want], reported)
				if test.dropped > 0 {
					assert.Equal(t, 1.0, reported["cause=requests_dropped"], reported)
				}
				p.watch(server, 5*time.Minute)
				reported = p.diagnoses(server)
				assert.Equal(t, 1.0, reported["condition=healthy"], "it ends: %v", reported)
			})
		}
	}
}

// One server counts what it drops for all engines together.
func TestWhatAServerDropsIsOfAllItsEngines(t *testing.T) {
	p := newInstance(t, createDefaultConfig().(*Config), &archive.Shared{})
	p.begin(componenttest.NewNopHost())
	defer p.end()
	server := steady("one:8000", noon)
	server.engines, server.own = 2, map[string]float64{"vllm.num_dropped": 0}
	p.watch(server, 8*time.Minute)
	var reported map[string]float64
	for range 20 {
		server.own["vllm.num_dropped"] += 5 // of 35
		reported = p.diagnoses(server)
	}
	assert.Equal(t, 1.0, reported["condition=degraded"], "a seventh is not a fifth: %v", reported)
	assert.Equal(t, 1.0, reported["cause=requests_dropped"])
}

// A gauge that counts: a fall without a restart is not an increase, and no restart of the
// engine. Expected values are worked out by hand.
func TestAGaugeThatCounts(t *testing.T) {
	const drops, preempts = "vllm.drop_rate{engine=0,model_name=m}", "vllm.preemption_rate{engine=0,model_name=m}"
	r := newRig(t, "window: 30s")
	heard := r.heard(`
		at 0
		counter vllm.generation_tokens{0} 100
		gauge vllm.num_dropped{0} 4
		gauge vllm.num_preemptions_gauge{0} 10
		at 30
		counter vllm.generation_tokens{0} 200
		gauge vllm.num_dropped{0} 10
		gauge vllm.num_preemptions_gauge{0} 13
		at 60
		counter vllm.generation_tokens{0} 300
		gauge vllm.num_dropped{0} 1
		gauge vllm.num_preemptions_gauge{0} 13
		at 90
		counter vllm.generation_tokens{0} 400
		gauge vllm.num_dropped{0} 7
		gauge vllm.num_preemptions_gauge{0} 13
		at 120
		counter vllm.generation_tokens{0} 30
		gauge vllm.num_dropped{0} 3
		gauge vllm.num_preemptions_gauge{0} 6`)
	for n, want := range map[int]struct{ dropped, preempted, tokens float64 }{
		1: {6, 3, 100}, // increases
		2: {0, 0, 100}, // the gauge fell alone
		3: {6, 0, 100},
		4: {3, 6, 30}, // the process began again, and all its counts with it
	} {
		at := fmt.Sprintf("vllm-0:8000 %ds ", 30*n)
		assert.InDelta(t, want.dropped/30, heard[n][at+drops], 1e-9, n)
		assert.InDelta(t, want.preempted/30, heard[n][at+preempts], 1e-9, n)
		assert.InDelta(t, want.tokens/30, heard[n][at+"vllm.generation_throughput{engine=0,model_name=m}"], 1e-9, n)
	}
}

// Where a server has both, the counter counts, whatever their order.
func TestACounterTwinWinsOverTheGauge(t *testing.T) {
	const gauge, counter = "\ngauge %s{0} %d", "\ncounter %s{0} %d"
	for name, names := range map[string][2]string{
		"canonical": {"vllm.num_preemptions_gauge", "vllm.num_preemptions"},
		"wire":      {"vllm:num_preemptions", "vllm:num_preemptions_total"},
		"ray":       {"ray_vllm_num_preemptions", "ray_vllm_num_preemptions_total"},
	} {
		for _, first := range []bool{true, false} {
			t.Run(fmt.Sprint(name, first), func(t *testing.T) {
				text := ""
				for n := range 3 {
					one, two := fmt.Sprintf(gauge, names[0], 100*n), fmt.Sprintf(counter, names[1], 60*n)
					if !first {
						one, two = two, one
					}
					text += fmt.Sprintf("\nat %d", 60*n) + one + two
				}
				heard := newRig(t, "").heard(text)
				assert.InDelta(t, 1, heard[2]["vllm-0:8000 120s vllm.preemption_rate{engine=0,model_name=m}"], 1e-9)
			})
		}
	}
}
