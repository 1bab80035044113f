package window

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
)

// shown is a server of one engine that shows some evidence.
func shown(e input.Evidence) *Resource {
	r := fresh()
	show(r, 0, e, "0")
	return r
}

func show(r *Resource, seconds float64, e input.Evidence, engines ...string) Report {
	b := &input.Batch{Time: at(seconds), Evidence: e}
	for i, name := range engines {
		b.Groups = append(b.Groups, input.GroupOf([]input.Attribute{{Name: "engine", Value: name}, {Name: "model_name", Value: "m"}}))
		b.Samples = append(b.Samples, input.Sample{Input: input.PromptTokens, Value: seconds, Group: i})
	}
	return r.Observe(b, math.MaxInt)
}

// The one defect is fixed in a release, and the other began in an older one.
func TestTheVersionDecidesAboutADefect(t *testing.T) {
	const fixed, since = catalog.DefectCacheQueriesRecounted, catalog.DefectArrivalTimeMoved
	var in, began catalog.Release
	for _, d := range catalog.Defects() {
		switch d.ID {
		case fixed:
			in, _ = catalog.ParseRelease(d.Until)
		case since:
			began, _ = catalog.ParseRelease(d.Since)
		}
	}
	require.Equal(t, 0, in[0])
	require.Equal(t, 0, in[2])
	require.Greater(t, in[1], began[1])
	// is is a version of the minor release with the fix, or of one that is older or newer.
	is := func(newer int, format string) string { return fmt.Sprintf(format, in[1]+newer) }
	for name, c := range map[string]struct {
		evidence     input.Evidence
		fixed, since bool
	}{
		"nothing is known":                    {input.Evidence{}, true, true},
		"the last with it":                    {input.Evidence{Version: is(-1, "0.%d.3")}, true, true},
		"the first without it":                {input.Evidence{Version: is(0, "0.%d.0")}, false, true},
		"a v before the number":               {input.Evidence{Version: is(0, "v0.%d.0")}, false, true},
		"a build for hardware":                {input.Evidence{Version: is(0, "0.%d.0+cu129")}, false, true},
		"a later build":                       {input.Evidence{Version: is(0, "0.%d.0.post1")}, false, true},
		"a candidate may lack the fix":        {input.Evidence{Version: is(0, "0.%d.0rc2")}, true, true},
		"a state may lack the fix":            {input.Evidence{Version: is(0, "0.%d.0.dev12+gdeadbeef")}, true, true},
		"a candidate of the next":             {input.Evidence{Version: is(0, "0.%d.1rc2")}, false, true},
		"before it began":                     {input.Evidence{Version: fmt.Sprintf("0.%d.9", began[1]-1)}, true, false},
		"a family proves that it is fixed":    {input.Evidence{Least: catalog.Release{0, 99}}, false, true},
		"a family proves nothing about later": {input.Evidence{Least: catalog.Release{0, 16}}, true, true},
		"a chart's version":                   {input.Evidence{Version: "1.4.2"}, true, true},
		"a date":                              {input.Evidence{Version: "2026.11"}, true, true},
		"a commit":                            {input.Evidence{Version: "7f3aa10"}, true, true},
		"a number":                            {input.Evidence{Version: "0"}, true, true},
		"an older version than the families":  {input.Evidence{Version: "0.3.0", Least: catalog.Release{0, 99}}, false, true},
		"a newer version than the families":   {input.Evidence{Version: is(0, "0.%d.0"), Least: catalog.Release{0, 16}}, false, true},
		"an imitator with a version":          {input.Evidence{Version: is(0, "0.%d.0"), Signs: input.Imitator}, true, true},
		"an imitator with families":           {input.Evidence{Least: catalog.Release{0, 99}, Signs: input.Imitator}, true, true},
		"the V0 engine":                       {input.Evidence{Signs: input.V0}, false, false},
	} {
		r := shown(c.evidence)
		assert.Equal(t, c.fixed, r.Affected(fixed), name)
		assert.Equal(t, c.since, r.Affected(since), name)
	}
	assert.False(t, shown(input.Evidence{}).Affected("made-up"))
	assert.True(t, shown(input.Evidence{Signs: input.V0}).Affected(catalog.DefectLatenciesNearZero))
	assert.False(t, shown(input.Evidence{Least: catalog.Release{0, 16}}).Affected(catalog.DefectLatenciesNearZero))
}

