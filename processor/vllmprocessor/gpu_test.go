package vllmprocessor

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// slows makes the steps of a server 2.5 times as long.
func slows(w *world) { w.server.gap = 0.05 }

// What a GPU does from the start of an excess on is its detail, where it can explain half of it.
func TestTheDetailIsWhatTheGPUShows(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		from func(*simulatedGPU)
		want string
	}{
		"power":                           {func(g *simulatedGPU) { g.power, g.clock = 0.8, 1000 }, "power_cap"},
		"heat":                            {func(g *simulatedGPU) { g.heat, g.clock = 0.8, 1000 }, "thermal"},
		"more heat than power":            {func(g *simulatedGPU) { g.heat, g.power = 0.8, 0.7 }, "thermal"},
		"heat, by its reasons alone":      {func(g *simulatedGPU) { g.heat = 0.8 }, "thermal"},
		"an error of the memory":          {func(g *simulatedGPU) { g.errors++ }, "memory_error"},
		"a code of the memory":            {func(g *simulatedGPU) { g.code = 94 }, "memory_error"},
		"replays of NVLink":               {func(g *simulatedGPU) { g.replays += 3 }, "interconnect"},
		"a low clock":                     {func(g *simulatedGPU) { g.clock = 900 }, "clocks_low"},
		"a clock that is a little lower":  {func(g *simulatedGPU) { g.clock = 1800 }, "not_throttled"},
		"a low clock of a GPU that idles": {func(g *simulatedGPU) { g.clock, g.busy = 300, 0.01 }, "not_throttled"},
		"heat that cannot explain it":     {func(g *simulatedGPU) { g.heat = 0.09 }, "-"},
		"a code of another kind":          {func(g *simulatedGPU) { g.code = 13 }, "not_throttled"},
		"nothing":                         {func(*simulatedGPU) {}, "not_throttled"},
		"nothing, and no counters":        {func(*simulatedGPU) {}, "-"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGPU("GPU-1")
			w := newWorld(run(t, createDefaultConfig().(*Config)), g)
			if strings.Contains(name, "alone") || strings.Contains(name, "no counters") {
				g.without = []string{"vllm.accelerator.throttle.time"}
			}
			assert.Empty(t, w.pass(30*time.Minute))
			slows(w)
			test.from(g)
			assert.Equal(t, []string{test.want}, w.pass(8*time.Minute))
		})
	}
}

// Where the GPU did the same before, and where it begins long after, it is not the reason.
func TestEvidenceMustComeWithTheExcess(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		before, after func(*simulatedGPU)
		want          string
	}{
		"power limits as before":       {func(g *simulatedGPU) { g.power = 0.8 }, func(*simulatedGPU) {}, "-"},
		"heat limits a little more":    {func(g *simulatedGPU) { g.heat = 0.5 }, func(g *simulatedGPU) { g.heat = 0.85 }, "-"},
		"heat limits far more":         {func(g *simulatedGPU) { g.heat = 0.2 }, func(g *simulatedGPU) { g.heat = 0.85 }, "thermal"},
		"the clock was as low":         {func(g *simulatedGPU) { g.clock = 900 }, func(*simulatedGPU) {}, "not_throttled"},
		"errors of a time long before": {func(g *simulatedGPU) { g.errors, g.replays, g.code = 50, 50, 48 }, func(*simulatedGPU) {}, "not_throttled"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGPU("GPU-1")
			test.before(g)
			w := newWorld(run(t, createDefaultConfig().(*Config)), g)
			w.pass(30 * time.Minute)
			slows(w)
			test.after(g)
			assert.Equal(t, []string{test.want}, w.pass(8*time.Minute))
		})
	}
	g := newGPU("GPU-1")
	w := newWorld(run(t, createDefaultConfig().(*Config)), g)
	w.pass(30 * time.Minute)
	slows(w)
	require.Equal(t, []string{"not_throttled"}, w.pass(12*time.Minute))
	g.heat = 0.9
	assert.Equal(t, []string{"-"}, w.pass(5*time.Minute), "what began without it has another reason, but heat is not ruled out any more")
}

// The line of the log says which GPU it is, and by how much.
func TestTheLogNamesTheGPU(t *testing.T) {
	t.Parallel()
	g := newGPU("GPU-1")
	w := newWorld(run(t, createDefaultConfig().(*Config)), newGPU("GPU-0"), g)
	w.pass(30 * time.Minute)
	slows(w)
	g.heat = 0.8
	w.pass(8 * time.Minute)
	var messages []string
	for _, line := range w.changes() {
		if line.ContextMap()["detail"] == "thermal" {
			messages = append(messages, line.Message)
		}
	}
	require.NotEmpty(t, messages)
	assert.Contains(t, messages[len(messages)-1], "Heat holds the clock of a GPU down. On gpu0 (GPU-1) that was so for")
	assert.Contains(t, messages[len(messages)-1], "before it for 0 %.")
}

