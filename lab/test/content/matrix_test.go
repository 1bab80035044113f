package content

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/content"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/rulefile"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/spelling"
	"github.com/otelcol-vllm/otelcol-vllm/internal/test/race"
	"github.com/otelcol-vllm/otelcol-vllm/lab/test/history"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/scenario"
)

var flagMatrix = flag.Bool("matrix", false, "evaluate all stories, and write the times into matrix.tsv and pages.tsv")

// few are the stories of a run without -matrix.
var few = []string{"healthy", "bandwidth-loss", "stalled", "replica-imbalance"}

// ruleFile is the file of the shipped rules in a spelling.
func ruleFile(t *testing.T, to spelling.Spelling) string {
	t.Helper()
	rules, err := rulefile.Plain(to)
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "vllm.yaml")
	require.NoError(t, os.WriteFile(file, rules, 0o600))
	return file
}

// entry is one row of the matrix.
type entry struct {
	story *history.Story
	want  expected
	// objectives are those of the processor.
	objectives []objective
}

// objective is one of the processor's objectives.
type objective struct {
	events    func(h *history.History, threshold time.Duration) []history.Event
	threshold time.Duration
	target    float64
}

func entries(t *testing.T) (all []entry) {
	t.Helper()
	files, err := filepath.Glob(root + "/examples/scenarios/*.yaml")
	require.NoError(t, err)
	wanted := ofScenarios()
	maps.Copy(wanted, ofStories())
	wanted = firing(content.Stable, wanted)
	own := stories()
	require.Len(t, wanted, len(files)+len(own), "each scenario and each story has an expectation, and alerts fire in no other")
	for _, file := range files {
		s, err := scenario.Load(file)
		require.NoError(t, err)
		want, known := wanted[s.Name]
		require.True(t, known, s.Name)
		story := history.FromScenario(&s)
		if want.to > 0 && *flagMatrix {
			// Nothing happens any more, and alerts end.
			story.Length += 25 * time.Minute
		}
		// An objective about the whole latency leaves the baselines in charge of the first
		// token and of the gaps, so that a scenario is judged as without objectives.
		story.Processor = map[string]any{"objectives": []any{
			map[string]any{"name": "e2e", "metric": "vllm.e2e_request_latency", "threshold": "10s", "target": 0.95},
		}}
		all = append(all, entry{story, want, []objective{{history.Latencies, 10 * time.Second, 0.95}}})
	}
	for _, s := range own {
		want, known := wanted[s.Name]
		require.True(t, known, s.Name)
		promised := []objective{{history.FirstTokens, 2500 * time.Millisecond, 0.95}, {history.Gaps, 100 * time.Millisecond, 0.99}}
		if _, own := s.Processor["objectives"]; own {
			promised = nil // Without any.
		}
		all = append(all, entry{s, want, promised})
	}
	return all
}

// Each alert fires in the stories in which it must, soon and for the right servers, and
// no other alert fires.
func TestAlertsFireWhereTheyMust(t *testing.T) {
	race.SkipSequential(t)
	file := ruleFile(t, spelling.Suffixed)
	rules := inhibitions(t, root+"/content/alertmanager/inhibition.yaml")
	all := entries(t)
	rows, incidents := make([]string, len(all)), make([]*incident, len(all))
	t.Run("stories", func(t *testing.T) {
		for i, e := range all {
			if !*flagMatrix && !slices.Contains(few, e.story.Name) {
				continue
			}
			t.Run(e.story.Name, func(t *testing.T) {
				t.Parallel()
				if e.story.Length > 12*time.Hour {
					e.story.Every = time.Minute
				}
				h := history.Play(t, e.story, history.Suffixed)
				fired := h.Stores[0].Rules(t, h.Begin, h.End, file)
				byAlert, recovery := compared(t, h, &e, fired), recoveries(h, &e.want, e.story.Length)
				rows[i], incidents[i] = table(&e, recovery, byAlert), newIncident(&e, recovery, rules, fired, byAlert)
			})
		}
	})
	t.Log(summary(incidents))
	// A run of some stories writes nothing.
	if t.Failed() || !*flagMatrix || slices.Contains(incidents, nil) {
		return
	}
	for i, row := range rows {
		if row == "" {
			rows[i] = all[i].story.Name + "\t-\t-\t-\t-\t-\n"
		}
	}
	table := "Scenario\tAlert\tSeverity\tFires after\tOpens\tEnds after recovery\n" + strings.Join(rows, "")
	require.NoError(t, os.WriteFile("matrix.tsv", []byte(table), 0o600))
}

// A test that shows an alert instead of a story exists, here or beside the alert.
func TestWhatShowsAnAlertExists(t *testing.T) {
	var tests strings.Builder
	for _, pattern := range []string{"*_test.go", root + "/cmd/vllmctl/content/*_test.go"} {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		require.NotEmpty(t, files, pattern)
		for _, file := range files {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			tests.Write(text)
		}
	}
	for _, group := range content.Groups() {
		for i := range group.Alerts {
			if name := group.Alerts[i].ShownBy; name != "" {
				assert.Contains(t, tests.String(), "\nfunc "+name+"(", "ShownBy of %s", group.Alerts[i].Name)
			}
		}
	}
}

// The alerts on vLLM's own names, for people without our processor, fire where the truth says
// so. They see less: a slow step that keeps within the limits is none of theirs.
func TestAlertsOnRawNames(t *testing.T) {
	race.SkipSequential(t)
	file := ruleFile(t, spelling.Wire)
	for name, want := range ofRawNames() {
		if !*flagMatrix && name != "unreachable" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			s := loaded(t, name)
			story := history.FromScenario(s)
			story.Wire, story.NoProcessor = true, true
			h := history.Play(t, story, history.Suffixed)
			fired := h.Stores[0].Rules(t, h.Begin, h.End, file)
			// The limits are those of an objective of 95 % within 2.5 s.
			burns := burns(history.FirstTokens(h, 2500*time.Millisecond), 0.95, s.Length)
			compare(t, want, fired, map[string]verdict{rawLateFast: burns[burnFast], rawLateMedium: burns[burnMedium]})
		})
	}
}