func TestTheEvidenceOfServersThatShareAResourceProvesNothing(t *testing.T) {
	r := shown(input.Evidence{Least: catalog.Release{0, 99}})
	assert.False(t, r.Affected(catalog.DefectCacheQueriesRecounted))
	b := &input.Batch{Time: at(15), Evidence: input.Evidence{Least: catalog.Release{0, 99}}}
	b.Groups = []input.Group{input.GroupOf([]input.Attribute{{Name: "instance", Value: "b"}, {Name: "model_name", Value: "m"}})}
	b.Samples = []input.Sample{{Input: input.PromptTokens, Value: 1}}
	r.Observe(b, math.MaxInt)
	assert.True(t, r.Affected(catalog.DefectCacheQueriesRecounted))
	// Their version is that of the resource.
	b.Time, b.Evidence.Version = at(30), "0.99.0"
	r.Observe(b, math.MaxInt)
	assert.False(t, r.Affected(catalog.DefectCacheQueriesRecounted))
}

func TestEvidenceEndsWithTheServer(t *testing.T) {
	newer := input.Evidence{Least: catalog.Release{0, 99}}
	for name, end := range map[string]func(r *Resource){
		"a restart": func(r *Resource) { scrape(r, 20, tokens(1)) },
		"a gap":     func(r *Resource) { scrape(r, 100_000, tokens(1e6)) },
		"another version": func(r *Resource) {
			show(r, 45, input.Evidence{Version: "0.10.0"}, "0")
		},
	} {
		r := fresh()
		show(r, 0, newer, "0")
		show(r, 15, input.Evidence{}, "0")
		assert.False(t, r.Affected(catalog.DefectCacheQueriesRecounted), name)
		end(r)
		assert.True(t, r.Affected(catalog.DefectCacheQueriesRecounted), name)
	}
}

func TestADefectNeedsItsSetup(t *testing.T) {
	counter := func(in input.Metric, value float64) func(*Resource) {
		return func(r *Resource) { scrape(r, 15, input.Sample{Input: in, Value: value}) }
	}
	engine := func(names ...string) func(*Resource) {
		return func(r *Resource) { show(r, 15, input.Evidence{}, names...) }
	}
	sign := func(s input.Sign, version string) func(*Resource) {
		return func(r *Resource) { show(r, 15, input.Evidence{Signs: s, Version: version}, "0") }
	}
	nothing := func(*Resource) {}
	for name, c := range map[string]struct {
		add    func(*Resource)
		defect catalog.DefectID
		want   bool
	}{
		"one engine":                        {nothing, catalog.DefectBlocksSummedOverEngines, false},
		"two engines":                       {engine("0", "1"), catalog.DefectBlocksSummedOverEngines, true},
		"only the last of several":          {engine("3"), catalog.DefectOnlyLastEngine, true},
		"no drafts":                         {counter(input.Drafts, 0), catalog.DefectGapPerOutput, false},
		"drafts":                            {counter(input.Drafts, 1), catalog.DefectGapPerOutput, true},
		"no Ray":                            {nothing, catalog.DefectRayLastLabel, false},
		"Ray":                               {sign(input.Ray, ""), catalog.DefectRayLastLabel, true},
		"no connector":                      {counter(input.ExternalPrefixCacheQueries, 0), catalog.DefectExternalHitsWrong, false},
		"a connector that is asked":         {counter(input.ExternalPrefixCacheQueries, 1), catalog.DefectExternalHitsWrong, true},
		"a connector with families":         {sign(input.Connector, ""), catalog.DefectExternalHitsWrong, true},
		"no adapters":                       {nothing, catalog.DefectAdaptersInFlightOnly, false},
		"adapters":                          {sign(input.LoRA, ""), catalog.DefectAdaptersInFlightOnly, true},
		"what cannot be seen":               {nothing, catalog.DefectBlockSizeOfHybridModels, true},
		"one process":                       {nothing, catalog.DefectUsagePerProcess, false},
		"processes":                         {sign(input.Processes, ""), catalog.DefectUsagePerProcess, true},
		"processes are no longer seen":      {nothing, catalog.DefectStepsSplitOverApiServers, true},
		"processes that could be seen":      {sign(0, "0.11.0"), catalog.DefectStepsSplitOverApiServers, false},
		"processes that are seen":           {sign(input.Processes, "0.11.0"), catalog.DefectStepsSplitOverApiServers, true},
		"processes of a version without it": {sign(0, "0.12.0"), catalog.DefectStepsSplitOverApiServers, true},
	} {
		r := fresh()
		show(r, 0, input.Evidence{}, "0")
		if name == "only the last of several" {
			r = fresh()
		}
		c.add(r)
		assert.Equal(t, c.want, r.Affected(c.defect), name)
	}
}

// The engines may have been added up before they came here.
func TestEnginesWithoutANameMayBeSeveral(t *testing.T) {
	r := fresh()
	scrapeEngines(r, 0, map[string][]input.Sample{"": {tokens(1)}})
	assert.True(t, r.Affected(catalog.DefectBlocksSummedOverEngines))
	assert.False(t, r.Shows("data_parallel"))
}
