package pools

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/diagnose"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/signal"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/window"
)

// usual is the model of an engine whose steps take so many seconds, learned up to a time.
func usual(t *testing.T, seconds float64, at int64) *signal.Model {
	t.Helper()
	b := signal.NewBaseline()
	for n := range 30 {
		w := signal.Window{Signals: signal.Unknown(), At: at - int64(29-n)*int64(time.Minute), FirstTokens: 60, Generation: 100, Computed: 500}
		s := &w.Signals
		s[signal.StepTime], s[signal.InterTokenLatency] = seconds, seconds
		s[signal.PromptTokens], s[signal.ComputedTokens], s[signal.OutputTokens] = 500, 500, 100
		b.Learn(&w, time.Minute, &signal.Set{})
	}
	m := signal.NewModel(b)
	require.NotNil(t, m)
	return m
}

// kept is a Keeper.
type kept map[string][]byte

func (k kept) Begin(kind diagnose.Kept, attributes []input.Attribute) []byte {
	return k[string(kind)+" of "+attributes[0].Value]
}

func (k kept) End(kind diagnose.Kept, attributes []input.Attribute, data []byte) {
	k[string(kind)+" of "+attributes[0].Value] = data
}

const day = int64(24 * time.Hour)

// The reference is that of the engine in the middle, among those that are settled: an engine that is
// slow, or lies, does not become it, nor does a version that is not known for long.
func TestTheReferenceIsTheMedianOfSettledEngines(t *testing.T) {
	t.Parallel()
	fast, middle, slow := usual(t, 1e-9, day), usual(t, 0.02, day), usual(t, 5, day)
	s := &siblings{found: []diagnose.Sibling{{Usual: slow, Settled: true}, {Usual: fast, Settled: true}, {Usual: middle, Settled: true}}}
	s.remember()
	assert.Same(t, middle, s.Usual)
	s.found = []diagnose.Sibling{{Usual: slow}, {Usual: slow}, {Usual: slow}}
	s.remember()
	assert.Same(t, middle, s.Usual, "none is settled")
}

// The reference of a pool outlives its pods, and its age has a limit.
func TestAReferenceOutlivesThePods(t *testing.T) {
	t.Parallel()
	keeper := kept{}
	r := newPoolRig()
	r.pools = NewDiagnosis(10, keeper)
	pod := func(model string) *source {
		m := (&one{condition: diagnose.Healthy, load: 1}).member(model)
		m.Model, m.Blocks = model, 1000
		return &source{members: []diagnose.Member{m}}
	}
	evaluate := func(at int64, sources ...*source) {
		r.pools.Begin()
		for _, s := range sources {
			r.pools.Add(s, "s", func(_, of []input.Attribute) []input.Attribute { return of })
		}
		r.pools.Evaluate(&r.settings, at, nil)
	}
	evaluate(day, pod("m"))
	was := usual(t, 0.02, day)
	r.pools.all[0].siblings[0].Usual = was
	for range 3 {
		evaluate(day)
	}
	require.NotEmpty(t, keeper["pool of m"], "the pool has gone")
	newest, sound := diagnose.Age(keeper["pool of m"])
	assert.True(t, sound)
	assert.Equal(t, day, newest)
	evaluate(2*day, pod("m"))
	again := r.pools.all[0].siblings[0]
	require.NotNil(t, again.Usual)
	x, y := was.Step(2, 1100, 10), again.Usual.Step(2, 1100, 10)
	assert.InEpsilon(t, x.Seconds, y.Seconds, 1e-9)
	saved := 0
	r.pools.References(func(diagnose.Kept, []input.Attribute, []byte) { saved++ })
	assert.Equal(t, 1, saved)
	evaluate(day+int64(diagnose.BaselineMemory)+1, pod("m"))
	assert.Nil(t, again.Usual, "it is too old")
}

// However many engines and configurations a pool has, what is kept of them is bounded.
func TestAPoolKeepsFewOfItsEngines(t *testing.T) {
	t.Parallel()
	p := &pool{}
	for i := range 1000 {
		p.meet(nil, &diagnose.Member{Model: fmt.Sprint("model-", i), Blocks: 1000})
	}
	assert.LessOrEqual(t, len(p.siblings), signal.MostReferences)
	first := p.siblings[0]
	first.Usual = usual(t, 0.02, day)
	for i := range 1000 {
		p.meet(nil, &diagnose.Member{Model: fmt.Sprint("other-", i), Blocks: 1000})
	}
	assert.Same(t, first, p.siblings[0], "what is known stays")
	m := diagnose.Member{Model: first.Model, Blocks: 1050}
	assert.Same(t, first, p.siblingsOf(&m), "5 % more blocks are the same configuration")
	m.Blocks = 1200
	assert.NotSame(t, first, p.siblingsOf(&m))
}

