package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/lab/judge"
)

const slowScenario = `
about: slow for a while
length: 14m
workload: {rate: 5}
changes:
  - {at: 5m, until: 10m, set: {bandwidth: 0.3}}
`

func judgeAll(t *testing.T, args ...string) (code int, lines []map[string]any, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(t.Context(), append([]string{"judge"}, args...), &out, &errs)
	for line := range strings.Lines(out.String()) {
		var one map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &one), line)
		lines = append(lines, one)
	}
	return code, lines, errs.String()
}

func writeScenario(t *testing.T, name, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name+".yaml")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

// The form is a contract with programs that read it.
func TestJudgePrintsALineForEachMinuteAndASummary(t *testing.T) {
	file := writeScenario(t, "slow", slowScenario)
	code, lines, stderr := judgeAll(t, file)
	assert.Zero(t, code)
	assert.Empty(t, stderr)
	require.Len(t, lines, 15)
	for i, line := range lines[:14] {
		assert.InDelta(t, i, line["minute"], 0)
		assert.Equal(t, i >= 5 && i < 10, line["harmful"], "%v", line)
		keys := []string{"scenario", "minute", "server", "requests", "harmful", "effect", "true_causes", "condition", "severity", "causes"}
		for _, key := range keys {
			assert.Contains(t, line, key)
		}
		assert.Len(t, line, len(keys))
	}
	slow := lines[8]
	assert.Equal(t, "slow", slow["scenario"])
	assert.Equal(t, map[string]any{"slow_steps": 1.0}, slow["true_causes"])
	assert.Equal(t, []any{map[string]any{"name": "slow_steps", "role": "primary", "detail": "", "share": 1.0}}, slow["causes"])
	assert.Equal(t, map[string]any{}, lines[2]["true_causes"])
	assert.Equal(t, []any{}, lines[2]["causes"])
	summary := lines[14]["summary"].(map[string]any)
	assert.Equal(t, "slow", lines[14]["scenario"])
	for key, want := range map[string]float64{
		"minutes": 14, "judged": 14, "harmful": 5, "alarms_with_harm": 1, "alarms_without_harm": 0, "alarms_not_judged": 0, "healthy_hours": 0.133,
	} {
		assert.InDelta(t, want, summary[key], 1e-9, key)
	}
	for _, key := range []string{"reported", "right", "top_two", "delay_windows", "sought"} {
		assert.Contains(t, summary, key)
	}
}

// Several files at once give the same output in the same order.
func TestJudgePlaysSeveralFilesInOrder(t *testing.T) {
	var files []string
	for i, length := range []int{20, 3, 9, 5} {
		files = append(files, writeScenario(t, fmt.Sprint("file-", i), strings.Replace(strings.Split(slowScenario, "changes")[0], "14m", fmt.Sprintf("%dm", length), 1)))
	}
	var one, many bytes.Buffer
	require.Zero(t, run(t.Context(), append([]string{"judge"}, files...), &one, &bytes.Buffer{}))
	require.Zero(t, run(t.Context(), append([]string{"judge", "-j", "3"}, files...), &many, &bytes.Buffer{}))
	assert.Equal(t, one.String(), many.String())
	assert.Len(t, strings.Split(strings.TrimSpace(one.String()), "\n"), 20+3+9+5+4)
}

func TestJudgePlaysTheOtherFilesWhereOneIsWrong(t *testing.T) {
	good := writeScenario(t, "good", strings.Split(slowScenario, "changes")[0])
	for want, text := range map[string]string{
		"bad.yaml:2: length: want a duration":    "about: x\nlength: 5\nworkload: {rate: 1}\n",
		"bad.yaml:4: processor: ":                "about: x\nlength: 5m\nworkload: {rate: 1}\nprocessor: {window: 5}\n",
		"no_such_setting":                        "about: x\nlength: 5m\nworkload: {rate: 1}\nprocessor: {no_such_setting: 5}\n",
		"scrape_interval: 10m0s is not between":  "about: x\nlength: 5m\nworkload: {rate: 1}\nscrape_interval: 10m\n",
		"effect.stall: no value of it does more": "about: x\nlength: 5m\nworkload: {rate: 1}\nchanges: [{at: 1m, effect: {stall: 2}}]\n",
	} {
		code, lines, stderr := judgeAll(t, writeScenario(t, "bad", text), good, filepath.Join(t.TempDir(), "none.yaml"))
		assert.Equal(t, 1, code)
		assert.Len(t, lines, 15, "the good one")
		assert.Contains(t, stderr, want)
		assert.Contains(t, stderr, "none.yaml: no such file")
		assert.Contains(t, stderr, "2 of 3 files could not be read or played")
	}
	for _, args := range [][]string{{}, {"-j", "0", good}, {"-no-such-flag", good}} {
		code, lines, _ := judgeAll(t, args...)
		assert.Equal(t, 2, code, "%v", args)
		assert.Empty(t, lines)
	}
}