// Readings that arrive two scrapes late, and those of a clock that is 20 s off, serve as well.
func TestLateAndSkewedReadings(t *testing.T) {
	t.Parallel()
	for name, adjust := range map[string]func(*world){
		"late":       func(w *world) { w.late = 2 },
		"clock fast": func(w *world) { w.exporter.skew = 20 * time.Second },
		"clock slow": func(w *world) { w.exporter.skew = -20 * time.Second },
	} {
		g := newGPU("GPU-1")
		w := newWorld(run(t, createDefaultConfig().(*Config)), g)
		adjust(w)
		w.pass(30 * time.Minute)
		slows(w)
		g.heat = 0.9
		assert.Equal(t, []string{"thermal"}, w.pass(10*time.Minute), name)
	}
}

// An exporter that stops in the midst of an excess rules nothing out, and neither does one whose
// counters begin again or one that shows another GPU from then on.
func TestWhatIsNotSeenIsNotRuledOut(t *testing.T) {
	t.Parallel()
	for name, then := range map[string]func(*world, *simulatedGPU){
		"it stops":        func(w *world, _ *simulatedGPU) { w.off = true },
		"counters reset":  func(_ *world, g *simulatedGPU) { g.limitedByHeat, g.limitedByPower, g.joules = 0, 0, 0 },
		"another GPU":     func(_ *world, g *simulatedGPU) { g.id = "GPU-2" },
		"a GPU is shared": func(_ *world, g *simulatedGPU) { g.sharing = "shared" },
		"a partition":     func(_ *world, g *simulatedGPU) { g.sharing = "partition" },
	} {
		g := newGPU("GPU-1")
		w := newWorld(run(t, createDefaultConfig().(*Config)), g)
		w.pass(30 * time.Minute)
		slows(w)
		require.Equal(t, []string{"not_throttled"}, w.pass(5*time.Minute), name)
		then(w, g)
		assert.Equal(t, []string{"-"}, w.pass(3*time.Minute), name)
	}
}

// The GPUs use 500 and 300 W and 100 tokens are generated in a second: 8 J for each.
func TestWhatTheGPUsOfAnEngineUse(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		adjust func(a, b *simulatedGPU)
		source string
	}{
		"by the counter": {func(*simulatedGPU, *simulatedGPU) {}, "counter"},
		"by the power":   {func(_, b *simulatedGPU) { b.without = []string{"hw.energy"} }, "power"},
	} {
		a, b := newGPU("GPU-1"), newGPU("GPU-2")
		b.watts, b.busy = 300, 0.5
		test.adjust(a, b)
		w := newWorld(run(t, createDefaultConfig().(*Config)), a, b)
		w.pass(5 * time.Minute)
		got := pointsByName(w.newest)
		for metric, want := range map[string]float64{
			"vllm.gpu.utilization": 0.7, "vllm.gpu.memory_usage": 140 << 30, "vllm.gpu.power": 800, "vllm.energy_per_generated_token": 8,
		} {
			require.Len(t, got[metric], 1, "%s %s", name, metric)
			assert.InDelta(t, want, got[metric][0].DoubleValue(), 1e-6*want, "%s %s", name, metric)
			engine, _ := got[metric][0].Attributes().Get("engine")
			assert.Equal(t, "0", engine.AsString())
		}
		source, _ := got["vllm.energy_per_generated_token"][0].Attributes().Get("energy_source")
		assert.Equal(t, test.source, source.AsString(), name)
	}
}

// Four engines of a pod share its GPUs: one value for all of them, and the evidence for each.
func TestTheEnginesOfAPodShareItsGPUs(t *testing.T) {
	t.Parallel()
	g := newGPU("GPU-1")
	w := newWorld(run(t, createDefaultConfig().(*Config)), g)
	w.server.engines = 4
	w.pass(30 * time.Minute)
	got := pointsByName(w.newest)["vllm.energy_per_generated_token"]
	require.Len(t, got, 1)
	assert.InDelta(t, 500.0/400, got[0].DoubleValue(), 1e-9)
	_, named := got[0].Attributes().Get("engine")
	assert.False(t, named)
	slows(w)
	g.power = 0.9
	assert.Equal(t, []string{"power_cap", "power_cap", "power_cap", "power_cap"}, w.pass(8*time.Minute))
	lines := w.changes()
	assert.Contains(t, lines[len(lines)-1].Message, "The GPUs are those of the pod, which has 4 engines.")
}

// Nothing is derived of GPUs that may be those of others.
func TestNothingIsDerivedOfAmbiguousGPUs(t *testing.T) {
	t.Parallel()
	a, b := newGPU("GPU-1"), newGPU("GPU-2")
	b.sharing = "partition"
	w := newWorld(run(t, createDefaultConfig().(*Config)), a, b)
	w.pass(5 * time.Minute)
	got := pointsByName(w.newest)
	assert.NotContains(t, got, "vllm.energy_per_generated_token")
	assert.NotContains(t, got, "vllm.gpu.power")
	assert.Equal(t, 1, w.logs.FilterMessageSnippet("several workloads share a GPU").Len(), "once")
}

