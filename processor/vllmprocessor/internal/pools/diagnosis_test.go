package pools

import (
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/derive"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/diagnose"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/signal"
)

// one is an engine as it is reported: condition, requests in it, of which waiting wait,
// use of the KV cache, arrivals in requests per second of 1000 tokens each, and
// its causes.
type one struct {
	condition             diagnose.Condition
	load, waiting, kv, in float64
	causes                map[diagnose.Cause]float64
}

// poolRig is a pool of servers with one engine each, whose evaluations are 15 s
// apart.
type poolRig struct {
	pools    *Diagnosis
	settings diagnose.Settings
	at       int64
	changes  []diagnose.Transition
	values   []derive.Value
	// delay is what the gateway of model m adds; the zero value is not known.
	delay Delay
}

func newPoolRig() *poolRig {
	return &poolRig{pools: NewDiagnosis(10, nil), settings: diagnose.Settings{Window: time.Minute, Hold: 2}}
}

func named(name string) []input.Attribute {
	return []input.Attribute{{Name: "model_name", Value: name}}
}

func (o *one) member(model string) diagnose.Member {
	m := diagnose.Member{Attributes: named(model), Signals: signal.Unknown()}
	m.Verdict.Condition = o.condition
	for c, share := range o.causes {
		m.Shares[c] = share
	}
	if o.condition == diagnose.Unreachable {
		return m
	}
	s := &m.Signals
	s[signal.Running], s[signal.Waiting], s[signal.KVUtilization] = o.load-o.waiting, o.waiting, o.kv
	s[signal.ArrivalRate], s[signal.FirstTokenRate], s[signal.PromptTokens], s[signal.OutputTokens] = o.in, o.in, 900, 100
	return m
}

// source is a resource whose engines and queues the test chooses.
type source struct {
	members []diagnose.Member
	queues  []diagnose.Queue
}

func (s *source) Members() iter.Seq[diagnose.Member] { return slices.Values(s.members) }
func (s *source) Queues() []diagnose.Queue           { return s.queues }

func server(members ...diagnose.Member) *source { return &source{members: members} }

func itsModel(_, of []input.Attribute) []input.Attribute { return of }

// evaluate takes pools of engines by their model, and what waits at gateways.
func (r *poolRig) evaluate(models map[string][]one, queues ...diagnose.Queue) {
	r.at += int64(15 * time.Second)
	r.pools.Begin()
	for _, model := range []string{"m", "n"} {
		for i := range models[model] {
			r.pools.Add(server(models[model][i].member(model)), "s", itsModel)
		}
	}
	r.pools.Queue(&source{queues: queues})
	if r.delay != (Delay{}) {
		r.pools.Delay(map[string]Delay{string(keyOf(nil, named("m"))): r.delay}, r.at)
	}
	wanted := map[*derive.Row]bool{}
	for _, row := range diagnose.Rows() {
		wanted[row] = true
	}
	r.values, r.changes = r.pools.Evaluate(&r.settings, r.at, wanted)
}

// emitted are the values of the pool of model m that are not 0, by metric and extra.
func (r *poolRig) emitted() map[string]float64 {
	all := map[string]float64{}
	for _, v := range r.values {
		if v.Number != 0 && v.Attributes[0].Value == "m" {
			all[strings.TrimSpace(strings.TrimPrefix(v.Row.Metric, "vllm.pool.diagnosis.")+" "+strings.TrimRight(strings.Join(v.Extra[:], " "), " "))] = v.Number
		}
	}
	return all
}

// verdict is the condition and the causes of the pool of model m in one line.
func (r *poolRig) verdict() string {
	for _, pool := range r.pools.all {
		if pool == nil || pool.attributes[0].Value != "m" {
			continue
		}
		text := pool.report.Reported.Condition.String()
		if pool.report.Reported.Explained {
			text += " " + pool.report.Reported.Primary.String()
		}
		for c, is := range pool.report.Reported.Contributing {
			if is {
				text += " +" + diagnose.Cause(c).String()
			}
		}
		return text
	}
	return "none"
}