// What cannot be reached is said on the standard error, and the lines say what was found.
func TestJudgeSeeksEffects(t *testing.T) {
	code, lines, stderr := judgeAll(t, writeScenario(t, "sought", `
about: half as bad as wanted
length: 6m
workload: {rate: 5}
changes:
  - {at: 1m, until: 3m, effect: {error_rate: 40}}
`))
	assert.Zero(t, code)
	assert.Contains(t, stderr, "sought.yaml: no value of error_rate was found whose harm is 40 times the bar; the nearest is 1")
	sought := lines[6]["summary"].(map[string]any)["sought"].([]any)
	assert.Equal(t, []any{map[string]any{"parameter": "error_rate", "wanted": 40.0, "got": 20.0, "value": 1.0}}, sought)
}

func TestServeRefusesEffects(t *testing.T) {
	file := writeScenario(t, "sought", "about: x\nlength: 6m\nworkload: {rate: 5}\nchanges:\n  - {at: 1m, until: 3m, effect: {clock: 2}}\n")
	var out, errs bytes.Buffer
	assert.Equal(t, 1, run(t.Context(), []string{"serve", "-scenario", file, "-for", "1s", "-listen", "127.0.0.1:0"}, &out, &errs))
	assert.Contains(t, errs.String(), `effect: a server does not seek the values of clock at 1m0s; "vllmsim judge" does and prints them: write these under set`)
}

// Each mistake gives one sentence with the file, the line and the key.
func TestJudgeNamesTheLineOfAMistake(t *testing.T) {
	const head = "about: x\nlength: 5m\nworkload: {rate: 5}\n"
	for text, want := range map[string]string{
		"processor: {windw: 1m}":              ":4: processor: windw: is unknown; did you mean window?",
		"processor: {window: soon}":           `:4: processor: window: is not a duration`,
		"processor:\n  pool: {intervall: 3s}": ":5: processor: pool::intervall: is unknown; did you mean interval?",
		"processor:\n  objectives: [{name: o, metric: nope, threshold: 1s, target: 0.9}]":    `:5: processor: objectives[0]: objective "o": the metric nope is unknown; write one of vllm.time_to_first_token`,
		"processor:\n  window: 1m\n  diagnosis:\n    hold: many":                             ":7: processor: diagnosis::hold: expected type 'int'",
		"processor:\n  window: 1m\n  objectives:\n  - {name: a}\n  - name: b\n    metrik: x": ":9: processor: objectives[1]::metrik: is unknown; did you mean metric?",
		"processor:\n  window: 1m\n  windw: 1m":                                              ":6: processor: windw: is unknown; did you mean window?",
		"scrape_interval: 10m":                                                               ":4: scrape_interval: 10m0s is not between 1s and 5m0s",
		"changes: [{at: 6m, set: {clock: 0.5}}]":                                             ":4: changes[0].at: 6m0s is not between 0s and 5m0s",
		"changes:\n  - {at: 1m, set: {clok: 0.5}}":                                           ":5: changes[0].set.clok: unknown key: want one of",
	} {
		file := writeScenario(t, "wrong", head+text+"\n")
		var stdout, stderr bytes.Buffer
		assert.Equal(t, 1, run(t.Context(), []string{"judge", file}, &stdout, &stderr))
		assert.Empty(t, stdout.String())
		lines := strings.Split(strings.TrimSpace(stderr.String()), "\n")
		assert.Len(t, lines, 2, "%s", stderr.String())
		assert.Contains(t, lines[0], "vllmsim judge: "+file+want)
	}
}

// A collector refuses these as well.
func TestJudgeRefusesImpossibleObjectives(t *testing.T) {
	for text, want := range map[string]string{
		"name: a, threshold: 1s, target: 1":    `objective "a": the target 1 allows no single failure`,
		"name: a, threshold: 1s, target: .nan": `objective "a": the target NaN is not a share`,
		"name: a, threshold: 1s, target: 90":   `objective "a": the target 90 is a percentage; write the share 0.9`,
		"name: a, threshold: 1s, target: 0":    `objective "a": the target is missing or 0`,
		"name: a, threshold: 0s, target: 0.9":  `objective "a": the threshold is missing, is 0, or has no unit`,
		"threshold: 1s, target: 0.9":           `an objective has no name`,
	} {
		file := writeScenario(t, "wrong", "about: x\nlength: 5m\nworkload: {rate: 5}\n"+
			"processor:\n  objectives:\n    - {metric: vllm.time_to_first_token, "+text+"}\n")
		code, lines, stderr := judgeAll(t, file)
		assert.Equal(t, 1, code)
		assert.Empty(t, lines)
		assert.Contains(t, stderr, file+":6: processor: objectives[0]: "+want)
	}
}

func TestResultsThatJSONDoesNotHaveAreAnError(t *testing.T) {
	_, err := encode("x", &judge.Played{Window: time.Minute, Lines: []judge.Line{{Effect: math.NaN()}}})
	assert.ErrorContains(t, err, "NaN")
}
