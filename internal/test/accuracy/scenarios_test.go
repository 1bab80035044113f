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

	"github.com/otelcol-vllm/otelcol-vllm/internal/test/race"
	"github.com/otelcol-vllm/otelcol-vllm/internal/vllmsim"
	"github.com/otelcol-vllm/otelcol-vllm/internal/vllmsim/engine"
	"github.com/otelcol-vllm/otelcol-vllm/internal/vllmsim/scenario"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor"
)

const scenarioFolder = "../../../examples/scenarios"

// wanted is the expected diagnosis of one file of examples/scenarios.
type wanted struct {
	// condition is expected with cause as the primary cause and its detail, or with a
	// notice. An empty condition means that no alarm is expected.
	condition, cause, detail, notice string
	// missed is the cause of harm that is there and that is not reported, although it should
	// be. Where it is reported after all, the entry must change.
	missed string
	// drain is the number of windows after the end of the changes in which harm may still
	// be reported. 0 means 3: one until the mean is that of healthy requests, and two for
	// hold.
	drain float64
	// direct is true if our receiver would take too long for all the scrapes.
	direct bool
}

// wantedOf has all files. The tests of package scenario check the truth of the files.
var wantedOf = map[string]wanted{
	"healthy": {}, "idle": {}, "bursts": {}, "daily-ramp": {direct: true},
	// It is slow for 16 s, which is shorter than a window: "make run" has shorter windows.
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
	// One of five is exactly the share from which a server is failing.
	"corrupted-logits": {condition: "degraded", cause: "corrupted_output"},
	"two-causes":       {condition: "degraded", cause: "slow_steps"},
	// The queue that has formed must drain first.
	"stalled":           {condition: "stalled", drain: 5},
	"asleep":            {condition: "asleep"},
	"unreachable":       {condition: "unreachable"},
	"restart":           {condition: "unreachable"},
	"cold-cache":        {condition: "unreachable"},
	"frozen-gauges":     {condition: "idle", notice: "frozen_gauges"},
	"replica-imbalance": {condition: "degraded", cause: "imbalanced", drain: 5},
	"engine-imbalance":  {condition: "degraded", cause: "imbalanced", drain: 5},
	"closed-loop":       {condition: "degraded", cause: "slow_steps"},
	// What has failed is the GPU, also while the storm lasts.
	"retry-storm":  {condition: "degraded", cause: "slow_steps", drain: 5},
	"real-traffic": {},
	// It is learned as it comes.
	"drift": {missed: "slow_steps"},
}

// onlyJudged are the files whose values must be sought, which "vllmsim judge" does.
var onlyJudged = []string{"mild"}

// recording is the reported diagnosis of an engine and of its pool.
type recording struct {
	mu            sync.Mutex
	begin         time.Time
	engines, pool []Reported
}

func (*recording) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

func (h *recording) ConsumeMetrics(_ context.Context, metrics pmetric.Metrics) error {
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
	if reported := readReported(pools, "0", at); reported.Severity >= 0 {
		h.pool = append(h.pool, reported)
	}
	if reported := readReported(metrics, "0", at); reported.Severity >= 0 {
		h.engines = append(h.engines, reported)
	}
	return nil
}