func times(n int, o one) (all []one) {
	for range n {
		all = append(all, o)
	}
	return all
}

func several(parts ...[]one) (all []one) {
	for _, part := range parts {
		all = append(all, part...)
	}
	return all
}

var (
	well     = one{condition: diagnose.Healthy, load: 10, kv: 0.3, in: 2}
	full8    = one{condition: diagnose.Healthy, load: 10, kv: 0.8, in: 2}
	idle     = one{condition: diagnose.Idle}
	idleFull = one{condition: diagnose.Idle, kv: 0.9} // the KV utilization of the last step
	asleep   = one{condition: diagnose.Asleep}
	starting = one{condition: diagnose.Starting}
	drains   = one{condition: diagnose.Draining, load: 10, kv: 0.3}
	unsure   = one{condition: diagnose.Unknown, load: 10, kv: 0.3, in: 2}
	lost     = one{condition: diagnose.Unreachable}
	halted   = one{condition: diagnose.Stalled, load: 10, kv: 0.3}
	fails    = one{condition: diagnose.Failing, load: 10, kv: 0.3, in: 2, causes: map[diagnose.Cause]float64{diagnose.Erroring: 1}}
	flooded  = one{condition: diagnose.Degraded, load: 90, waiting: 60, kv: 0.95, in: 8, causes: map[diagnose.Cause]float64{diagnose.DemandExceedsCapacity: 1}}
	slow     = one{condition: diagnose.Degraded, load: 40, waiting: 10, kv: 0.95, in: 2, causes: map[diagnose.Cause]float64{diagnose.SlowSteps: 1}}
	late     = one{condition: diagnose.Critical, load: 40, waiting: 10, kv: 0.95, in: 2, causes: map[diagnose.Cause]float64{diagnose.SlowSteps: 1}}
	// A smaller cache makes requests stay, and as many come as to the others.
	small  = one{condition: diagnose.Degraded, load: 90, waiting: 60, kv: 0.95, in: 2, causes: map[diagnose.Cause]float64{diagnose.KVPressure: 1}}
	refuse = one{condition: diagnose.Degraded, causes: map[diagnose.Cause]float64{diagnose.Erroring: 1}}
)

