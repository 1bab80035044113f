package judge

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/internal/test/race"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/scenario"
)

const scenarioFolder = "../../examples/scenarios"

// wanted is the expected diagnosis of one file of examples/scenarios.
type wanted struct {
	// condition is expected with cause as the primary cause and its detail, or with a
	// notice. An empty condition means that no alarm is expected.
	condition, cause, detail, notice string
	// drifts is the primary cause of harm that becomes worse until the end.
	drifts string
	// within is the number of windows from the onset in which it must be reported. 0 means 5: a
	// change of the work is certain after three windows of at most mostDeviations, once the window has
	// left what was before.
	within float64
	// drain is the number of windows after the end of the changes in which harm may still
	// be reported. 0 means 3: one until the mean is that of healthy requests, and two for
	// hold.
	drain float64
	// held is the share of the time until the end in which it must be reported. 0 means 0.9.
	held float64
}

// wantedOf has all files. The tests of package scenario check the truth of the files.
var wantedOf = map[string]wanted{
	"healthy": {}, "idle": {}, "bursts": {}, "daily-ramp": {},
	// It is slow for 16 s, which is shorter than a window: "make run" has shorter windows.
	"one-minute": {},

	"overload":           {condition: "degraded", cause: "demand_exceeds_capacity", drain: 5},
	"long-prompts":       {condition: "degraded", cause: "prefill_heavy", detail: "prompts_grew"},
	"longer-outputs":     {condition: "degraded", cause: "decode_load", detail: "longer_outputs"},
	"prefix-reuse-fell":  {condition: "degraded", cause: "prefill_heavy", detail: "reuse_fell"},
	"cache-thrash":       {condition: "degraded", cause: "cache_thrash"},
	"admission-deferred": {condition: "degraded", cause: "admission_deferred"},
	"slow-steps":         {condition: "degraded", cause: "slow_steps"},
	"bandwidth-loss":     {condition: "degraded", cause: "slow_steps"},
	// Users are served as usual for a minute now and then.
	"fewer-kv-blocks":     {condition: "degraded", cause: "kv_pressure", held: 0.8},
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
	"lockstep":          {condition: "degraded", cause: "slow_steps"},
	// What has failed is the GPU, also while the storm lasts. For its first minutes it is not certain how
	// much of the queue is of the retries.
	"retry-storm":    {condition: "degraded", cause: "slow_steps", drain: 5, within: 7, held: 0.75},
	"real-traffic":   {},
	"clients-cancel": {condition: "healthy", notice: "clients_give_up"},
	// The judge's processor is given no GPU metrics: lab/test/gpus has the details.
	"gpu-power-cap":         {condition: "degraded", cause: "slow_steps"},
	"gpu-hot":               {condition: "degraded", cause: "slow_steps"},
	"gpu-memory-errors":     {condition: "degraded", cause: "slow_steps"},
	"gpu-link-errors":       {condition: "degraded", cause: "slow_steps"},
	"gpu-clocks-low":        {condition: "degraded", cause: "slow_steps"},
	"gpu-clean":             {condition: "degraded", cause: "slow_steps"},
	"gpu-throttled-before":  {condition: "degraded", cause: "slow_steps", within: 10},
	"gpu-no-counters":       {condition: "degraded", cause: "slow_steps"},
	"gpu-shared":            {condition: "degraded", cause: "slow_steps"},
	"gpu-partition":         {condition: "degraded", cause: "slow_steps"},
	"gpu-exporter-restarts": {condition: "degraded", cause: "slow_steps"},
	"gpu-amd":               {condition: "degraded", cause: "slow_steps"},
	// It comes so slowly that the last minutes learn it; the slow reference does not.
	"drift": {drifts: "slow_steps"},
}

// onlyJudged are the files whose values must be sought, which "vllmsim judge" does.
var onlyJudged = []string{"mild"}

// reading is what was reported at one time.
type reading struct {
	report
	at float64
}

// alarms reports whether it is an alarm: degraded or worse.
func (r *reading) alarms() bool {
	return r.severity >= warning || slices.Contains([]string{"degraded", "failing", stalled, "unreachable"}, r.condition)
}

// reports reports whether a cause is reported in a role.
func (r *reading) reports(cause, role string) bool {
	return slices.ContainsFunc(r.causes, func(c Cause) bool { return c.Name == cause && c.Role == role })
}

// scraped are the reports of a story at each scrape: of each server, and of the pool.
type scraped struct {
	servers [][]reading
	pool    []reading
}

