package content

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/content"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/spelling"
	"github.com/otelcol-vllm/otelcol-vllm/internal/test/race"
	"github.com/otelcol-vllm/otelcol-vllm/lab/judge"
	accuracy "github.com/otelcol-vllm/otelcol-vllm/lab/test/accuracy/stories"
	"github.com/otelcol-vllm/otelcol-vllm/lab/test/history"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/scenario"
)

var (
	flagPages     = flag.Int("pages", 0, "draw so many stories of great harm, and fail where they page too late")
	flagPagesSeed = flag.Uint64("pages.seed", 1, "the first seed of the stories of -pages")
)

const (
	// ordinary is how long traffic is ordinary before anything happens.
	ordinary = time.Hour
	// pageSoon is within how long great harm pages, in pagesShare of the stories.
	pageSoon, pagesShare = 150 * time.Second, 0.95
)

// paged is when somebody was woken in one story: by our alerts, and by the rules on vLLM's own names.
type paged struct {
	name       string
	ours, wire []history.Firing
	outcomes   []engine.Outcome
}

// playPages plays a story twice, with our processor and with vLLM's own names only.
func playPages(t *testing.T, s *history.Story) *paged {
	t.Helper()
	pages := func(wire bool, file string) ([]history.Firing, *history.History) {
		one := *s
		one.Wire, one.NoProcessor = wire, wire
		h := history.Play(t, &one, history.Suffixed)
		return slices.DeleteFunc(h.Stores[0].Rules(t, h.Begin, h.End, file), func(f history.Firing) bool {
			return f.Labels.Get("severity") != string(content.Page)
		}), h
	}
	out := &paged{name: s.Name}
	out.wire, _ = pages(true, ruleFile(t, spelling.Wire))
	var h *history.History
	out.ours, h = pages(false, ruleFile(t, spelling.Suffixed))
	for _, all := range h.Outcomes {
		out.outcomes = append(out.outcomes, all...)
	}
	return out
}

// neverPaged is no page.
const neverPaged = time.Duration(-1)

// first is when the first of the pages that matter from a time on began: one that is open then, or the
// next one. open is false where only those that follow count.
func first(pages []history.Firing, from time.Duration, open bool) time.Duration {
	for i := range pages {
		if p := &pages[i]; p.From >= from || open && p.To > from {
			return max(p.From, from)
		}
	}
	return neverPaged
}

// verdictOn compares the pages of a story with the start of the harm.
func (p *paged) verdictOn(begin time.Duration) (ours, wire time.Duration, later bool) {
	ours, wire = first(p.ours, begin, true), first(p.wire, begin, false)
	return ours, wire, wire != neverPaged && (ours == neverPaged || ours > wire)
}

// line says when a story paged.
func (p *paged) line(begin, ours, wire time.Duration) string {
	return fmt.Sprintf("%s: harm from %s; paged after %s, vLLM's own names after %s",
		p.name, begin.Round(time.Second), sinceBegin(ours, begin), sinceBegin(wire, begin))
}

func sinceBegin(at, begin time.Duration) string {
	if at == neverPaged {
		return "never"
	}
	return short((at - begin).Round(time.Second))
}

// delayed lets a scenario begin after an hour of ordinary traffic.
func delayed(s *scenario.Scenario) *history.Story {
	c := &s.Config
	for _, all := range append([][]engine.Change{c.Changes}, c.TargetChanges...) {
		for i := range all {
			all[i].At += ordinary.Seconds()
		}
	}
	for i := range c.Faults {
		c.Faults[i].At += ordinary.Seconds()
		c.Faults[i].Until += ordinary.Seconds()
	}
	s.Length += ordinary
	return history.FromScenario(s)
}

// After an hour of ordinary traffic our page is never later than one on vLLM's own names that follows
// the start of the harm.
func TestAlertsPageBeforeThoseOnRawNames(t *testing.T) {
	race.SkipSequential(t)
	wanted := firing(content.Stable, ofScenarios())
	wanted["long stalled"] = wanted["stalled"]
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(wanted)), func(name string) bool {
		// What GPUs do is like slow-steps for vLLM's own names. Stories of this package are no scenarios.
		found, err := filepath.Glob(scenarioFile(name))
		return err != nil || len(found) == 0 || wanted[name].to == 0 || strings.HasPrefix(name, "gpu-") || !*flagMatrix && name != "unreachable"
	})
	rows, played := make([]string, len(names)), make([]bool, len(names))
	t.Run("stories", func(t *testing.T) {
		for i, name := range names {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				s := loaded(t, name)
				p := playPages(t, delayed(s))
				played[i] = true
				begin := wanted[name].from + ordinary
				ours, wire, later := p.verdictOn(begin)
				if wire != neverPaged {
					rows[i] = fmt.Sprintf("%s\t%s\t%s\n", name, sinceBegin(ours, begin), sinceBegin(wire, begin))
					t.Log(rows[i])
				}
				assert.False(t, later, "paged after %s, later than one on vLLM's own names after %s", sinceBegin(ours, begin), sinceBegin(wire, begin))
			})
		}
	})
	// A run of some stories writes nothing.
	if !*flagMatrix || slices.Contains(played, false) {
		return
	}
	table := "Scenario\tOurs\tOn vLLM's own names\n" + strings.Join(rows, "")
	require.NoError(t, os.WriteFile("pages.tsv", []byte(table), 0o600))
}