func TestAPoolIsAsMostOfItsEngines(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		members []one
		verdict string
	}{
		"all healthy":                           {times(4, well), "healthy"},
		"all idle":                              {times(4, idle), "idle"},
		"all asleep":                            {times(4, asleep), "asleep"},
		"all starting":                          {times(4, starting), "starting"},
		"all stalled":                           {times(4, halted), "stalled servers_lost"},
		"all unreachable":                       {times(4, lost), "unreachable servers_lost"},
		"all failing":                           {times(4, fails), "failing erroring"},
		"all unknown":                           {times(4, unsure), "unknown"},
		"all are critical":                      {times(4, late), "critical slow_steps"},
		"one of four is critical":               {several(times(3, one{condition: diagnose.Healthy, load: 40, kv: 0.3, in: 2}), times(1, late)), "degraded slow_steps"},
		"a third is critical, a third is lost":  {several(times(1, well), times(1, late), times(1, lost)), "critical slow_steps +servers_lost"},
		"half is lost, another one is critical": {several(times(1, well), times(1, late), times(2, halted)), "stalled slow_steps +servers_lost"},
		"one works, others are idle":            {several(times(1, well), times(3, idle)), "healthy"},
		"one works, others sleep":               {several(times(1, well), times(3, asleep)), "healthy"},
		"more idle than asleep":                 {several(times(2, idle), times(1, asleep)), "idle"},
		"more asleep than idle":                 {several(times(1, idle), times(2, asleep)), "asleep"},
		"as many asleep as idle":                {several(times(2, asleep), times(2, idle)), "idle"},
		"idle and starting":                     {several(times(1, starting), times(1, idle)), "idle"},
		"one cannot be judged":                  {several(times(3, well), times(1, unsure)), "healthy"},
		"most cannot be judged":                 {several(times(1, well), times(3, unsure)), "unknown"},
		"one of ten has stalled":                {several(times(9, well), times(1, halted)), "degraded servers_lost"},
		"one of four is unreachable":            {several(times(3, well), times(1, lost)), "degraded servers_lost"},
		"one of four fails":                     {several(times(3, well), times(1, fails)), "degraded servers_lost +erroring"},
		"half is unreachable":                   {several(times(2, well), times(2, lost)), "unreachable servers_lost"},
		"one less than half is unreachable":     {several(times(3, well), times(2, lost)), "degraded servers_lost"},
		"half is lost in two ways":              {several(times(2, well), times(1, lost), times(1, halted)), "unreachable servers_lost"},
		"half is lost, more of it stalled":      {several(times(3, well), times(1, lost), times(2, halted)), "stalled servers_lost"},
		"half of those that should serve":       {several(times(1, well), times(1, lost), times(6, asleep)), "unreachable servers_lost"},
		"half of those that are not starting":   {several(times(1, well), times(1, halted), times(2, starting)), "stalled servers_lost"},
		"the only one that does not sleep":      {several(times(1, lost), times(3, asleep)), "unreachable servers_lost"},
		"a tenth of the load is harmed":         {several(times(9, one{condition: diagnose.Healthy, load: 40, kv: 0.3, in: 2}), times(1, slow)), "healthy"},
		"a fifth of the load is harmed":         {several(times(4, one{condition: diagnose.Healthy, load: 40, kv: 0.3, in: 2}), times(1, slow)), "degraded slow_steps"},
		"errors that keep all requests away":    {times(2, refuse), "degraded erroring"},
		"one of two, without requests anyway":   {several(times(1, refuse), times(1, idle)), "degraded erroring"},
		"a rollout of one of four":              {several(times(3, well), times(1, drains)), "healthy"},
		"a rollout of half":                     {several(times(2, well), times(2, drains)), "healthy"},
		"all are deleted":                       {times(4, drains), "draining"},
		"half of those that are not deleted":    {several(times(1, well), times(1, lost), times(2, drains)), "unreachable servers_lost"},
		"degraded, and another one is starting": {several(times(1, slow), times(1, starting)), "degraded slow_steps"},
		"little of the harm is explained":       {times(2, one{condition: diagnose.Degraded, load: 9, causes: map[diagnose.Cause]float64{diagnose.SlowSteps: 0.25}}), "degraded +slow_steps"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			requireVerdict(t, test.verdict, test.members)
		})
	}
}

// requireVerdict evaluates a pool with the same members three times and compares its verdict.
func requireVerdict(t *testing.T, want string, members []one) {
	t.Helper()
	r := newPoolRig()
	for range 3 {
		r.evaluate(map[string][]one{"m": members})
	}
	require.Equal(t, want, r.verdict())
}

func TestImbalance(t *testing.T) {
	t.Parallel()
	const imbalanced, not = "degraded imbalanced +demand_exceeds_capacity", "degraded demand_exceeds_capacity"
	for name, test := range map[string]struct {
		members []one
		verdict string
	}{
		"two of four are overloaded, two have room": {several(times(2, flooded), times(2, well)), imbalanced},
		"one of four is overloaded, three are idle": {several(times(1, flooded), times(3, idle)), imbalanced},
		"the idle ones show a cache that was full":  {several(times(1, flooded), times(3, idleFull)), imbalanced},
		"all are overloaded":                        {times(4, flooded), not},
		"a single server":                           {times(1, flooded), not},
		"the others are full as well":               {several(times(2, flooded), times(2, full8)), not},
		"most of the others are full":               {several(times(2, flooded), times(1, well), times(2, full8)), not},
		"one of the others is full":                 {several(times(2, flooded), times(2, well), times(1, full8)), imbalanced},
		"the others sleep":                          {several(times(2, flooded), times(2, asleep)), not},
		"the others are just starting":              {several(times(2, flooded), times(2, starting)), not},
		"the others have half as much":              {several(times(2, flooded), times(2, one{condition: diagnose.Healthy, load: 46, kv: 0.6, in: 4})), not},
		"one is slow, the others have room":         {several(times(1, slow), times(3, well)), "degraded slow_steps"},
		"one has a smaller cache, as much arrives":  {several(times(1, small), times(3, well)), "degraded kv_pressure"},
		"one is overloaded, one is slow, two idle":  {several(times(1, flooded), times(1, slow), times(2, idle)), "degraded imbalanced +demand_exceeds_capacity +slow_steps"},
		"arrivals are not reported":                 {several(times(1, one{diagnose.Degraded, 90, 60, 0.95, math.NaN(), flooded.causes}), times(3, well)), imbalanced},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			requireVerdict(t, test.verdict, test.members)
		})
	}
}

