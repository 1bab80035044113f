//go:build e2e

package beside

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/backtest/report"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/rulestore"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/spelling"
	"github.com/otelcol-vllm/otelcol-vllm/lab/content/shipped"
	"github.com/otelcol-vllm/otelcol-vllm/lab/test/collector"
)

var (
	week = flag.Bool("week", false, "also judge a simulated week, which takes some minutes")
	keep = flag.String("keep", "", "write the texts and pages into this `folder`")
)

const root = "../../../../.."

// tool finds a program of Prometheus, as make prometheus installs it.
func tool(t *testing.T, name string) string {
	t.Helper()
	if file, err := exec.LookPath(name); err == nil {
		return file
	}
	file, err := filepath.Abs(filepath.Join(root, "bin", "tools", "prometheus", "usr", "bin", name))
	require.NoError(t, err)
	if _, err := os.Stat(file); err != nil {
		require.Empty(t, os.Getenv("OTELCOL_VLLM_REQUIRED"), "%s is required; run make prometheus", name)
		t.Skip(name, "is not installed; run make prometheus:", err)
	}
	return file
}

// vllmctl builds the program.
func vllmctl(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "vllmctl")
	output, err := exec.CommandContext(t.Context(), "go", "build", "-o", file, root+"/cmd/vllmctl").CombinedOutput()
	require.NoError(t, err, "%s", output)
	return file
}

// command runs vllmctl and returns its output and exit status.
func command(t *testing.T, program string, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	c := exec.CommandContext(t.Context(), program, args...)
	var out, problems strings.Builder
	c.Stdout, c.Stderr = &out, &problems
	err := c.Run()
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		require.NoError(t, err)
	}
	return out.String(), problems.String(), c.ProcessState.ExitCode()
}

// recorded is a history in a real Prometheus.
type recorded struct {
	address string
	own     []rulestore.Firing
}

// record plays a story and starts a Prometheus on it.
func record(t *testing.T, story *Story) recorded {
	t.Helper()
	program := tool(t, "prometheus")
	dir := t.TempDir()
	data, config, rules := filepath.Join(dir, "data"), filepath.Join(dir, "prometheus.yml"), filepath.Join(dir, "own.yaml")
	require.NoError(t, os.WriteFile(rules, []byte(OwnRules), 0o600))
	story.Rules = append(story.Rules, rules)
	store, own := RecordWithAlerts(t, data, story)
	Persist(t, store)
	require.NoError(t, os.WriteFile(config, nil, 0o600))
	addr := collector.FreeAddr(t)
	p := collector.Start(t, nil, program, "--config.file="+config, "--storage.tsdb.path="+data, "--storage.tsdb.retention.time=10y",
		"--web.listen-address="+addr, "--log.level=warn")
	p.WaitFor(t, "Prometheus", func() bool { return len(collector.Get(t, "http://"+addr+"/-/ready")) > 0 })
	t.Cleanup(func() { p.Stop(t) })
	return recorded{"http://" + addr, own}
}

// incidents writes the truths as a file of incidents.
func incidents(t *testing.T, story *Story, truths []Truth) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("incidents:\n")
	for _, one := range truths {
		fmt.Fprintf(&b, "  - {name: %q, from: %s, to: %s, targets: [%q], cause: %s}\n", one.Name,
			story.Begin.Add(one.From).Format(time.RFC3339), story.Begin.Add(one.To).Format(time.RFC3339), one.Instance, one.Cause)
	}
	file := filepath.Join(t.TempDir(), "incidents.yaml")
	require.NoError(t, os.WriteFile(file, []byte(b.String()), 0o600))
	return file
}

