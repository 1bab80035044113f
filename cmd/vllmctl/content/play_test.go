package content_test

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/rules"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/util/teststorage"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/content"
	"github.com/otelcol-vllm/otelcol-vllm/internal/test/race"
)

// series is one series of a story. Its value is a function of the time since the begin; NaN means that
// there is no sample. A series that ends gets a staleness marker, as a scrape or
// the end of an OTLP series gives it.
type series struct {
	name string
	at   func(time.Duration) float64
}

// constant is a series with one value.
func constant(name string, v float64) series {
	return series{name, func(time.Duration) float64 { return v }}
}

// until is a series that ends.
func until(end time.Duration, s series) series {
	return series{s.name, func(t time.Duration) float64 {
		if t >= end {
			return math.NaN()
		}
		return s.at(t)
	}}
}

// from is a series that begins late.
func from(begin time.Duration, s series) series {
	return series{s.name, func(t time.Duration) float64 {
		if t < begin {
			return math.NaN()
		}
		return s.at(t)
	}}
}

// counter grows by so much per second, and by another rate from a time on.
func counter(name string, before float64, change time.Duration, after float64) series {
	return series{name, func(t time.Duration) float64 {
		if t < change {
			return before * t.Seconds()
		}
		return before*change.Seconds() + after*(t-change).Seconds()
	}}
}

// firing is a time in which an alert fires.
type firing struct {
	alert, labels string
	from, to      time.Duration // to is the last evaluation at which it fires.
}

// player evaluates the groups as Prometheus does: with the real rule engine, over samples that a
// real storage holds.
type player struct {
	*testing.T
	storage *teststorage.TestStorage
	groups  []*rules.Group
	at      map[string]int // the series that have a sample now, by name
	engine  *promql.Engine
	// noMarkers is true where a moment without a sample is one between two scrapes.
	noMarkers bool
}

var epoch = time.Unix(1_700_000_000, 0).Truncate(time.Hour)

// newPlayer leaves out what the alerts say, which takes as long as all the rest.
func newPlayer(t *testing.T, names ...string) *player {
	t.Helper()
	groups := content.Groups()
	for i := range groups {
		for j := range groups[i].Alerts {
			groups[i].Alerts[j].Description = ""
		}
	}
	return newPlayerOf(t, groups, names...)
}

// newPlayerOf takes the groups of these names.
func newPlayerOf(t *testing.T, groups []content.Group, names ...string) *player {
	t.Helper()
	race.SkipSequential(t)
	p := &player{T: t, storage: teststorage.New(t), at: map[string]int{}}
	p.engine = promql.NewEngine(promql.EngineOpts{
		MaxSamples: 50_000_000, Timeout: time.Minute, EnableAtModifier: true, Parser: parser.NewParser(parser.Options{}),
	})
	options := &rules.ManagerOptions{
		NotifyFunc: func(context.Context, string, ...*rules.Alert) {},
		QueryFunc:  rules.EngineQueryFunc(p.engine, p.storage), Context: t.Context(), Appendable: p.storage, Queryable: p.storage,
	}
	rules.NewManager(options) // it fills in what the groups need.
	for _, g := range groups {
		if !slices.Contains(names, g.Name) {
			continue
		}
		p.groups = append(p.groups, rules.NewGroup(rules.GroupOptions{
			Name: g.Name, Interval: max(g.Interval, 15*time.Second), Rules: p.rules(&g), Opts: options,
		}))
	}
	require.Len(t, p.groups, len(names))
	return p
}

func (p *player) rules(g *content.Group) (all []rules.Rule) {
	p.Helper()
	parsed := func(expr string) parser.Expr {
		e, err := parser.NewParser(parser.Options{}).ParseExpr(expr)
		require.NoError(p, err, expr)
		return e
	}
	for _, r := range g.Records {
		all = append(all, rules.NewRecordingRule(r.Name, parsed(r.Expr), labels.EmptyLabels()))
	}
	for i := range g.Alerts {
		a := &g.Alerts[i]
		all = append(all, rules.NewAlertingRule(a.Name, parsed(a.Expr), a.For, a.KeepFiringFor,
			labels.FromStrings("severity", string(a.Severity)), labels.FromStrings("summary", a.Summary, "description", a.Description),
			labels.EmptyLabels(), "", true, nil))
	}
	return all
}

// play lets time pass: in each step the series get a sample, then the groups that are due are
// evaluated. It returns what fired.
func (p *player) play(length, step time.Duration, story ...series) []firing {
	p.Helper()
	var fired []firing
	open := map[string]int{}
	for t := time.Duration(0); t <= length; t += step {
		p.scrape(t, story)
		for _, g := range p.groups {
			if t%g.Interval() != 0 {
				continue
			}
			g.Eval(context.Background(), epoch.Add(t))
			for _, rule := range g.Rules() {
				require.NoError(p, rule.LastError(), rule.Name())
			}
			for _, rule := range g.AlertingRules() {
				for _, a := range rule.ActiveAlerts() {
					if a.State != rules.StateFiring {
						continue
					}
					b := labels.NewBuilder(a.Labels)
					b.Del("alertname", "severity")
					set := strings.Trim(b.Labels().String(), "{}")
					key := rule.Name() + set
					if i, ok := open[key]; ok && fired[i].to >= t-max(step, g.Interval()) {
						fired[i].to = t
						continue
					}
					open[key] = len(fired)
					fired = append(fired, firing{rule.Name(), set, t, t})
				}
			}
		}
	}
	return fired
}

func (p *player) scrape(t time.Duration, story []series) {
	p.Helper()
	app := p.storage.Appender(context.Background())
	now := epoch.Add(t).UnixMilli()
	for _, s := range story {
		v := s.at(t)
		if math.IsNaN(v) {
			if p.at[s.name] == 0 || p.noMarkers {
				continue
			}
			v, p.at[s.name] = math.Float64frombits(value.StaleNaN), 0
		} else {
			p.at[s.name] = 1
		}
		_, err := app.Append(storage.SeriesRef(0), p.metric(s.name), now, v)
		require.NoError(p, err, "%s at %s", s.name, t)
	}
	require.NoError(p, app.Commit())
}

func (p *player) metric(name string) labels.Labels {
	p.Helper()
	parsed, err := parser.NewParser(parser.Options{}).ParseMetric(name)
	require.NoError(p, err, name)
	return parsed
}

// value evaluates an expression after the story.
func (p *player) value(expr string, at time.Duration) []float64 {
	p.Helper()
	q, err := p.engine.NewInstantQuery(p.Context(), p.storage, nil, expr, epoch.Add(at))
	require.NoError(p, err)
	defer q.Close()
	vector, err := q.Exec(p.Context()).Vector()
	require.NoError(p, err)
	var values []float64
	for _, s := range vector {
		values = append(values, s.F)
	}
	return values
}

// names lists the alerts that fired, once each, sorted.
func names(fired []firing) []string {
	all := []string{}
	for _, f := range fired {
		all = append(all, f.alert)
	}
	slices.Sort(all)
	return slices.Compact(all)
}