// The queue that uneven routing has left is still of the uneven routing.
func TestImbalanceLastsThroughTheDrain(t *testing.T) {
	t.Parallel()
	r := newPoolRig()
	drains := flooded
	drains.in = well.in
	for range 3 {
		r.evaluate(map[string][]one{"m": several(times(1, flooded), times(3, well))})
	}
	for range 3 {
		r.evaluate(map[string][]one{"m": several(times(1, drains), times(3, well))})
	}
	assert.Equal(t, "degraded imbalanced +demand_exceeds_capacity", r.verdict())
	drains.load = well.load
	r.evaluate(map[string][]one{"m": several(times(1, drains), times(3, well))})
	assert.Equal(t, "degraded imbalanced +demand_exceeds_capacity", r.verdict(), "it is held for as long as its engine is")
	r.evaluate(map[string][]one{"m": times(4, well)})
	assert.Equal(t, "healthy", r.verdict())
	for range 3 {
		r.evaluate(map[string][]one{"m": several(times(1, drains), times(3, well))})
	}
	assert.Equal(t, "degraded demand_exceeds_capacity", r.verdict(), "now it begins with as much as the others have")
}

// Around the limit the pool does not change its condition each time.
func TestAPoolStaysDegradedUntilItIsClearlyNot(t *testing.T) {
	t.Parallel()
	r := newPoolRig()
	share := func(of float64) {
		r.evaluate(map[string][]one{"m": {{condition: diagnose.Healthy, load: 100 * (1 - of), kv: 0.3}, {condition: diagnose.Degraded, load: 100 * of, causes: slow.causes}}})
	}
	for _, step := range []struct {
		share   float64
		verdict string
	}{
		{0.19, "healthy"}, {0.21, "degraded slow_steps"}, {0.16, "degraded slow_steps"}, {0.14, "healthy"}, {0.19, "healthy"},
	} {
		share(step.share)
		assert.Equal(t, step.verdict, r.verdict(), "%v", step.share)
	}
}

func TestUpstreamStarved(t *testing.T) {
	t.Parallel()
	waits := func(n float64, attributes ...input.Attribute) diagnose.Queue {
		return diagnose.Queue{Attributes: attributes, Requests: n}
	}
	for name, test := range map[string]struct {
		models  map[string][]one
		queue   diagnose.Queue
		verdict string
	}{
		"idle servers":                         {map[string][]one{"m": times(2, idle)}, waits(5), "degraded upstream_starved"},
		"servers with room":                    {map[string][]one{"m": times(2, well)}, waits(5), "degraded upstream_starved"},
		"idle, and the cache was full":         {map[string][]one{"m": times(2, idleFull)}, waits(5), "degraded upstream_starved"},
		"some sleep":                           {map[string][]one{"m": several(times(1, idle), times(1, asleep))}, waits(5), "degraded upstream_starved"},
		"all sleep":                            {map[string][]one{"m": times(2, asleep)}, waits(5), "asleep"},
		"one cannot be judged":                 {map[string][]one{"m": several(times(2, well), times(1, unsure))}, waits(5), "healthy"},
		"less than one request":                {map[string][]one{"m": times(2, idle)}, waits(0.9), "idle"},
		"one server is full":                   {map[string][]one{"m": several(times(3, well), times(1, full8))}, waits(5), "healthy"},
		"one server has a queue":               {map[string][]one{"m": several(times(3, well), times(1, one{condition: diagnose.Healthy, load: 9, waiting: 1, kv: 0.2}))}, waits(5), "healthy"},
		"of this model":                        {map[string][]one{"m": times(2, idle)}, waits(5, named("m")...), "degraded upstream_starved"},
		"of another model":                     {map[string][]one{"m": times(2, idle)}, waits(5, named("other")...), "idle"},
		"with other attributes":                {map[string][]one{"m": times(2, idle)}, waits(5, input.Attribute{Name: "name", Value: "pool-1"}), "degraded upstream_starved"},
		"for one of two pools, both have room": {map[string][]one{"m": times(2, idle), "n": times(2, well)}, waits(5), "degraded upstream_starved"},
		"for one of two pools, one is full":    {map[string][]one{"m": times(2, idle), "n": times(2, full8)}, waits(5), "idle"},
		// 3 wait for 40 that are served per second: for 75 ms.
		"for a moment each": {map[string][]one{"m": times(2, one{condition: diagnose.Healthy, load: 10, kv: 0.3, in: 20})}, waits(3), "healthy"},
		"longer":            {map[string][]one{"m": times(2, one{condition: diagnose.Healthy, load: 10, kv: 0.3, in: 20})}, waits(5), "degraded upstream_starved"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newPoolRig()
			for range 8 {
				r.evaluate(test.models, test.queue)
			}
			assert.Equal(t, test.verdict, r.verdict())
		})
	}
}

