package content

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/otelcol-vllm/otelcol-vllm/lab/test/history"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
)

// soon is how long after the recovery an alert may still fire.
const soon = 2 * time.Minute

// means are what the clients of a minute saw.
type means struct{ first, token, failed, waited float64 }

// saw is of the requests whose first token or whose end is in the minute from a time on.
func saw(all []engine.Outcome, from time.Duration) (m means) {
	in := func(at float64) bool { return at >= from.Seconds() && at < (from+time.Minute).Seconds() }
	var read, ended float64
	for i := range all {
		o := &all[i]
		if o.FirstToken > 0 && in(o.Arrived+o.FirstToken) {
			m.waited++
			m.first += o.FirstToken
		}
		if !in(o.Ended) || o.End == engine.EndRefused || o.End == engine.EndNone {
			continue
		}
		ended++
		if o.End == engine.EndError || o.End == engine.EndAborted {
			m.failed++
		}
		if o.MeanGap > 0 {
			read++
			m.token += o.MeanGap
		}
	}
	return means{m.first / max(1, m.waited), m.token / max(1, read), m.failed / max(1, ended), m.waited}
}

// recovered is when the clients of a server are served as usual again: the start of the first minute
// from the end of the fault on in which first tokens are no more than 30 % and 100 ms, tokens no more than
// 30 % and 5 ms later than in the median minute before the fault, and 5 % fail at most: the judge's bar. It knows nothing of the collector. Without clients it is the end of the fault.
func recovered(all []engine.Outcome, from, to, length time.Duration) time.Duration {
	usual := usually(all, from)
	if usual.waited == 0 {
		return to
	}
	for at := to; at < length; at += 5 * time.Second {
		m := saw(all, at)
		if m.waited > 0 && m.first-usual.first <= max(0.3*usual.first, 0.1) && m.token-usual.token <= max(0.3*usual.token, 0.005) && m.failed <= 0.05 {
			return at
		}
	}
	return length
}

// usually is the median of the minutes before a time: bursts of the traffic are not usual.
func usually(all []engine.Outcome, before time.Duration) means {
	var first, token, waited []float64
	for at := time.Minute; at+time.Minute <= before; at += time.Minute {
		if m := saw(all, at); m.waited > 0 {
			first, token, waited = append(first, m.first), append(token, m.token), append(waited, m.waited)
		}
	}
	if len(first) == 0 {
		return means{}
	}
	return means{first: median(first), token: median(token), waited: median(waited)}
}

func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}

// recoveries are by server; that of "" is the last one.
func recoveries(h *history.History, want *expected, length time.Duration) map[string]time.Duration {
	out := map[string]time.Duration{"": want.to}
	for host, all := range h.Outcomes {
		out[host] = recovered(all, want.from, want.to, length)
		out[""] = max(out[""], out[host])
	}
	return out
}

// after is how long after the recovery of what it names a firing ended.
func after(recovery map[string]time.Duration, f *history.Firing) time.Duration {
	host := f.Labels.Get("instance")
	if _, known := recovery[host]; !known {
		host = ""
	}
	return f.To - recovery[host]
}

// opens is how often the alert that opened most often did, of those with the same labels.
func opens(fired []history.Firing) int {
	times := map[string]int{}
	for i := range fired {
		times[fired[i].Labels.String()]++
	}
	return slices.Max(slices.Collect(maps.Values(times)))
}

// inhibit is a rule of Alertmanager. A selector of Prometheus has the same matchers.
type inhibit struct {
	source, target []*labels.Matcher
	equal          []string
}

// inhibitions are those of a file.
func inhibitions(t *testing.T, path string) (out []inhibit) {
	t.Helper()
	var file struct {
		Rules []struct {
			Source []string `yaml:"source_matchers"`
			Target []string `yaml:"target_matchers"`
			Equal  []string `yaml:"equal"`
		} `yaml:"inhibit_rules"`
	}
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(text, &file))
	matchers := func(all []string) []*labels.Matcher {
		parsed, err := parser.NewParser(parser.Options{}).ParseMetricSelector("{" + strings.Join(all, ",") + "}")
		require.NoError(t, err)
		return parsed
	}
	for _, r := range file.Rules {
		out = append(out, inhibit{matchers(r.Source), matchers(r.Target), r.Equal})
	}
	return out
}

// mutes reports whether an alert that fires mutes another one.
func (r *inhibit) mutes(source, target labels.Labels) bool {
	matches := func(all []*labels.Matcher, of labels.Labels) bool {
		return !slices.ContainsFunc(all, func(m *labels.Matcher) bool { return !m.Matches(of.Get(m.Name)) })
	}
	return matches(r.source, source) && matches(r.target, target) &&
		!slices.ContainsFunc(r.equal, func(name string) bool { return source.Get(name) != target.Get(name) })
}

// heard are the names of those alerts that somebody hears of at a time.
func heard(rules []inhibit, fired []history.Firing, at time.Duration) (out []string) {
	open := slices.DeleteFunc(slices.Clone(fired), func(f history.Firing) bool { return at < f.From || at >= f.To })
	for i := range open {
		muted := slices.ContainsFunc(open, func(source history.Firing) bool {
			return slices.ContainsFunc(rules, func(r inhibit) bool { return r.mutes(source.Labels, open[i].Labels) })
		})
		if !muted {
			out = append(out, strings.TrimSuffix(open[i].Alert+" of "+open[i].Labels.Get("instance"), " of "))
		}
	}
	return out
}