// compared compares what fired with the truth, and returns it by alert.
func compared(t *testing.T, h *history.History, e *entry, fired []history.Firing) map[string][]history.Firing {
	t.Helper()
	truth := map[string]verdict{}
	if !e.story.NoProcessor {
		for _, o := range e.objectives {
			for alert, v := range burns(o.events(h, o.threshold), o.target, e.story.Length) {
				truth[alert] = max(truth[alert], v)
			}
		}
	}
	return compare(t, e.want, fired, truth)
}

// compare fails the test where an alert fires that must not, or not when it must, and
// returns what fired. truth is about alerts on burn rates.
func compare(t *testing.T, want expected, fired []history.Firing, truth map[string]verdict) map[string][]history.Firing {
	t.Helper()
	late, lingers := cmp.Or(want.late, tenMinutes), cmp.Or(want.lingers, twentyMinutes)
	byAlert := map[string][]history.Firing{}
	for _, f := range fired {
		byAlert[f.Alert] = append(byAlert[f.Alert], f)
		_, must := want.fires[f.Alert]
		_, may := want.may[f.Alert]
		if !must && !may && truth[f.Alert] == never {
			assert.Fail(t, "an alert that must be silent", "%s", f)
		}
	}
	for name, v := range truth {
		if v == must {
			assert.NotEmpty(t, byAlert[name], "%s must fire: the simulated requests use up the budget as fast", name)
		}
	}
	if len(want.either) > 0 {
		assert.True(t, slices.ContainsFunc(want.either, func(name string) bool { return len(byAlert[name]) > 0 }), "one of %v must fire", want.either)
	}
	for name, servers := range want.fires {
		got := byAlert[name]
		if !assert.NotEmpty(t, got, "%s must fire", name) {
			continue
		}
		named := map[string]bool{}
		for _, f := range got {
			named[f.Labels.Get("instance")] = true
			assert.GreaterOrEqual(t, f.From, want.from, "%s is too early", f)
			assert.LessOrEqual(t, f.From, want.to+lingers, "%s is too late", f)
			assert.LessOrEqual(t, f.To, want.to+cmp.Or(want.ends, late+lingers), "%s does not end", f)
		}
		assert.LessOrEqual(t, got[0].From, want.from+late, "%s is too late", got[0])
		if len(servers) > 0 {
			assert.ElementsMatch(t, servers, slices.Collect(maps.Keys(named)), name)
		}
	}
	return byAlert
}

// short writes a duration without zeros at its end.
func short(d time.Duration) string {
	text := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-2]
		}
	}
	return text
}

// table returns the rows of a story: of each alert the first time, how often it opened, and the last
// time, since the recovery of what it names.
func table(e *entry, recovery map[string]time.Duration, byAlert map[string][]history.Firing) string {
	var out strings.Builder
	for _, name := range slices.Sorted(maps.Keys(byAlert)) {
		first, last, late, lasts := time.Duration(math.MaxInt64), time.Duration(0), time.Duration(math.MinInt64), false
		for _, f := range byAlert[name] {
			first, last, late, lasts = min(first, f.From), max(last, f.To), max(late, after(recovery, &f)), lasts || f.Lasts
		}
		ends := short(late)
		switch {
		case lasts:
			ends = "fires at the end of the story"
		case e.want.forgets:
			ends = "by itself, " + short(last-first) + " after it fired"
		case late < 0:
			ends = "before it"
		}
		fired := byAlert[name]
		fmt.Fprintf(&out, "%s\t%s\t%s\t%s\t%d\t%s\n", e.story.Name, name, fired[0].Labels.Get("severity"), short(first-e.want.from), opens(fired), ends)
	}
	return out.String()
}

// verdict is what the simulated requests say about an alert on burn rates.
type verdict int

const (
	never verdict = iota
	// near is close to the limit: the alert may fire.
	near
	must
)

// burns computes from the events of an objective which alerts on burn rates are right.
func burns(events []history.Event, target float64, length time.Duration) map[string]verdict {
	out := map[string]verdict{}
	for _, rule := range []struct {
		alert       string
		factor      float64
		long, short time.Duration
		events      float64
		// covered is how much of the long window must have been seen.
		covered time.Duration
	}{
		{burnFast, 14.4, time.Hour, 5 * time.Minute, 10, 0},
		{burnMedium, 6, 6 * time.Hour, 30 * time.Minute, 30, 0},
		{burnSlow, 3, 24 * time.Hour, 2 * time.Hour, 60, 6 * time.Hour},
		{burnLeak, 1, 72 * time.Hour, 6 * time.Hour, 100, 18 * time.Hour},
	} {
		// From 90 % on it is enough for each.
		limit := min(rule.factor*(1-target), 0.9)
		above, sure := 0, 0
		const step = time.Minute
		for at := step + rule.covered; at <= length; at += step {
			long, _ := history.Missed(events, at, rule.long)
			brief, n := history.Missed(events, at, rule.short)
			if min(long, brief) > 0.8*limit && n > 0.7*rule.events {
				above++
			}
			if min(long, brief) > 1.2*limit && n > 1.3*rule.events {
				sure++
			}
		}
		// Long windows are evaluated each five minutes.
		v := never
		switch {
		case sure >= 11:
			v = must
		case above > 0:
			v = near
		}
		out[rule.alert] = max(out[rule.alert], v)
	}
	return out
}