// A hold of two windows is one minute beyond the mean over the first, which the
// queue is. It holds in both directions.
func TestUpstreamStarvedHolds(t *testing.T) {
	t.Parallel()
	r := newPoolRig()
	servers := map[string][]one{"m": times(2, idle)}
	var all []string
	for n := range 24 {
		if n >= 4 && n < 12 && n != 10 {
			r.evaluate(servers, diagnose.Queue{Requests: 3})
		} else {
			r.evaluate(servers)
		}
		if verdict := r.verdict(); len(all) == 0 || !strings.HasSuffix(all[len(all)-1], verdict) {
			all = append(all, fmt.Sprint(n, " ", verdict))
		}
	}
	assert.Equal(t, []string{"0 idle", "8 degraded upstream_starved", "16 idle"}, all)

	short := newPoolRig()
	for n := range 24 {
		if n%4 != 3 {
			short.evaluate(servers, diagnose.Queue{Requests: 3})
		} else {
			short.evaluate(servers)
		}
		assert.Equal(t, "idle", short.verdict(), "it never lasts")
	}
}

// What more is known of a cause belongs to the engine that it harms most.
func TestAPoolHasTheDetailsOfItsEngines(t *testing.T) {
	t.Parallel()
	for _, detail := range []string{"more_sequences", "longer_outputs"} {
		harmed := one{condition: diagnose.Degraded, load: 30, kv: 0.3, causes: map[diagnose.Cause]float64{diagnose.DecodeLoad: 1}}
		e := harmed.member("m")
		e.Details[diagnose.DecodeLoad] = detail
		e.Verdict.Reference = diagnose.Objectives
		small := one{condition: diagnose.Degraded, load: 3, kv: 0.3, causes: map[diagnose.Cause]float64{diagnose.DecodeLoad: 1}}
		f := small.member("m")
		f.Details[diagnose.DecodeLoad] = "of another"
		r := newPoolRig()
		for range 2 {
			r.pools.Begin()
			r.pools.Add(server(f, e), "s", itsModel)
			r.values, r.changes = r.pools.Evaluate(&r.settings, 1, enabled("vllm.pool.diagnosis.cause"))
		}
		assert.Equal(t, map[string]float64{"cause decode_load primary " + detail: 1}, r.emitted())
		assert.Equal(t, diagnose.Objectives, r.changes[0].To.Reference)
		assert.Equal(t, detail, r.changes[0].Details[diagnose.DecodeLoad])
	}
}