// check compares a report with what was done to the servers.
func check(t *testing.T, story *Story, truths []Truth, r *report.Report, slowest time.Duration) {
	t.Helper()
	for _, one := range truths {
		from, to := story.Begin.Add(one.From), story.Begin.Add(one.To)
		i := slices.IndexFunc(r.Targets, func(t report.Target) bool { return t.Name == one.Instance })
		require.GreaterOrEqual(t, i, 0, one.Instance)
		// When it was said first, and what was said for longest, without the code that compares
		// incidents.
		var first time.Time
		said := map[string]time.Duration{}
		for _, e := range r.Targets[i].Episodes {
			if e.Severity < 2 || e.To.Before(from) || e.From.After(to) {
				continue
			}
			if first.IsZero() {
				first = e.From
			}
			said[e.Condition] += e.To.Sub(e.From)
			said[e.Cause] += e.To.Sub(e.From)
		}
		if !assert.False(t, first.IsZero(), "%s at %s is missed", one.Name, from) {
			continue
		}
		assert.WithinRange(t, first, from, from.Add(slowest), "%s at %s", one.Name, from)
		assert.Positive(t, said[one.Cause], "%s at %s: %v", one.Name, from, said)
	}
	// Nothing is said where nothing was done.
	for _, target := range r.Targets {
		for _, e := range target.Episodes {
			if e.Severity < 2 || e.Warmup {
				continue
			}
			assert.True(t, slices.ContainsFunc(truths, func(one Truth) bool {
				return one.Instance == target.Name && !e.From.Before(story.Begin.Add(one.From)) && !e.From.After(story.Begin.Add(one.To+one.Drain))
			}), "%s says %s %s at %s, when nothing was done", target.Name, e.Condition, e.Cause, e.From)
		}
	}
}

// A real Prometheus holds three hours of two servers with three incidents. What the command
// reports is what was done to them, its would-be alerts are those of the rule engine over
// the same samples, and its own alerts are those that fired.
func TestBacktestOfARealPrometheusFindsTheIncidents(t *testing.T) {
	program := vllmctl(t)
	story, truths := Short(time.Now().UTC().Add(-24 * time.Hour).Truncate(2 * time.Hour))
	// Prometheus itself had the rules that are shipped for vLLM's own names.
	rules := t.TempDir()
	require.NoError(t, shipped.WriteIn(rules, spelling.Wire))
	story.Rules = []string{filepath.Join(rules, "rules", "wire", "vllm.yaml")}
	history := record(t, story)
	from, to := story.Begin.Add(90*time.Minute), story.Begin.Add(story.Length)
	page := filepath.Join(t.TempDir(), "page.html")
	args := []string{
		"backtest", "--prometheus", history.address, "--from", from.Format(time.RFC3339), "--to", to.Format(time.RFC3339), "--warmup", "90m",
		"--vllm-version", "0.20.0", "--incidents", incidents(t, story, truths),
	}
	stdout, stderr, status := command(t, program, append(args, "--json", "--html", page, "--rules", "builtin-raw", "--rules", "builtin", "--evaluation-interval", "30s")...)
	require.Zero(t, status, "%s\n%s", stdout, stderr)
	var r report.Report
	require.NoError(t, json.Unmarshal([]byte(stdout), &r))
	check(t, story, truths, &r, 6*time.Minute)
	assert.Equal(t, 3, r.Summary.Incidents)
	assert.Zero(t, r.Summary.Missed)
	assert.Equal(t, 3, r.Summary.RightCause)
	assert.Zero(t, r.Summary.FalseAlarms)
	assert.Empty(t, r.RuleProblems)
	for _, one := range r.Targets {
		// 90 minutes of a scrape every 15 s.
		assert.Equal(t, 360, one.Coverage.Scrapes)
		assert.InDelta(t, 5400, one.Coverage.Observed, 20)
		assert.Zero(t, one.Coverage.Gaps)
	}
	assert.Equal(t, 40, r.Targets[0].Coverage.Failed, "ten minutes")
	sameAlerts(t, history.own, r.Own, from)
	var fired []string
	for _, f := range r.Alerts {
		fired = append(fired, f.Alert)
	}
	for _, want := range []string{"VLLMRawServerDown", "VLLMRawServerStalled", "VLLMServerNotServing", "VLLMServerDegraded"} {
		assert.Contains(t, fired, want)
	}
	// The rules that Prometheus had fired then exactly as they would have fired.
	raw := func(all []rulestore.Firing) []rulestore.Firing {
		return slices.DeleteFunc(slices.Clone(all), func(f rulestore.Firing) bool { return !strings.HasPrefix(f.Alert, "VLLMRaw") })
	}
	sameAlerts(t, raw(history.own), raw(r.Alerts), from)
	data, err := os.ReadFile(page)
	require.NoError(t, err)
	assert.Contains(t, string(data), "GPU clock falls")

	text, _, status := command(t, program, append(args, "--rules", "builtin")...)
	require.Zero(t, status, text)
	assert.Contains(t, text, "slow_steps")
	assert.Contains(t, text, "cause: right, stalled")
	if *keep != "" {
		require.NoError(t, os.WriteFile(filepath.Join(*keep, "short.txt"), []byte(text), 0o600))
		require.NoError(t, os.WriteFile(filepath.Join(*keep, "short.html"), data, 0o600))
		require.NoError(t, os.WriteFile(filepath.Join(*keep, "short.json"), []byte(stdout), 0o600))
	}
	// An incident that nobody could see, and one that is left out.
	wrong := append([]Truth{{Name: "invented", Instance: "chat-1:8000", From: 95 * time.Minute, To: 97 * time.Minute, Cause: "erroring"}}, truths[1:]...)
	args[len(args)-1] = incidents(t, story, wrong)
	stdout, _, status = command(t, program, append(args, "--json")...)
	require.Equal(t, 1, status)
	require.NoError(t, json.Unmarshal([]byte(stdout), &r))
	assert.Equal(t, 1, r.Summary.Missed)
	assert.True(t, r.Incidents[0].Missed)
	assert.Positive(t, r.Summary.FalseAlarms)
}