// incident is what the alerts of a story did.
type incident struct {
	story string
	// ends are how long after the recovery each firing ended, of alerts that are not on burn rates: these
	// look at hours by design.
	ends []ending
	// often are alerts that opened more than once.
	often []ending
	// together are the most alerts that were heard at once.
	together []string
}

// ending is a number of something of an alert, of a story.
type ending struct {
	what string
	n    float64
}

// newIncident is that of a story with a recovery.
func newIncident(e *entry, recovery map[string]time.Duration, rules []inhibit, fired []history.Firing, byAlert map[string][]history.Firing) *incident {
	out := &incident{story: e.story.Name}
	for i := range fired {
		f := &fired[i]
		if now := heard(rules, fired, f.From); len(now) > len(out.together) {
			out.together = now
		}
		if e.want.to > 0 && !e.want.forgets && !strings.HasPrefix(f.Alert, "VLLMBudget") {
			out.ends = append(out.ends, ending{e.story.Name + ": " + f.Alert, after(recovery, f).Seconds()})
		}
	}
	for name, all := range byAlert {
		if n := opens(all); n > 1 {
			out.often = append(out.often, ending{e.story.Name + ": " + name, float64(n)})
		}
	}
	return out
}

// summary says how soon alerts end, how often they open, and how many are heard at once.
func summary(all []*incident) string {
	var ends, often, together []ending
	incidents, inTime := 0, 0
	for _, i := range all {
		if i == nil || len(i.together) == 0 {
			continue
		}
		incidents++
		ends, often = append(ends, i.ends...), append(often, i.often...)
		if len(i.together) > 1 {
			together = append(together, ending{i.story + ": " + strings.Join(i.together, ", "), float64(len(i.together))})
		}
	}
	for _, e := range ends {
		if e.n <= soon.Seconds() {
			inTime++
		}
	}
	worst := func(all []ending, unit string) (out string) {
		slices.SortStableFunc(all, func(a, b ending) int { return cmp.Or(cmp.Compare(b.n, a.n), strings.Compare(a.what, b.what)) })
		for _, e := range all[:min(5, len(all))] {
			out += fmt.Sprintf("\n  %s: %.0f%s", e.what, e.n, unit)
		}
		return out
	}
	return fmt.Sprintf("%d of %d firings ended within %s after the recovery; the latest:%s\n%d alerts of %d incidents opened more than once:%s\n%d incidents had several alerts at once that nothing muted:%s",
		inTime, len(ends), short(soon), worst(ends, " s"), len(often), incidents, worst(often, " times"), len(together), worst(together, " alerts"))
}

// A queue that the fault left behind is served late: the recovery is when it is empty, not when the fault ends.
func TestTheRecoveryIsWhenClientsAreServedAsUsual(t *testing.T) {
	var all []engine.Outcome
	for at := 0.0; at < 1200; at++ {
		o := engine.Outcome{Arrived: at, FirstToken: 0.2, MeanGap: 0.02, End: engine.EndStop}
		if at >= 600 && at < 780 {
			o.FirstToken = 780 + (at-600)/3 - at // Nobody is served for three minutes, then three a second.
		}
		o.Ended = at + o.FirstToken + 1
		all = append(all, o)
	}
	// The last of those that waited has its first token at 840 s.
	got := recovered(all, 10*time.Minute, 13*time.Minute, 20*time.Minute)
	assert.InDelta(t, 840, got.Seconds(), 5)
	assert.Equal(t, 13*time.Minute, recovered(nil, 10*time.Minute, 13*time.Minute, 20*time.Minute), "without clients")
	for i := range all {
		if all[i].Ended > 780 && all[i].Ended < 900 && i%10 == 0 {
			all[i].End = engine.EndError
		}
	}
	got = recovered(all, 10*time.Minute, 13*time.Minute, 20*time.Minute)
	assert.Greater(t, got.Seconds(), 845.0, "one of ten fails up to second 900")
}

// One incident is one alert that is heard: what the shipped file mutes does not count, the rest does.
func TestMutedAlertsAreNotHeard(t *testing.T) {
	rules := inhibitions(t, root+"/content/alertmanager/inhibition.yaml")
	firing := func(alert, instance string, from, to time.Duration) history.Firing {
		return history.Firing{Alert: alert, From: from, To: to, Labels: labels.FromStrings("alertname", alert, "instance", instance, "model_name", "m")}
	}
	page, ticket := firing(serverNotServing, "a", 2*time.Minute, 5*time.Minute), firing(serverDegraded, "a", time.Minute, 9*time.Minute)
	other := firing(serverDegraded, "b", time.Minute, 9*time.Minute)
	at := func(at time.Duration) []string {
		return heard(rules, []history.Firing{page, ticket, other}, at)
	}
	assert.Equal(t, []string{serverDegraded + " of a", serverDegraded + " of b"}, at(time.Minute))
	assert.Equal(t, []string{serverNotServing + " of a", serverDegraded + " of b"}, at(2*time.Minute), "the page mutes the ticket of its server")
	assert.Equal(t, []string{serverDegraded + " of a", serverDegraded + " of b"}, at(5*time.Minute))
	assert.Empty(t, at(9*time.Minute))
	assert.Equal(t, 1, opens([]history.Firing{ticket, other}), "two servers open once each")
	assert.Equal(t, 2, opens([]history.Firing{ticket, other, firing(serverDegraded, "a", 10*time.Minute, 11*time.Minute)}))
}
