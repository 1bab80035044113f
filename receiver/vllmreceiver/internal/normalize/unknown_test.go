package normalize

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/exposition"
)

// Rule 7: unknown families get the mechanical form of rule 1.
func TestUnknownFamiliesGetTheMechanicalName(t *testing.T) {
	for _, c := range []struct{ name, body, family, want string }{
		{"a gauge", gauge("vllm:new_depth", "", 1), "vllm:new_depth", "vllm.new_depth gauge no-unit"},
		{"a counter loses total", counter("vllm:new_things_total", "", 1), "vllm:new_things_total", "vllm.new_things sum no-unit"},
		{"an imitator's counter has no total to lose", counter("vllm:new_things", "", 1), "vllm:new_things", "vllm.new_things sum no-unit"},
		{"a gauge keeps total", gauge("vllm:new_things_total", "", 1), "vllm:new_things_total", "vllm.new_things_total gauge no-unit"},
		{"seconds move into the unit", histogram("vllm:new_seconds", "", 1, "1"), "vllm:new_seconds", "vllm.new histogram s"},
		{"milliseconds move into the unit", gauge("vllm:new_milliseconds", "", 1), "vllm:new_milliseconds", "vllm.new gauge ms"},
		{"bytes move into the unit", gauge("vllm:new_bytes", "", 1), "vllm:new_bytes", "vllm.new gauge By"},
		{"a counter of seconds", counter("vllm:new_seconds_total", "", 1), "vllm:new_seconds_total", "vllm.new sum s"},
		{"seconds inside a name stay", gauge("vllm:new_seconds_left", "", 1), "vllm:new_seconds_left", "vllm.new_seconds_left gauge no-unit"},
		{"one unit only", gauge("vllm:new_bytes_seconds", "", 1), "vllm:new_bytes_seconds", "vllm.new_bytes gauge s"},
		{"a group", histogram("vllm:request_new_time_seconds", "", 1, "1"), "vllm:request_new_time_seconds", "vllm.request.new_time histogram s"},
		{"the longest group", counter("vllm:external_prefix_cache_new_total", "", 1), "vllm:external_prefix_cache_new_total", "vllm.external_prefix_cache.new sum no-unit"},
		{"a group inside a name is not separated", gauge("vllm:new_request_depth", "", 1), "vllm:new_request_depth", "vllm.new_request_depth gauge no-unit"},
		{"a group of another namespace is not separated", gauge("sglang:request_depth", "", 1), "sglang:request_depth", "sglang.request_depth gauge no-unit"},
		{"a summary", summary("vllm:new_seconds", "", 1), "vllm:new_seconds", "vllm.new summary s"},
		{"an untyped family is a gauge", "vllm:new_depth 1\n", "vllm:new_depth", "vllm.new_depth gauge no-unit"},
		{"a flat name stays flat", counter("router_requests_total", "", 1), "router_requests_total", "router_requests sum no-unit"},
		{"all colons of a recording rule become dots", gauge("job:vllm:rate5m", "", 1), "job:vllm:rate5m", "job.vllm.rate5m gauge no-unit"},
		{"a colon behind a group becomes a dot", gauge("vllm:request_depth:rate5m", "", 1), "vllm:request_depth:rate5m", "vllm.request.depth.rate5m gauge no-unit"},
		{"a colon behind a namespace becomes a dot", gauge("lmcache:depth:rate5m", "", 1), "lmcache:depth:rate5m", "lmcache.depth.rate5m gauge no-unit"},
	} {
		t.Run(c.name, func(t *testing.T) {
			runPlanCases(t, []planCase{{name: "plan", body: c.body, want: []string{c.want + " {} = 1", "unknown " + c.family}}})
		})
	}
}

func TestUnknownFamiliesKeepTheirHelpAndOpenMetricsUnit(t *testing.T) {
	body := "# TYPE vllm:new_tokens gauge\n# UNIT vllm:new_tokens tokens\n# HELP vllm:new_tokens How many.\nvllm:new_tokens 1\n" +
		"# TYPE vllm:new_seconds gauge\n# UNIT vllm:new_seconds seconds\nvllm:new_seconds 1\n" +
		"# TYPE vllm:new_ratio gauge\n# UNIT vllm:new_ratio ratio\nvllm:new_ratio 1\n# EOF\n"
	snapshot := exposition.NewReader(exposition.NewMemory(0)).Read([]byte(body), exposition.DialectOpenMetrics)
	plan := Make(snapshot.Layout, Options{})
	if assert.Len(t, plan.Metrics, 3) {
		assert.Equal(t, "How many.", plan.Metrics[0].Description)
		assert.Equal(t, "{tokens}", plan.Metrics[0].Unit)
		assert.Equal(t, "s", plan.Metrics[1].Unit)
		assert.Equal(t, "1", plan.Metrics[2].Unit)
	}
}