// record scrapes the servers of a story, without the runs that its truth needs.
func record(t *testing.T, s *Story) scraped {
	t.Helper()
	s.Interval = cmp.Or(s.Interval, defaultInterval)
	require.NoError(t, s.check())
	config, err := configure(s.Processor)
	require.NoError(t, err)
	for i := range s.Injections {
		if s.Injections[i].Effect > 0 {
			require.NoError(t, seek(t.Context(), s, i, objectivesOf(config), &Played{}))
		}
	}
	p, err := newPlayer(s, config, &Played{})
	require.NoError(t, err)
	r, err := newReports(t.Context(), s.Name, len(s.Servers), config, p.out)
	require.NoError(t, err)
	p.audience = []audience{r}
	out := scraped{servers: make([][]reading, len(s.Servers))}
	for at := s.Interval.Seconds(); at <= s.Length.Seconds(); at += s.Interval.Seconds() {
		require.NoError(t, p.scrape(t.Context(), at))
		for i, one := range r.now {
			if one.severity >= 0 {
				out.servers[i] = append(out.servers[i], reading{one, at})
			}
		}
		if r.diagnosis.pool != nil {
			out.pool = append(out.pool, reading{*r.diagnosis.pool, at})
		}
	}
	require.NoError(t, r.close(t.Context()))
	return out
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
func (w *wanted) matches(t *reading) bool {
	condition := t.condition == w.condition || w.condition == "degraded" && (t.condition == "failing" || t.condition == "critical")
	return condition && t.primary() == w.cause && (w.detail == "" || t.causes[0].Detail == w.detail) &&
		(w.notice == "" || t.reports(w.notice, "notice"))
}

// row compares the reports about a scenario with the expected diagnosis, and returns a
// row of the table in lab/docs/simulator.md.
func (w *wanted) row(t *testing.T, s *scenario.Scenario, reported []reading) string {
	t.Helper()
	require.NotEmpty(t, reported)
	begins, onset, end := stretch(s)
	drain := cmp.Or(w.drain, 3) * minuteSeconds
	first, over := -1.0, -1.0
	held, of := 0.0, 0.0
	if w.drifts != "" {
		return w.drift(t, s, reported)
	}
	for i := range reported {
		one := &reported[i]
		if one.alarms() && (w.condition == "" || one.at <= begins || one.at > end+drain) {
			assert.Fail(t, "an alarm at a wrong time", "at %.0f s: %s, %s", one.at, one.condition, one.primary())
		}
		switch {
		case first < 0 && one.at > onset && w.condition != "" && w.matches(one):
			first = one.at - onset
		case first >= 0 && one.at <= end:
			of++
			if w.matches(one) {
				held++
			}
		}
		switch {
		case one.condition != "healthy":
			over = -1
		case over < 0 && one.at > end:
			over = one.at - end
		}
	}
	if w.condition == "" {
		return fmt.Sprintf("| `%s` | nothing | | |", s.Name)
	}
	what := strings.TrimPrefix(w.condition, "degraded")
	for _, more := range []string{w.cause, w.detail, w.notice} {
		if more != "" {
			what = strings.TrimPrefix(what+", "+more, ", ")
		}
	}
	require.GreaterOrEqual(t, first, 0.0, "%s is never reported", what)
	assert.LessOrEqual(t, first, cmp.Or(w.within, 5)*minuteSeconds, "from the onset to %s", what)
	if len(s.Config.Faults) == 0 || s.Config.Faults[0].Kind != vllmsim.FaultRestart {
		// A restart is reported until the new process runs.
		assert.GreaterOrEqual(t, held, cmp.Or(w.held, 0.9)*of, "%s is reported until it is over", what)
	}
	require.GreaterOrEqual(t, over, 0.0, "healthy at the end")
	return fmt.Sprintf("| `%s` | %s | %.0f | %.0f |", s.Name, what, first, over)
}

// drift is the row of a fault that becomes worse until the end: it is reported at some time, and
// from then on.
func (w *wanted) drift(t *testing.T, s *scenario.Scenario, reported []reading) string {
	t.Helper()
	_, onset, _ := stretch(s)
	first := slices.IndexFunc(reported, func(one reading) bool { return one.alarms() })
	require.GreaterOrEqual(t, first, 0, "`%s` is never reported", w.drifts)
	assert.Greater(t, reported[first].at, onset)
	for _, one := range reported[first:] {
		assert.Equal(t, "degraded", one.condition, "%.0f s", one.at)
		assert.Equal(t, w.drifts, one.primary(), "%.0f s", one.at)
	}
	return fmt.Sprintf("| `%s` | %s | %.0f | |", s.Name, w.drifts, reported[first].at-onset)
}

const (
	simulatorPage  = "../docs/simulator.md"
	scenariosBegin = "<!-- scenarios: begin -->\n"
	scenariosEnd   = "<!-- scenarios: end -->"
	scenariosHead  = "| Scenario | Report | After, s | Over, s |\n|---|---|---|---|\n"
)

// Each scenario is scraped, and the processor with its defaults reports the
// expected diagnosis: soon, until the end, and at no other time. The table in
// lab/docs/simulator.md has the measured times; -judge.scenarios writes it.
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
			"lab/docs/simulator.md does not have the row %q; to update it: go test ./lab/judge -run EveryScenario -judge.scenarios", row)
	}
}

// Where the time to the first token is observed when the request ends, the reports are correct, too.
func TestFirstTokensAtTheEndAreReportedCorrectly(t *testing.T) {
	race.SkipSequential(t)
	for _, name := range []string{"healthy", "bandwidth-loss", "stalled", "overload"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := scenario.Load(filepath.Join(scenarioFolder, name+".yaml"))
			require.NoError(t, err)
			story, err := FromScenario(&s)
			require.NoError(t, err)
			for i := range story.Servers {
				story.Servers[i].Semantics.FirstTokenAtEnd = true
			}
			w := wantedOf[name]
			t.Log(w.row(t, &s, record(t, story).servers[0]))
		})
	}
}

// recordScenario runs a scenario, and returns the reports about its first server, or
// about the pool of several servers or engines.
func recordScenario(t *testing.T, s *scenario.Scenario, w *wanted) []reading {
	t.Helper()
	story, err := FromScenario(s)
	require.NoError(t, err)
	if w.cause == "imbalanced" {
		story.Processor = map[string]any{"pool": map[string]any{}}
		return record(t, story).pool
	}
	return record(t, story).servers[0]
}

var flagScenarios = flag.Bool("judge.scenarios", false, "write the reports about examples/scenarios into lab/docs/simulator.md")
