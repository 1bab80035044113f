package accuracy

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/otelcol-vllm/otelcol-vllm/internal/vllmsim"
	"github.com/otelcol-vllm/otelcol-vllm/internal/vllmsim/engine"
	"github.com/otelcol-vllm/otelcol-vllm/internal/vllmsim/scenario"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor"
)

const scenarioFolder = "../../../examples/scenarios"

// wanted is what an operator is to hear of one file of examples/scenarios.
type wanted struct {
	// condition is told, with cause as the primary one and its detail, or with a
	// notice; without a condition nobody hears of anything.
	condition, cause, detail, notice string
	// drain is how many windows after the end of what is done harm may still be told,
	// 3 where it is 0: one until the mean is that of healthy requests, and two until
	// that has lasted.
	drain float64
	// direct is true where our receiver would take too long for all the scrapes.
	direct bool
}

// wantedOf has all files. What their servers really go through is held by the tests
// of package scenario.
var wantedOf = map[string]wanted{
	"healthy": {}, "idle": {}, "bursts": {}, "daily-ramp": {direct: true},
	// Slow for 16 s, which is over before a window is: "make run" has shorter windows.
	"one-minute": {},

	"overload":            {condition: "degraded", cause: "demand_exceeds_capacity", drain: 5},
	"long-prompts":        {condition: "degraded", cause: "prefill_heavy", detail: "prompts_grew"},
	"longer-outputs":      {condition: "degraded", cause: "decode_load", detail: "longer_outputs"},
	"prefix-reuse-fell":   {condition: "degraded", cause: "prefill_heavy", detail: "reuse_fell"},
	"cache-thrash":        {condition: "degraded", cause: "cache_thrash"},
	"admission-deferred":  {condition: "degraded", cause: "admission_deferred"},
	"slow-steps":          {condition: "degraded", cause: "slow_steps"},
	"bandwidth-loss":      {condition: "degraded", cause: "slow_steps"},
	"fewer-kv-blocks":     {condition: "degraded", cause: "kv_pressure"},
	"front-end-starved":   {condition: "degraded", cause: "frontend_bound"},
	"erroring":            {condition: "failing", cause: "erroring"},
	"speculation-useless": {condition: "degraded", cause: "speculation_wasteful"},
	"kv-transfer-failing": {condition: "degraded", cause: "kv_transfer_failing"},
	// One of five is just the share from which on a server fails.
	"corrupted-logits": {condition: "degraded", cause: "corrupted_output"},
	"two-causes":       {condition: "degraded", cause: "slow_steps"},
	// What has come meanwhile is worked off.
	"stalled":           {condition: "stalled", drain: 5},
	"asleep":            {condition: "asleep"},
	"unreachable":       {condition: "unreachable"},
	"restart":           {condition: "unreachable"},
	"cold-cache":        {condition: "unreachable"},
	"frozen-gauges":     {condition: "idle", notice: "frozen_gauges"},
	"replica-imbalance": {condition: "degraded", cause: "imbalanced", drain: 5},
	"engine-imbalance":  {condition: "degraded", cause: "imbalanced", drain: 5},
}

// listened is what is told about an engine and about the pool that it is in.
type listened struct {
	mu            sync.Mutex
	begin         time.Time
	engines, pool []Told
}

func (*listened) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

func (h *listened) ConsumeMetrics(_ context.Context, metrics pmetric.Metrics) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	at := time.Since(h.begin).Seconds()
	pools := pmetric.NewMetrics()
	metrics.CopyTo(pools)
	for _, rm := range pools.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				if name, of := strings.CutPrefix(m.Name(), "vllm.pool.diagnosis."); of {
					m.SetName("vllm.diagnosis." + name)
				} else {
					m.SetName("")
				}
			}
		}
	}
	if told := listen(pools, "0", at); told.Severity >= 0 {
		h.pool = append(h.pool, told)
	}
	if told := listen(metrics, "0", at); told.Severity >= 0 {
		h.engines = append(h.engines, told)
	}
	return nil
}