func scenarioFile(name string) string {
	return filepath.Join(root, "examples", "scenarios", strings.TrimPrefix(name, "long ")+".yaml")
}

// loaded is a scenario; "long stalled" is one whose engine hangs for a quarter of an hour.
func loaded(t *testing.T, name string) *scenario.Scenario {
	t.Helper()
	s, err := scenario.Load(scenarioFile(name))
	require.NoError(t, err)
	if name == "long stalled" {
		s.Config.Changes[1].At, s.Length = 1500, 40*time.Minute
	}
	return &s
}

// drawn is the n-th story: a server and its traffic, a load, and what happens to it after an hour.
func drawn(t *testing.T, seed uint64, n int) *history.Story {
	t.Helper()
	d := rand.New(rand.NewPCG(seed, 0x9a6e))
	between := func(low, high float64) float64 { return low + (high-low)*d.Float64() }
	load, onset := between(0.4, 0.85), ordinary.Seconds()+between(0, 600)
	const lasts, rest = 600, 900
	length := onset + lasts + rest
	model, closed, workload, err := accuracy.Server(n, load, 90_000_000+seed, length)
	require.NoError(t, err)
	c := vllmsim.Config{Dialect: "v1", Hardware: model, Seed: 90_000_000 + seed, Workload: &workload}
	during := func(value, usual float64, of ...engine.Parameter) {
		for _, p := range of {
			c.Changes = append(c.Changes, engine.Change{At: onset, Parameter: p, Value: value}, engine.Change{At: onset + lasts, Parameter: p, Value: usual})
		}
		slices.SortStableFunc(c.Changes, func(a, b engine.Change) int { return int(a.At - b.At) })
	}
	kinds := []string{"hang", "slow steps", "unreachable", "errors", "few KV blocks", "overload"}
	if closed {
		kinds = kinds[:5] // A fixed number of clients cannot be too many at once.
	}
	kind, value := kinds[(n/12+n)%len(kinds)], 1.0
	switch kind {
	case "hang":
		during(1, 0, engine.ParamStall)
	case "overload":
		value = between(1.5, 5)
		during(value/load, 1, engine.ParamArrivalRate)
	case "slow steps":
		value = between(3, 10)
		during(1/value, 1, engine.ParamBandwidth, engine.ParamClock)
	case "unreachable":
		c.Faults = []vllmsim.Fault{{Kind: vllmsim.FaultUnreachable, At: onset, Until: onset + lasts}}
	case "errors":
		value = 0.6
		during(value, 0, engine.ParamErrorRate)
	case "few KV blocks":
		value = between(0.02, 0.2)
		during(value, 1, engine.ParamBlocks)
	}
	return &history.Story{
		Name:    fmt.Sprintf("seed %d, %s %.2f on %s at %.0f %% of its capacity", seed, kind, value, model, 100*load),
		Length:  time.Duration(length) * time.Second,
		Servers: []history.Servers{{Config: c, Name: "vllm", Namespace: "chat"}},
		// Nothing is configured, not even objectives.
		Processor: map[string]any{"objectives": []any{}},
	}
}

