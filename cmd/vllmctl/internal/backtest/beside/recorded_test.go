package beside

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/backtest"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/rulestore"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/spelling"
	"github.com/otelcol-vllm/otelcol-vllm/lab/content/shipped"
	"github.com/otelcol-vllm/otelcol-vllm/lab/test/history"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
)

// A Prometheus has the shipped rules loaded, so its history has what they record and their alerts. A backtest of the same
// rules evaluates each of them, and finds the alerts that fired: it reads nothing that they have written.
func TestTheRulesOfAPrometheusCanBeTriedOnItsOwnHistory(t *testing.T) {
	story := &history.Story{Length: 70 * time.Minute, Servers: []history.Servers{
		server("stalls", 5, []engine.Change{{At: 2700, Parameter: engine.ParamStall, Value: 1}, {At: 3600, Parameter: engine.ParamStall, Value: 0}}),
	}}
	live := history.Play(t, story, history.Suffixed)
	store := live.Stores[0].Store
	dir := t.TempDir()
	require.NoError(t, shipped.WriteIn(dir, spelling.Suffixed))
	loaded, errs := rulestore.NewEvaluation(t.Context(), store, live.Begin, time.Minute, filepath.Join(dir, "rules", "suffixed", "vllm.yaml"))
	require.Empty(t, errs)
	require.NoError(t, loaded.Until(t.Context(), live.End))
	fired, problems, _ := loaded.Finish(live.End)
	require.Empty(t, problems)
	recorded, err := store.Instant(t.Context(), "vllm_server:severity:max", live.End)
	require.NoError(t, err)
	require.NotEmpty(t, recorded)

	o := options(serve(t, store, live.End), live.Begin, live.End)
	withObjectives(t, o)
	// A pattern chooses what the rules record, too.
	o.Rules, err = backtest.NewEngine(t.Context(), []string{backtest.Builtin, write(t, `groups: [{name: g, rules: [{alert: Any, expr: 'count({__name__=~"vllm_server:.*|ALERTS"}) > 0'}]}]`)}, nil, live.Begin, time.Minute)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, o.Rules.Close()) })
	out, err := backtest.Run(t.Context(), o)
	require.NoError(t, err)
	r := backtest.Assemble(o, out, nil, false, 0)
	assert.Empty(t, r.RuleProblems)
	var want, got []string
	for _, f := range fired {
		want = append(want, f.Alert)
	}
	for _, f := range r.Alerts {
		if f.Alert != "Any" {
			got = append(got, f.Alert)
		}
	}
	assert.Contains(t, want, "VLLMServerNotServing")
	assert.ElementsMatch(t, want, got)
}

func write(t *testing.T, rules string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rules.yaml")
	require.NoError(t, os.WriteFile(path, []byte(rules), 0o600))
	return path
}
