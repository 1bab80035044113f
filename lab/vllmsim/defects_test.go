package vllmsim

import (
	"flag"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
)

var updateDefects = flag.Bool("defects", false, "write the list of defects into lab/docs/scenarios.md")

const (
	scenarioPage = "../docs/scenarios.md"
	defectsBegin = "<!-- defects: begin -->\n"
	defectsEnd   = "<!-- defects: end -->"
)

// demonstrations have an entry for each defect of the catalogue.
var demonstrations = slices.Concat(shownByServers, shownByRequests)

// Each defect of the catalogue is either shown by servers of its versions, which a test of its
// own proves, or is not simulated for a reason. lab/docs/scenarios.md has the conditions.
func TestEveryKnownDefectIsShownOrExplained(t *testing.T) {
	byID := map[catalog.DefectID]demonstration{}
	for _, d := range demonstrations {
		require.NotContains(t, byID, d.id)
		byID[d.id] = d
	}
	var causes []string
	shown := map[string][]string{}
	for _, known := range catalog.Defects() {
		d, there := byID[known.ID]
		if !assert.True(t, there, "defects_test.go has no entry for %q: show it, or give the reason why it is not simulated", known.ID) {
			continue
		}
		delete(byID, known.ID)
		if d.shows == nil {
			continue
		}
		if shown[d.how] == nil {
			causes = append(causes, d.how)
		}
		shown[d.how] = append(shown[d.how], "`"+string(known.ID)+"`")
	}
	rows := ""
	for _, cause := range causes {
		rows += "- " + strings.Join(shown[cause], ", ") + ": " + cause + "\n"
	}
	for id := range byID {
		assert.Fail(t, "an entry for no defect of the catalogue", "%s", id)
	}
	page, err := os.ReadFile(scenarioPage)
	require.NoError(t, err)
	before, rest, found := strings.Cut(string(page), defectsBegin)
	require.True(t, found)
	table, after, found := strings.Cut(rest, defectsEnd)
	require.True(t, found)
	if *updateDefects {
		table = rows
		require.NoError(t, os.WriteFile(scenarioPage, []byte(before+defectsBegin+table+defectsEnd+after), 0o644))
	}
	assert.Equal(t, rows, table, "update: go test ./lab/vllmsim -run EveryKnownDefect -defects")
}

func TestServersShowTheDefectsOfTheirVersion(t *testing.T) {
	for _, d := range demonstrations {
		if d.shows != nil {
			t.Run(string(d.id), func(t *testing.T) {
				t.Parallel()
				d.shows(t)
			})
		}
	}
}

// demonstration is when the simulator shows a defect, or with no test why it does not.
type demonstration struct {
	id    catalog.DefectID
	how   string
	shows func(*testing.T)
}

// probe is a server that has run for a while, what it answers, and what is true.
type probe struct {
	t        *testing.T
	body     string
	outcomes []engine.Outcome
	states   []engine.State
}

// run lets a server of a dialect and a version run for a time.
func run(t *testing.T, dialect, version string, length time.Duration, change func(*Config)) *probe {
	t.Helper()
	p := &probe{t: t}
	w := engine.Chat(4)
	w.Refused, w.LeaveEarly, w.LeaveLate = 0, 0, 0
	cfg := Config{Dialect: dialect, Version: version, Workload: &w, Seed: 7, Truth: func(_ int, o engine.Outcome) {
		p.outcomes = append(p.outcomes, o)
	}}
	if change != nil {
		change(&cfg)
	}
	server, err := New(cfg)
	require.NoError(t, err)
	server.Advance(length)
	body, _, err := server.Targets()[0].Body()
	require.NoError(t, err)
	p.body = string(body)
	p.states, err = server.Targets()[0].States()
	require.NoError(t, err)
	return p
}

// values are those of all series with a name, and with these labels as the body writes them.
func (p *probe) values(name string, labels ...string) []float64 {
	p.t.Helper()
	var out []float64
lines:
	for line := range strings.Lines(p.body) {
		series, number, _ := strings.Cut(strings.TrimSpace(line), "} ")
		metric, text, labelled := strings.Cut(series, "{")
		if metric != name || !labelled {
			continue
		}
		for _, label := range labels {
			if !strings.Contains(","+text+",", ","+label+",") {
				continue lines
			}
		}
		v, err := strconv.ParseFloat(number, 64)
		require.NoError(p.t, err, line)
		out = append(out, v)
	}
	return out
}

// sum adds the values of a metric up, of which there must be some.
func (p *probe) sum(name string, labels ...string) float64 {
	p.t.Helper()
	values := p.values(name, labels...)
	require.NotEmpty(p.t, values, "%s%v", name, labels)
	return sum(values)
}

// ended is how many requests ended so.
func (p *probe) ended(ends ...engine.End) float64 {
	n := 0
	for _, o := range p.outcomes {
		for _, end := range ends {
			if o.End == end {
				n++
			}
		}
	}
	return float64(n)
}

// set makes a parameter hold from the start.
func set(p engine.Parameter, value float64) func(*Config) {
	return func(c *Config) { c.Changes = append(c.Changes, engine.Change{Parameter: p, Value: value}) }
}

// crowded is a server with so little room that requests wait for it and are preempted.
func crowded(c *Config) {
	c.Workload.Rate, c.KVCacheTokens, c.MaxModelLen = 12, 12000, 4096
	c.Workload.Prompt, c.Workload.Output = engine.Lengths{Median: 300, Sigma: 0.5}, engine.Lengths{Median: 400, Sigma: 0.5}
}

func both(changes ...func(*Config)) func(*Config) {
	return func(c *Config) {
		for _, change := range changes {
			change(c)
		}
	}
}

func engines(n int) func(*Config) { return func(c *Config) { c.Engines = n } }

func workload(change func(*engine.Workload)) func(*Config) {
	return func(c *Config) { change(c.Workload) }
}

// line is the first line of a body that begins so.
func line(body, begin string) string {
	for text := range strings.Lines(body) {
		if strings.HasPrefix(text, begin) {
			return text
		}
	}
	return ""
}
