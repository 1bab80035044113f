package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/backtest/incident"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/backtest/promapi"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/backtest/replay"
)

func (t *text) target(one *Target) {
	c := &one.Coverage
	t.line("\n%s", promapi.Printable(one.Name))
	about := fmt.Sprintf("  %s, %d scrapes", one.Names, c.Scrapes)
	if c.Interval > 0 {
		about += " every " + short(seconds(c.Interval))
	}
	if c.Failed > 0 {
		about += fmt.Sprintf(", %d of them failed", c.Failed)
	}
	if c.Gaps > 0 {
		about += ", without any for " + short(seconds(c.Gaps))
	}
	if c.Engines > 1 {
		about += fmt.Sprintf(", %d engines", c.Engines)
	}
	t.line("%s", about)
	t.episodes(one.Episodes)
	if one.Dropped > 0 {
		t.line("  and %d more changes, which are dropped", one.Dropped)
	}
}

// mostQuiet is the number of servers up to which those without anything to report are listed.
const mostQuiet = 20

// quiet reports whether there is nothing to say about a target: it has data and no episode
// is shown.
func (t *text) quiet(one *Target) bool {
	return one.Coverage.Scrapes > 0 && one.Coverage.Gaps == 0 && one.Coverage.Failed == 0 && one.Dropped == 0 && len(t.shown(one.Episodes)) == 0
}

// shown are the indexes of the episodes to list.
func (t *text) shown(episodes []replay.Episode) []int {
	var out []int
	last := map[replay.Subject]int{}
	for i := range episodes {
		e := &episodes[i]
		before, known := last[e.Subject]
		last[e.Subject] = e.Severity
		if e.To.Before(t.report.From) || !t.all && e.Severity < incident.Serious && (!known || before < incident.Serious) {
			continue
		}
		out = append(out, i)
	}
	return out
}

// episodes lists the changes of a verdict. Without all, what asks for nothing is left out
// where it follows something of the same kind.
func (t *text) episodes(episodes []replay.Episode) {
	shown := t.shown(episodes)
	for _, i := range shown {
		e := &episodes[i]
		engine := ""
		if e.Subject.Engine != "" {
			engine = " engine " + promapi.Printable(e.Subject.Engine)
		}
		verdict := incident.Verdict(e)
		t.line("  %s%s  %s  for %s", t.at(e.From), engine, promapi.Printable(verdict), short(e.To.Sub(e.From)))
		if e.Severity >= incident.Serious && len(e.Evidence) > 0 {
			t.line("      %s", promapi.Printable(strings.Join(e.Evidence, "; ")))
		}
	}
	if len(shown) == 0 {
		t.line("  nothing to report: %s", quiet(episodes, t.report))
	}
}

// quiet says what was reported where nothing asked for anything.
func quiet(episodes []replay.Episode, r *Report) string {
	total := map[string]time.Duration{}
	for i := range episodes {
		if d := r.within(&episodes[i]); d > 0 {
			total[episodes[i].Condition] += d
		}
	}
	if len(total) == 0 {
		return "the history has no verdict in this period"
	}
	names := slices.SortedFunc(maps.Keys(total), func(a, b string) int { return cmp.Compare(total[b], total[a]) })
	parts := make([]string, len(names))
	for i, name := range names {
		parts[i] = name + " for " + short(total[name])
	}
	return strings.Join(parts, ", ")
}