// A GPU that is certainly the engine's is evidence, also beside one that is not; but it rules nothing
// out for that.
func TestAnAmbiguousGPUBesideAnother(t *testing.T) {
	t.Parallel()
	for heat, want := range map[float64]string{0.9: "thermal", 0: "-"} {
		sure, shared := newGPU("GPU-1"), newGPU("GPU-2")
		shared.sharing = "shared"
		w := newWorld(run(t, createDefaultConfig().(*Config)), sure, shared)
		w.pass(30 * time.Minute)
		slows(w)
		sure.heat = heat
		assert.Equal(t, []string{want}, w.pass(8*time.Minute))
	}
}

// An engine that appears with the tokens of a day has not generated them within the window: until
// both are known over a window there is no value, and then it is 500 W by 200 tokens in a second.
func TestTheTokensOfANewEngineAreNotThoseOfNow(t *testing.T) {
	t.Parallel()
	w := newWorld(run(t, createDefaultConfig().(*Config)), newGPU("GPU-1"))
	w.pass(30 * time.Minute)
	w.server.engines = 2
	for range 20 {
		w.pass(w.server.interval())
		for _, p := range pointsByName(w.newest)["vllm.energy_per_generated_token"] {
			assert.InDelta(t, 2.5, p.DoubleValue(), 1e-9)
		}
	}
	assert.Len(t, pointsByName(w.newest)["vllm.energy_per_generated_token"], 1)
}

// With a short window harm is reported within a minute. Readings that end 15 s after its start are
// near enough to be no gap, but they do not show what the GPU did in the rest of it.
func TestTheBeginOfAnExcessRulesNothingOut(t *testing.T) {
	t.Parallel()
	for off, want := range map[bool]string{false: "not_throttled", true: "-"} {
		config := createDefaultConfig().(*Config)
		config.Window = 20 * time.Second
		w := newWorld(run(t, config), newGPU("GPU-1"))
		w.pass(30 * time.Minute)
		slows(w)
		w.pass(15 * time.Second)
		w.off = off
		var all []string
		for range 8 {
			for _, detail := range w.pass(15 * time.Second) {
				all = append(all, detail)
				assert.Equal(t, want, detail)
			}
		}
		assert.NotEmpty(t, all)
	}
}

// The warning about a clock names the GPUs that have it, and not others of the same request.
func TestTheWarningNamesTheGPUsWhoseClockIsAhead(t *testing.T) {
	t.Parallel()
	w := newWorld(run(t, createDefaultConfig().(*Config)), newGPU("GPU-1"))
	w.pass(time.Minute)
	for _, skew := range []time.Duration{-time.Second, time.Hour} {
		w.exporter.instance, w.exporter.skew = skew.String(), skew
		w.exporter.scrape(w.at).ResourceMetrics().MoveAndAppendTo(w.newest.ResourceMetrics())
	}
	w.send(w.newest)
	lines := w.logs.FilterMessageSnippet("ahead of this machine's clock").All()
	require.Len(t, lines, 1)
	assert.Equal(t, "1h0m0s", lines[0].ContextMap()["service.instance.id"])
}

// A pod that is replaced under the same name, without a UID, has another GPU. What that one does has
// nothing before to compare it with, so that it is not a detail, and nothing is ruled out.
func TestAnotherGPUUnderTheSameNameIsNotCompared(t *testing.T) {
	t.Parallel()
	g := newGPU("GPU-1")
	w := newWorld(run(t, createDefaultConfig().(*Config)), g)
	w.owner = []string{"k8s.namespace.name", "chat", "k8s.pod.name", "vllm-0"}
	w.exporter.pods = map[string][]*simulatedGPU{"chat/vllm-0": {g}, "other/vllm-0": {newGPU("GPU-9")}}
	w.pass(30 * time.Minute)
	slows(w)
	hot := newGPU("GPU-2")
	hot.heat, hot.clock = 0.9, 900
	w.exporter.pods["chat/vllm-0"] = []*simulatedGPU{hot}
	assert.Equal(t, []string{"-"}, w.pass(8*time.Minute))
	assert.InDelta(t, 500, pointsByName(w.newest)["vllm.gpu.power"][0].DoubleValue(), 1e-9, "neither that of the old GPU nor of the other namespace")
}

// The name of a GPU is what an exporter, or a sender, says. It stands in the sentence, which the
// collector's own log writes as it is.
func TestTheNameOfAGPUForgesNoLogLine(t *testing.T) {
	t.Parallel()
	g := newGPU("GPU-1\n2026-01-01T00:00:00.000Z\tinfo\tforged\x1b[2J\u2028")
	w := newWorld(run(t, createDefaultConfig().(*Config)), g)
	w.pass(30 * time.Minute)
	slows(w)
	g.heat = 0.8
	w.pass(8 * time.Minute)
	named := 0
	for _, line := range w.changes() {
		assert.NotContains(t, line.Message, "\n")
		assert.NotContains(t, line.Message, "\x1b")
		assert.NotContains(t, line.Message, "\u2028")
		if strings.Contains(line.Message, "GPU-1?2026-01-01T00:00:00.000Z?info?forged?[2J?") {
			named++
		}
	}
	assert.Positive(t, named, "the story has a line with the name")
}