// The name of a family that everybody knows must stay its own, and rule 3
// forbids that one name is a dotted prefix of another.
func TestUnknownNamesAvoidTheOthers(t *testing.T) {
	runPlanCases(t, []planCase{
		{
			name: "a name of the catalogue is never taken, even if it is not in the body",
			body: gauge("vllm:num_requests_running_seconds", "", 1),
			want: []string{"vllm.num_requests_running_seconds gauge s {} = 1", "unknown vllm:num_requests_running_seconds"},
		},
		{
			name: "a name that catalogue names extend by a dot",
			body: gauge("vllm:request", "", 1),
			want: []string{"vllm.request_gauge gauge no-unit {} = 1", "unknown vllm:request"},
		},
		{
			name: "a name that extends a catalogue name by a dot",
			body: gauge("vllm:prompt_tokens:cached", "", 1),
			want: []string{"vllm_prompt_tokens_cached gauge no-unit {} = 1", "unknown vllm:prompt_tokens:cached"},
		},
	})
}

// Rule 4 at its smallest: multi-process mode and Ray's agent write the same
// families in another order, which must not rename them.
func TestTheOrderOfFamiliesDoesNotDecideTheirNames(t *testing.T) {
	for _, c := range []struct {
		name     string
		families []string
	}{
		{"two units of one thing", []string{gauge("vllm:new_seconds", "", 1), gauge("vllm:new_bytes", "", 2)}},
		{"a thing with a unit and one without", []string{gauge("vllm:new_seconds", "", 1), gauge("vllm:new", "", 2)}},
		{"a counter and a histogram that lose their endings", []string{counter("new_total", "", 1), histogram("new_seconds", "", 2, "1")}},
		{"a name that extends another by a dot", []string{gauge("a", "", 1), gauge("a:b", "", 2)}},
		{"the same name under two prefixes", []string{gauge("vllm:new", "", 1), gauge("vllm_new", "", 2)}},
		{"two contradictions of one metric", []string{gauge("vllm:prompt_tokens_total", "", 1), gauge("vllm_prompt_tokens_total", "", 2)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			lines := func(families ...string) []string {
				snapshot := snapshotOf(strings.Join(families, ""))
				plan := Make(snapshot.Layout, Options{})
				checkPlan(t, snapshot.Layout, &Options{}, plan)
				assert.Equal(t, 2, plan.Points)
				return describe(plan, snapshot.Values)
			}
			assert.ElementsMatch(t, lines(c.families[0], c.families[1]), lines(c.families[1], c.families[0]))
		})
	}
}

func TestHostileNamesBecomeValidNames(t *testing.T) {
	for _, family := range []string{
		"_total", "_seconds", "_bytes_total", ":", "::", ":a", "a:", "a::b", "vllm:", "vllm_", "vllm:_total",
		"vllm:request_", "vllm:request_seconds", "lmcache:", "lmcache_mp_", "ray_vllm_", "vllm::", "_", "total",
		`"a.b"`, `"a..b"`, `"."`, `"größe"`, `"with blank"`,
	} {
		for _, kind := range []string{"gauge", "counter"} {
			t.Run(kind+" "+family, func(t *testing.T) {
				line := family + " 1\n"
				if family[0] == '"' {
					line = "{" + family + "} 1\n"
				}
				snapshot := snapshotOf("# TYPE " + family + " " + kind + "\n" + line)
				plan := Make(snapshot.Layout, Options{})
				checkPlan(t, snapshot.Layout, &Options{}, plan)
				if assert.Len(t, plan.Metrics, 1) && family[0] != '"' {
					for part := range strings.SplitSeq(plan.Metrics[0].Name, ".") {
						assert.NotEmpty(t, part, "backends that turn dots into objects need every part of %q", plan.Metrics[0].Name)
					}
				}
			})
		}
	}
}