// sameAlerts compares the own alerts that were read with those that the rule engine of the
// history had. The last evaluation of an alert is known, and not when the next one was.
func sameAlerts(t *testing.T, want, got []rulestore.Firing, from time.Time) {
	t.Helper()
	want = slices.DeleteFunc(slices.Clone(want), func(f rulestore.Firing) bool { return !f.To.After(from) })
	require.NotEmpty(t, want)
	require.Len(t, got, len(want))
	for i := range want {
		assert.Equal(t, want[i].Alert, got[i].Alert)
		assert.True(t, want[i].From.Equal(got[i].From), "%s: %s and %s", want[i].Alert, want[i].From, got[i].From)
		assert.WithinDuration(t, want[i].To, got[i].To, time.Second, want[i].Alert)
	}
}

// The week of make backtest-week: three servers with an incident every ten hours, of five
// kinds. Every one is found with its cause, and nothing else is reported.
func TestBacktestOfASimulatedWeekFindsEachIncident(t *testing.T) {
	if !*week {
		t.Skip("only with -week: run make backtest-week")
	}
	program := vllmctl(t)
	story, truths := Week(time.Now().UTC().Add(-8 * 24 * time.Hour).Truncate(2 * time.Hour))
	history := record(t, story)
	from, to := story.Begin.Add(2*time.Hour), story.Begin.Add(story.Length)
	page := filepath.Join(t.TempDir(), "page.html")
	args := []string{
		"backtest", "--prometheus", history.address, "--from", from.Format(time.RFC3339), "--to", to.Format(time.RFC3339), "--warmup", "2h",
		"--vllm-version", "0.20.0", "--incidents", incidents(t, story, truths), "--rules", "builtin",
	}
	stdout, stderr, _ := command(t, program, append(args, "--json", "--html", page)...)
	var r report.Report
	require.NoError(t, json.Unmarshal([]byte(stdout), &r), stderr)
	if *keep != "" {
		data, err := os.ReadFile(page)
		require.NoError(t, err)
		text, _, _ := command(t, program, args...)
		require.NoError(t, os.WriteFile(filepath.Join(*keep, "week.txt"), []byte(text), 0o600))
		require.NoError(t, os.WriteFile(filepath.Join(*keep, "week.html"), data, 0o600))
	}
	t.Logf("%d incidents, %d missed, cause right in %d and wrong in %d, %d false alarms; %.0f s for %d samples",
		r.Summary.Incidents, r.Summary.Missed, r.Summary.RightCause, r.Summary.WrongCause, r.Summary.FalseAlarms, r.Read.Seconds, r.Read.Samples)
	check(t, story, truths, &r, 8*time.Minute)
	sameAlerts(t, history.own, r.Own, from)
	assert.Zero(t, r.Summary.Missed)
	assert.Zero(t, r.Summary.WrongCause)
	assert.Zero(t, r.Summary.FalseAlarms)
}