// play runs a scenario with our receiver and the processor.
func play(t *testing.T, s *scenario.Scenario, settings map[string]any) *recording {
	t.Helper()
	config := s.Config
	config.Start = synctestBegin
	h := &recording{}
	var received [][]pmetric.Metrics
	for _, pages := range scrapeTargets(t, config, s.Length.Seconds()) {
		received = append(received, receive(t, pages))
	}
	synctest.Test(t, func(t *testing.T) {
		// A second after the start of the processor, so that pools are never emitted at the
		// time of a scrape.
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

// stretch returns when the changes begin, when the truth begins (with the first fault,
// if there is one), and when all end, in seconds.
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

// matches reports whether the report is the expected one.
func (w *wanted) matches(t *Reported) bool {
	condition := t.Condition == w.condition || w.condition == "degraded" && t.Condition == "failing"
	return condition && t.Primary == w.cause && (w.detail == "" || t.Detail == w.detail) &&
		(w.notice == "" || slices.Contains(t.Notices, w.notice))
}

// row compares the reports about a scenario with the expected diagnosis, and returns a
// row of the table in docs/simulator.md.
func (w *wanted) row(t *testing.T, s *scenario.Scenario, reported []Reported) string {
	t.Helper()
	require.NotEmpty(t, reported)
	begins, onset, end := stretch(s)
	drain := cmp.Or(w.drain, 3) * window
	first, over := -1.0, -1.0
	held, of := 0.0, 0.0
	for i := range reported {
		one := &reported[i]
		if one.Alarms() && (w.condition == "" || one.At <= begins || one.At > end+drain) {
			assert.Fail(t, "an alarm at a wrong time", "at %.0f s: %s, %s", one.At, one.Condition, one.Primary)
		}
		switch {
		case first < 0 && one.At > onset && w.condition != "" && w.matches(one):
			first = one.At - onset
		case first >= 0 && one.At <= end:
			of++
			if w.matches(one) {
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
	if w.missed != "" {
		return fmt.Sprintf("| `%s` | nothing, although `%s` does harm | | |", s.Name, w.missed)
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
	require.GreaterOrEqual(t, first, 0.0, "%s is never reported", what)
	assert.LessOrEqual(t, first, 3*window, "from the onset to %s", what)
	if len(s.Config.Faults) == 0 || s.Config.Faults[0].Kind != vllmsim.FaultRestart {
		// A restart is reported until the new process runs.
		assert.GreaterOrEqual(t, held, 0.9*of, "%s is reported until it is over", what)
	}
	require.GreaterOrEqual(t, over, 0.0, "healthy at the end")
	return fmt.Sprintf("| `%s` | %s | %.0f s | %.0f s |", s.Name, what, first, over)
}

const (
	simulatorPage  = "../../../docs/simulator.md"
	scenariosBegin = "<!-- scenarios: begin -->\n"
	scenariosEnd   = "<!-- scenarios: end -->"
	scenariosHead  = "| Scenario | What is reported | After the onset | Healthy again after its end |\n|---|---|---|---|\n"
)

// Our receiver scrapes each scenario, and the processor with its defaults reports the
// expected diagnosis: soon, until the end, and at no other time. The table in
// docs/simulator.md has the measured times; -accuracy.scenarios writes it.
func TestEveryScenarioIsReportedCorrectly(t *testing.T) {
	race.SkipSequential(t)
	files, err := filepath.Glob(filepath.Join(scenarioFolder, "*.yaml"))
	require.NoError(t, err)
	files = slices.DeleteFunc(files, func(file string) bool {
		return slices.Contains(onlyJudged, strings.TrimSuffix(filepath.Base(file), ".yaml"))
	})
	require.Len(t, files, len(wantedOf))
	rows := make([]string, len(files))
	t.Run("files", func(t *testing.T) {
		for i, file := range files {
			s, err := scenario.Load(file)
			require.NoError(t, err)
			w, there := wantedOf[s.Name]
			require.True(t, there, "wantedOf has no entry for %s", file)
			if testing.Short() && !slices.Contains([]string{"healthy", "bandwidth-loss", "stalled", "frozen-gauges", "replica-imbalance"}, s.Name) {
				continue
			}
			t.Run(s.Name, func(t *testing.T) {
				t.Parallel()
				rows[i] = w.row(t, &s, recordScenario(t, &s, &w))
			})
		}
	})
	if t.Failed() {
		return
	}
	text, err := os.ReadFile(simulatorPage)
	require.NoError(t, err)
	before, rest, found := strings.Cut(string(text), scenariosBegin)
	require.True(t, found)
	table, after, found := strings.Cut(rest, scenariosEnd)
	require.True(t, found)
	if *flagScenarios && !testing.Short() {
		table = scenariosHead + strings.Join(rows, "\n") + "\n"
		require.NoError(t, os.WriteFile(simulatorPage, []byte(before+scenariosBegin+table+scenariosEnd+after), 0o644))
	}
	for _, row := range rows {
		assert.True(t, strings.Contains(table, row), //nolint:testifylint // The whole table would hide the row.
			"docs/simulator.md does not have the row %q; to update it: go test ./internal/test/accuracy -run EveryScenario -accuracy.scenarios", row)
	}
}

// recordScenario runs a scenario, and returns the reports about its first engine, or
// about the pool of several servers or engines.
func recordScenario(t *testing.T, s *scenario.Scenario, w *wanted) []Reported {
	t.Helper()
	if w.direct {
		c := &s.Config
		require.Empty(t, c.Changes, "a scenario with changes must go through the receiver")
		return watch(t, &Story{Config: engine.Config{
			Seed: c.Seed * 1_000_003, Model: engine.Llama8B(), Blocks: engine.Llama8B().Blocks, BlockSize: blockSize, MaxSeqs: 1024,
			MaxModelLen: 16384, FrontEnd: engine.DefaultFrontEnd(), Workload: *c.Workload, Semantics: engine.Semantics{RecountBlocked: true},
		}, Length: s.Length.Seconds()}, false).reported
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

var flagScenarios = flag.Bool("accuracy.scenarios", false, "write the reports about examples/scenarios into docs/simulator.md")