// play lets a scenario happen before our receiver and the processor.
func play(t *testing.T, s *scenario.Scenario, settings map[string]any) *listened {
	t.Helper()
	config := s.Config
	config.Start = synctestBegin
	h := &listened{}
	var received [][]pmetric.Metrics
	for _, pages := range scrapeTargets(t, config, s.Length.Seconds()) {
		received = append(received, receive(t, pages))
	}
	synctest.Test(t, func(t *testing.T) {
		// A second later than the processor's, so that a pool is never told at the very
		// moment of a scrape.
		h.begin = time.Now().Add(time.Second)
		factory := vllmprocessor.NewFactory()
		config := factory.CreateDefaultConfig().(*vllmprocessor.Config)
		require.NoError(t, confmap.NewFromStringMap(settings).Unmarshal(config))
		require.NoError(t, config.Validate())
		d, err := factory.CreateMetrics(t.Context(), processortest.NewNopSettings(factory.Type()), config, h)
		require.NoError(t, err)
		require.NoError(t, d.Start(t.Context(), componenttest.NewNopHost()))
		for i := range received[0] {
			time.Sleep(time.Until(h.begin.Add(seconds(float64(i+1) * interval))))
			for _, one := range received {
				require.NoError(t, d.ConsumeMetrics(t.Context(), one[i]))
			}
		}
		require.NoError(t, d.Shutdown(t.Context()))
	})
	return h
}

// stretch is the time in which something is done, in seconds: of the faults, where
// there are any, with what leads to them before.
func stretch(s *scenario.Scenario) (begins, onset, end float64) {
	c := &s.Config
	if len(c.Changes) > 0 {
		begins, end = c.Changes[0].At, c.Changes[len(c.Changes)-1].At
		onset = begins
	}
	if len(c.Faults) > 0 {
		onset, end = c.Faults[0].At, max(end, c.Faults[len(c.Faults)-1].Until)
		if len(c.Changes) == 0 {
			begins = onset
		}
	}
	return begins, onset, end
}

// hears reports whether it is told what is wanted.
func (w *wanted) hears(t *Told) bool {
	condition := t.Condition == w.condition || w.condition == "degraded" && t.Condition == "failing"
	return condition && t.Primary == w.cause && (w.detail == "" || t.Detail == w.detail) &&
		(w.notice == "" || slices.Contains(t.Notices, w.notice))
}

// row holds what is told of a scenario to what is wanted, and returns it as a row of
// the table in docs/simulator.md.
func (w *wanted) row(t *testing.T, s *scenario.Scenario, told []Told) string {
	t.Helper()
	require.NotEmpty(t, told)
	begins, onset, end := stretch(s)
	drain := cmp.Or(w.drain, 3) * window
	first, over := -1.0, -1.0
	held, of := 0.0, 0.0
	for i := range told {
		one := &told[i]
		if one.Alarms() && (w.condition == "" || one.At <= begins || one.At > end+drain) {
			assert.Fail(t, "an alarm out of its time", "at %.0f s: %s, %s", one.At, one.Condition, one.Primary)
		}
		switch {
		case first < 0 && one.At > onset && w.condition != "" && w.hears(one):
			first = one.At - onset
		case first >= 0 && one.At <= end:
			of++
			if w.hears(one) {
				held++
			}
		}
		switch {
		case one.Condition != "healthy":
			over = -1
		case over < 0 && one.At > end:
			over = one.At - end
		}
	}
	if w.condition == "" {
		return fmt.Sprintf("| `%s` | nothing | | |", s.Name)
	}
	what := "`" + w.condition + "`"
	for _, more := range []string{w.cause, w.detail, w.notice} {
		if more != "" {
			what += ", `" + more + "`"
		}
	}
	require.GreaterOrEqual(t, first, 0.0, "%s is never told", what)
	assert.LessOrEqual(t, first, 3*window, "from the onset to %s", what)
	if len(s.Config.Faults) == 0 || s.Config.Faults[0].Kind != vllmsim.FaultRestart {
		// A restart is told until the process is there.
		assert.GreaterOrEqual(t, held, 0.9*of, "%s is told until it is over", what)
	}
	require.GreaterOrEqual(t, over, 0.0, "healthy at the end")
	return fmt.Sprintf("| `%s` | %s | %.0f s | %.0f s |", s.Name, what, first, over)
}