// Servers that cannot be read show nothing, and are no zeros in the evidence.
func TestEvidenceIsOfWhatCanBeRead(t *testing.T) {
	t.Parallel()
	r := newPoolRig()
	r.evaluate(map[string][]one{"m": several(times(2, full8), times(2, lost))})
	signals := func() signal.Values { return r.pools.all[0].signals() }
	assert.InDelta(t, 0.8, signals()[signal.KVUtilization], 1e-9)
	assert.InDelta(t, 20, signals()[signal.Running], 1e-9)
	r.evaluate(map[string][]one{"m": times(2, lost)})
	assert.True(t, math.IsNaN(signals()[signal.KVUtilization]) && math.IsNaN(signals()[signal.Running]))
}

// A number is a pool's until its series have ended, one evaluation after its last
// member has left.
func TestANumberIsGivenBackAfterTheEnds(t *testing.T) {
	t.Parallel()
	r := newPoolRig()
	r.evaluate(map[string][]one{"m": times(1, well)})
	r.evaluate(map[string][]one{"n": times(1, well)})
	assert.Equal(t, named("m"), r.pools.all[0].attributes, "its ends need them")
	assert.Equal(t, named("n"), r.pools.all[1].attributes)
	r.evaluate(map[string][]one{"m": times(1, slow), "n": times(1, well)})
	assert.Equal(t, named("m"), r.pools.all[0].attributes)
	assert.Equal(t, "unknown", r.verdict(), "it is seen for the first time")
}

func TestThereAreAtMostMaxPools(t *testing.T) {
	t.Parallel()
	p := NewDiagnosis(2, nil)
	add := func(pool string) bool {
		return p.Add(server(well.member("m")), "s", func(_, _ []input.Attribute) []input.Attribute {
			return []input.Attribute{{Name: "zone", Value: pool}, {Name: "model_name", Value: "m"}}
		})
	}
	p.Begin()
	assert.True(t, add("a") && add("b") && add("a"))
	assert.False(t, add("c"), "no place")
	assert.False(t, NewDiagnosis(0, nil).Add(server(well.member("m")), "s", itsModel))
	values, _ := p.Evaluate(&diagnose.Settings{Window: time.Minute, Hold: 2}, 1, enabled("vllm.pool.diagnosis.severity"))
	assert.Len(t, values, 2)
	p.Begin()
	p.Begin()
	assert.True(t, add("c") && add("d"), "those that are gone make place")
	assert.False(t, add("a"))
}

// A server with many models came first. It gives way to others, up to one pool less than
// it keeps itself, and not a pool that it shares.
func TestAServerWithManyModelsTakesNoDiagnosesFromOthers(t *testing.T) {
	t.Parallel()
	p := NewDiagnosis(4, nil)
	state := func(models ...string) *source {
		s := &source{}
		for _, model := range models {
			s.members = append(s.members, well.member(model))
		}
		return s
	}
	noisy, friend := state("shared", "a", "b", "c", "d", "e"), state("shared")
	others := []*source{state("m"), state("n"), state("o")}
	evaluate := func(in ...*source) (all []string) {
		p.Begin()
		for _, s := range in {
			p.Add(s, "s", itsModel)
		}
		values, _ := p.Evaluate(&diagnose.Settings{Window: time.Minute, Hold: 2}, 1, enabled("vllm.pool.diagnosis.severity"))
		for _, v := range values {
			all = append(all, v.Attributes[0].Value)
		}
		slices.Sort(all)
		return all
	}
	assert.Equal(t, []string{"a", "b", "c", "shared"}, evaluate(noisy, friend))
	for range 4 {
		assert.Equal(t, []string{"a", "m", "n", "shared"}, evaluate(others[0], noisy, friend, others[1], others[2]))
	}
	assert.Equal(t, []string{"a", "m", "shared"}, evaluate(noisy, friend, others[0]), "the series of n end")
	assert.Equal(t, []string{"a", "b", "m", "shared"}, evaluate(noisy, friend, others[0]), "its place is free")
}

// enabled is the row of one metric.
func enabled(metric string) map[*derive.Row]bool {
	for _, row := range diagnose.Rows() {
		if row.Metric == metric {
			return map[*derive.Row]bool{row: true}
		}
	}
	return nil
}
