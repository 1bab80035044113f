package catalog

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// The test decodes diagnosis.yaml without the generator's schema, so that a field which the
// generator forgets is a difference.
func TestTheDiagnosisIsTheYAML(t *testing.T) {
	content, err := os.ReadFile("diagnosis.yaml")
	require.NoError(t, err)
	var doc map[string]any
	require.NoError(t, yaml.Unmarshal(content, &doc))

	var signals []Signal
	for _, s := range mapsOf(doc["signals"]) {
		signals = append(signals, Signal{Name: text(s["name"]), Unit: text(s["unit"]), Meaning: text(s["meaning"]), From: stringsOf(s["from"])})
	}
	assert.Equal(t, signals, Signals())

	var conditions []Condition
	for _, c := range mapsOf(doc["conditions"]) {
		assert.Len(t, c, 7, c["name"])
		conditions = append(conditions, Condition{
			Name: text(c["name"]), Severity: c["severity"].(int), Meaning: text(c["meaning"]), Sentence: text(c["sentence"]),
			Signals: stringsOf(c["signals"]), Next: stepsOf(c["next"]), NotSeparable: text(c["not_separable"]),
		})
	}
	assert.Equal(t, conditions, Conditions())

	var wanted []Cause
	for _, c := range mapsOf(doc["causes"]) {
		fields := 7
		cause := Cause{
			Name: text(c["name"]), Level: Level(text(c["level"])), Meaning: text(c["meaning"]), Sentence: text(c["sentence"]),
			Signals: stringsOf(c["signals"]), Next: stepsOf(c["next"]), NotSeparable: text(c["not_separable"]),
		}
		for _, d := range mapsOf(c["details"]) {
			fields = 8
			cause.Details = append(cause.Details, Detail{Name: text(d["name"]), Sentence: text(d["sentence"])})
		}
		assert.Len(t, c, fields, c["name"])
		wanted = append(wanted, cause)
	}
	assert.Equal(t, wanted, Causes())

	var wantedFlags []Flag
	for _, f := range mapsOf(doc["flags"]) {
		wantedFlags = append(wantedFlags, Flag{Name: text(f["name"]), Values: text(f["values"]), Meaning: text(f["meaning"]), Raise: text(f["raise"]), Lower: text(f["lower"])})
	}
	assert.Equal(t, wantedFlags, Flags())
}

// stepsOf reads steps, of which those without a query are only a text.
func stepsOf(value any) []Step {
	var steps []Step
	list, _ := value.([]any)
	for _, entry := range list {
		step := Step{Text: text(entry)}
		if fields, is := entry.(map[string]any); is {
			step = Step{Text: text(fields["text"]), Queries: stringsOf(fields["queries"]), Board: text(fields["board"]), Panel: text(fields["panel"])}
		}
		steps = append(steps, step)
	}
	return steps
}

// Alerts of users depend on the order of precedence and on the severities.
func TestConditionsAreInOrderOfPrecedence(t *testing.T) {
	want := []Condition{
		{Name: "draining", Severity: 0},
		{Name: "unreachable", Severity: 3},
		{Name: "starting", Severity: 0},
		{Name: "asleep", Severity: 0},
		{Name: "stalled", Severity: 3},
		{Name: "failing", Severity: 3},
		{Name: "critical", Severity: 3},
		{Name: "degraded", Severity: 2},
		{Name: "unknown", Severity: 1},
		{Name: "idle", Severity: 0},
		{Name: "healthy", Severity: 0},
	}
	var got []Condition
	for _, c := range Conditions() {
		got = append(got, Condition{Name: c.Name, Severity: c.Severity})
	}
	assert.Equal(t, want, got)
}

// Users write the names of the causes into alerts, so the names are fixed.
func TestTheCausesAreComplete(t *testing.T) {
	names := map[Level][]string{}
	details := map[string][]string{}
	for _, c := range causes {
		names[c.Level] = append(names[c.Level], c.Name)
		for _, d := range c.Details {
			details[c.Name] = append(details[c.Name], d.Name)
		}
	}
	assert.Equal(t, map[Level][]string{
		LevelEngine: {
			"admission_deferred", "cache_thrash", "corrupted_output", "decode_load", "demand_exceeds_capacity", "erroring",
			"frontend_bound", "kv_pressure", "kv_transfer_failing", "prefill_heavy", "requests_dropped", "restarting", "slow_steps", "speculation_wasteful",
		},
		LevelPool:   {"imbalanced", "servers_lost", "upstream_starved"},
		LevelNotice: {"clients_give_up", "frozen_gauges", "workload_shift"},
	}, names, "a new cause belongs into this list as well; none is renamed or removed")
	for cause, want := range map[string][]string{
		"demand_exceeds_capacity": {"kv", "seqs", "tokens", "unknown"},
		"prefill_heavy":           {"prompts_grew", "reuse_fell"},
		"decode_load":             {"longer_outputs", "more_sequences"},
		"slow_steps":              {"clocks_low", "interconnect", "memory_error", "not_throttled", "power_cap", "since_version", "thermal"},
	} {
		assert.Subset(t, details[cause], want, "none is renamed or removed; new ones of %s are listed here with a release", cause)
	}
}

func TestConditionsAndCausesAreFoundByName(t *testing.T) {
	for i := range Conditions() {
		found, known := ConditionByName(Conditions()[i].Name)
		require.True(t, known)
		assert.Same(t, &Conditions()[i], found)
	}
	for i := range causes {
		found, known := CauseByName(causes[i].Name)
		require.True(t, known)
		assert.Same(t, &causes[i], found)
	}
	_, known := ConditionByName("overheated")
	assert.False(t, known)
	_, known = CauseByName("healthy")
	assert.False(t, known)
}

// A cause needs all of its attributes, and a pool has the same ones as an engine.
func TestTheMetricsOfTheDiagnosisHaveItsAttributes(t *testing.T) {
	want := map[string]struct {
		unit    string
		enabled bool
		extra   []string
	}{
		"diagnosis.severity":     {"{level}", true, nil},
		"diagnosis.condition":    {"{state}", true, []string{"condition"}},
		"diagnosis.cause":        {"{state}", true, []string{"cause", "detail", "role"}},
		"diagnosis.cause_share":  {"1", true, []string{"cause"}},
		"diagnosis.signal":       {"{value}", false, []string{"signal"}},
		"diagnosis.signal_ratio": {"1", false, []string{"signal"}},
	}
	for name, w := range want {
		m, found := ByName("vllm." + name)
		require.True(t, found, name)
		assert.Equal(t, KindGauge, m.Kind, name)
		assert.Equal(t, w.unit, m.Unit, name)
		assert.Equal(t, w.enabled, m.In(Standard), name)
		assert.ElementsMatch(t, append([]string{"engine", "model_name"}, w.extra...), m.Attributes, name)
		_, ofPool := ByName("vllm.pool." + name)
		assert.Equal(t, w.enabled, ofPool, "%s: pools have what is on by default", name)
	}
	count := 0
	for _, m := range computed() {
		if strings.Contains(m.Name, ".diagnosis.") {
			count++
		}
	}
	assert.Equal(t, 12, count)
}