const (
	simulatorPage = "../../../docs/simulator.md"
	toldBegin     = "<!-- reported: begin -->\n"
	toldEnd       = "<!-- reported: end -->"
	toldHead      = "| Scenario | Reported | After the onset | Healthy again after its end |\n|---|---|---|---|\n"
)

// Each scenario is scraped by our receiver, and the processor with its defaults tells
// of it what the file does: soon, until it is over, and at no other time. The table in
// docs/simulator.md has what was measured here; -accuracy.scenarios writes it.
func TestEveryScenarioIsToldForWhatItIs(t *testing.T) {
	if raced {
		t.Skip("the race detector makes the engine thirty times slower, and there is no concurrency in it")
	}
	files, err := filepath.Glob(filepath.Join(scenarioFolder, "*.yaml"))
	require.NoError(t, err)
	require.Len(t, files, len(wantedOf))
	rows := make([]string, len(files))
	t.Run("files", func(t *testing.T) {
		for i, file := range files {
			s, err := scenario.Load(file)
			require.NoError(t, err)
			w, there := wantedOf[s.Name]
			require.True(t, there, "nobody says what is to be told of %s", file)
			if testing.Short() && !slices.Contains([]string{"healthy", "bandwidth-loss", "stalled", "frozen-gauges", "replica-imbalance"}, s.Name) {
				continue
			}
			t.Run(s.Name, func(t *testing.T) {
				t.Parallel()
				rows[i] = w.row(t, &s, listenTo(t, &s, &w))
			})
		}
	})
	if t.Failed() {
		return
	}
	text, err := os.ReadFile(simulatorPage)
	require.NoError(t, err)
	before, rest, found := strings.Cut(string(text), toldBegin)
	require.True(t, found)
	table, after, found := strings.Cut(rest, toldEnd)
	require.True(t, found)
	if *flagScenarios && !testing.Short() {
		table = toldHead + strings.Join(rows, "\n") + "\n"
		require.NoError(t, os.WriteFile(simulatorPage, []byte(before+toldBegin+table+toldEnd+after), 0o644))
	}
	for _, row := range rows {
		assert.True(t, strings.Contains(table, row), //nolint:testifylint // The whole table would hide the row.
			"docs/simulator.md does not say %q; to write what is: go test ./internal/test/accuracy -run EveryScenario -accuracy.scenarios", row)
	}
}

// listenTo lets a scenario happen, and returns what is told about its first engine, or
// about the pool of several servers or engines.
func listenTo(t *testing.T, s *scenario.Scenario, w *wanted) []Told {
	t.Helper()
	if w.direct {
		c := &s.Config
		require.Empty(t, c.Changes, "what is done is for the receiver to see")
		return watch(t, &Story{Config: engine.Config{
			Seed: c.Seed * 1_000_003, Model: engine.Llama8B(), Blocks: engine.Llama8B().Blocks, BlockSize: blockSize, MaxSeqs: 1024,
			MaxModelLen: 16384, FrontEnd: engine.DefaultFrontEnd(), Workload: *c.Workload, Semantics: engine.Semantics{RecountBlocked: true},
		}, Length: s.Length.Seconds()}, false).told
	}
	settings := map[string]any{}
	if w.cause == "imbalanced" {
		settings["pool"] = map[string]any{}
	}
	h := play(t, s, settings)
	if w.cause == "imbalanced" {
		return h.pool
	}
	return h.engines
}

var flagScenarios = flag.Bool("accuracy.scenarios", false, "write what is told of examples/scenarios into docs/simulator.md")