// learned are the engines of a server that have learned what is usual for them.
func learned(t *testing.T, engines int) *source {
	t.Helper()
	settings := diagnose.Settings{Window: time.Minute, Hold: 2, RelearnAfter: time.Hour, StartTimeout: time.Minute}
	server := window.NewResource(window.Settings{Window: time.Minute, MaxStaleness: 5 * time.Minute})
	state := &diagnose.State{}
	for minute := range 10 {
		batch := input.Batch{Resource: "server", Time: day + int64(minute)*int64(time.Minute)}
		for i := range engines {
			batch.Groups = append(batch.Groups, input.GroupOf([]input.Attribute{{Name: "engine", Value: fmt.Sprint(i)}, {Name: "model_name", Value: "m"}}))
			n := float64(60 * minute)
			for in, value := range map[input.Metric]float64{
				input.Running: 2, input.Waiting: 0, input.KVCacheUtilization: 0.1, input.PromptTokens: 500 * n, input.GenerationTokens: 100 * n,
			} {
				batch.Samples = append(batch.Samples, input.Sample{Group: i, Input: in, Value: value})
			}
			for in, o := range map[input.Metric][2]float64{input.TimeToFirstToken: {n, 0.1}, input.InterTokenLatency: {99 * n, 0.02}} {
				batch.Samples = append(batch.Samples, input.Sample{Group: i, Input: in, Counts: []float64{o[0]}, Count: o[0], Sum: o[0] * o[1], HasSum: true})
			}
		}
		require.True(t, server.Observe(&batch, 1_000_000).Observed)
		state.Observe(&settings, server)
	}
	return &source{members: slices.Collect(state.Members())}
}

// A server with many engines, or one that makes them up, cannot be all that the others of a pool are
// compared with; and however many there are, few are kept.
func TestAServerLeavesPlacesForTheSiblingsOfOthers(t *testing.T) {
	t.Parallel()
	r := newPoolRig()
	r.pools.Begin()
	add := func(s *source) {
		r.pools.Add(s, "s", func(_, _ []input.Attribute) []input.Attribute {
			return []input.Attribute{{Name: "model_name", Value: "m"}}
		})
	}
	many, others := learned(t, 100), []*source{learned(t, 1), learned(t, 1), learned(t, 1)}
	require.Len(t, many.members, 100)
	add(many)
	for _, one := range others {
		add(one)
	}
	p := r.pools.all[0]
	require.Len(t, p.members, 103)
	assert.Len(t, p.siblings[0].found, mostOfSource+3)
	for range 30 {
		add(learned(t, 1))
	}
	assert.Len(t, p.siblings[0].found, diagnose.MostSiblings+1)
	r.pools.Evaluate(&r.settings, 2*day, nil)
	assert.Len(t, p.siblings[0].peers.Siblings, diagnose.MostSiblings+1)
	r.pools.Begin()
	add(many)
	assert.Len(t, p.siblings[0].found, mostOfSource, "the next evaluation counts again")
}

// What is usual for a pool is so for its engines together. Of a sum it is not known while one of them has to learn it.
func TestWhatIsUsualForAPoolIsSoForItsEngines(t *testing.T) {
	t.Parallel()
	p := &pool{}
	for _, m := range learned(t, 2).members {
		p.members = append(p.members, newMember(&m, "s"))
	}
	usual := p.usual()
	assert.InDelta(t, 2+2, usual[signal.Running], 1e-6)
	assert.InDelta(t, 0.1, usual[signal.TimeToFirstToken], 1e-6)
	lost := (&one{condition: diagnose.Unreachable}).member("m")
	p.members = append(p.members, newMember(&lost, "s"))
	assert.InDelta(t, 2+2, p.usual()[signal.Running], 1e-6, "a server that cannot be read is in neither sum")
	fresh := (&one{condition: diagnose.Healthy}).member("m")
	p.members = append(p.members, newMember(&fresh, "s"))
	usual = p.usual()
	assert.False(t, signal.Known(usual[signal.Running]))
	assert.InDelta(t, 0.1, usual[signal.TimeToFirstToken], 1e-6, "a mean is that of those who know it")
}