// greatHarm is when users of a story began to feel great harm from the onset on, and for how long, by the
// judge's limits; without, it is why such a story does not count. Nothing of the collector is used. Nobody
// reaches a server that is unreachable, whatever it computes.
func greatHarm(s *history.Story, outcomes []engine.Outcome) (begin, lasts time.Duration, none string) {
	c := &s.Servers[0].Config
	since := func(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
	if len(c.Faults) > 0 {
		return since(c.Faults[0].At), since(c.Faults[0].Until - c.Faults[0].At), ""
	}
	onset := c.Changes[0].At
	var all []judge.Sent
	for i := range outcomes {
		o := &outcomes[i]
		one := judge.Sent{At: o.Arrived, End: o.Ended - o.Arrived, How: judge.Left, Output: o.Output}
		switch o.End {
		case engine.EndStop, engine.EndLength:
			one.How = judge.Answered
		case engine.EndRefused:
			one.How = judge.Refused
		case engine.EndError, engine.EndAborted:
			one.How = judge.Failed
		}
		if o.FirstToken > 0 {
			one.Tokens = judge.Times{o.FirstToken}
			if o.Output > 1 && one.End > o.FirstToken {
				one.Tokens = append(one.Tokens, one.End)
			}
		}
		all = append(all, one)
	}
	usual := usually(outcomes, since(onset))
	felt := slices.DeleteFunc(judge.FeltHarm(all, judge.Usual{First: usual.first, Token: usual.token}, s.Length.Seconds()), func(f judge.Felt) bool {
		return f.Level != judge.Great
	})
	for i, f := range felt {
		over := f.To
		for _, next := range felt[i:] { // In the order of their beginnings.
			if next.From <= over+60 {
				over = max(over, next.To)
			}
		}
		// Tokens count as spread evenly, so those of a request that hangs are late before it does.
		if f.From < onset-60 {
			return 0, 0, "its traffic alone does great harm before"
		}
		if f.To > onset {
			return since(max(f.From, onset)), since(over - max(f.From, onset)), ""
		}
	}
	return 0, 0, "no great harm"
}

// Great harm pages in time, without any configuration, in stories on which nothing was tuned.
func TestGreatHarmPagesInTime(t *testing.T) {
	race.SkipSequential(t)
	if *flagPages == 0 {
		t.Skip("-pages is how many stories to draw")
	}
	of, inTime := 0, 0
	for n := range *flagPages {
		// One after the other: each is some minutes of many requests.
		t.Run("", func(t *testing.T) {
			s := drawn(t, *flagPagesSeed+uint64(n), n)
			p := playPages(t, s)
			begin, lasts, none := greatHarm(s, p.outcomes)
			if none != "" {
				t.Logf("not counted: %s: %s; %d pages", s.Name, none, len(p.ours))
				return
			}
			ours, wire, later := p.verdictOn(begin)
			soon := ours != neverPaged && ours-begin <= pageSoon
			if lasts < pageSoon && !soon {
				t.Logf("not counted: over after %s: %s", lasts.Round(time.Second), p.line(begin, ours, wire))
				return
			}
			of++
			if soon {
				inTime++
			}
			if !soon || later {
				t.Log(p.line(begin, ours, wire))
			}
			assert.False(t, later, "a page that is later than one on vLLM's own names")
		})
	}
	t.Logf("%d of %d stories of great harm paged within %s", inTime, of, short(pageSoon))
	assert.GreaterOrEqual(t, float64(inTime), pagesShare*float64(of))
}

// A page is in time that is open when great harm begins, or the next one; of vLLM's own names only one that
// follows is compared.
func TestThePagesOfAStoryAreCompared(t *testing.T) {
	at := func(from, to time.Duration) []history.Firing {
		return []history.Firing{{From: from * time.Minute, To: to * time.Minute}}
	}
	const begin = 60 * time.Minute
	for _, c := range []struct {
		ours, wire []history.Firing
		want       time.Duration
		later      bool
	}{
		{at(62, 70), at(63, 70), 62 * time.Minute, false},
		{at(64, 70), at(63, 70), 64 * time.Minute, true},
		{at(50, 61), at(60, 70), begin, false},
		{at(50, 55), at(63, 70), neverPaged, true},
		{at(64, 70), at(59, 70), 64 * time.Minute, false},
	} {
		p := &paged{ours: c.ours, wire: c.wire}
		ours, _, later := p.verdictOn(begin)
		assert.Equal(t, c.want, ours)
		assert.Equal(t, c.later, later)
	}
}

// Great harm begins when the waits of clients do, whatever the traffic did in the hour before.
func TestGreatHarmIsWhatClientsWait(t *testing.T) {
	s := drawn(t, 1, 0)
	onset := s.Servers[0].Config.Changes[0].At
	clients := func(wait func(at float64) float64) (all []engine.Outcome) {
		for at := 0.0; at < s.Length.Seconds(); at++ {
			w := wait(at)
			all = append(all, engine.Outcome{Arrived: at, FirstToken: w, Ended: at + w + 0.1, Output: 5, End: engine.EndStop})
		}
		return all
	}
	// Whoever comes after the onset waits until 300 s after it.
	begin, lasts, none := greatHarm(s, clients(func(at float64) float64 {
		if at < onset {
			return 0.2
		}
		return max(0.2, onset+300-at)
	}))
	assert.Empty(t, none)
	assert.InDelta(t, onset+10, begin.Seconds(), 10)
	assert.InDelta(t, onset+300, (begin + lasts).Seconds(), 10)
	_, _, none = greatHarm(s, clients(func(float64) float64 { return 0.2 }))
	assert.NotEmpty(t, none)
	_, _, none = greatHarm(s, clients(func(at float64) float64 {
		if at > 900 && at < 1000 {
			return 20
		}
		return 0.2
	}))
	assert.Contains(t, none, "before")
}
