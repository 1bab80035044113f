package fleet

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/collect"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/diagnose"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/learn"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/signal"
)

// usual is the model of an engine whose steps take so many seconds, learned up to a time.
func usual(t *testing.T, seconds float64, at int64) *learn.Model {
	t.Helper()
	b := learn.NewBaseline()
	for n := range 30 {
		w := learn.Window{Signals: signal.Unknown(), At: at - int64(29-n)*int64(time.Minute), FirstTokens: 60, Generation: 100, Computed: 500}
		s := &w.Signals
		s[signal.StepTime], s[signal.InterTokenLatency] = seconds, seconds
		s[signal.PromptTokens], s[signal.ComputedTokens], s[signal.OutputTokens] = 500, 500, 100
		b.Learn(&w, time.Minute, &signal.Set{})
	}
	m := learn.NewModel(b)
	require.NotNil(t, m)
	return m
}

// kept is a Keeper.
type kept map[string][]byte

func (k kept) Begin(attributes []collect.Attribute) []byte   { return k[attributes[0].Value] }
func (k kept) End(attributes []collect.Attribute, of []byte) { k[attributes[0].Value] = of }

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
	r.pools.Keeper = keeper
	pod := func(model string) *source {
		m := (&one{condition: diagnose.Healthy, load: 1}).member(model)
		m.Model, m.Blocks = model, 1000
		return &source{members: []diagnose.Member{m}}
	}
	evaluate := func(at int64, sources ...*source) {
		r.pools.Begin()
		for _, s := range sources {
			r.pools.Add(s, func(of []collect.Attribute) []collect.Attribute { return of })
		}
		r.pools.Evaluate(&r.settings, at, nil)
	}
	evaluate(day, pod("m"))
	was := usual(t, 0.02, day)
	r.pools.pools[0].siblings[0].Usual = was
	for range 3 {
		evaluate(day)
	}
	require.NotEmpty(t, keeper["m"], "the pool has gone")
	newest, sound := diagnose.Age(keeper["m"])
	assert.True(t, sound)
	assert.Equal(t, day, newest)
	evaluate(2*day, pod("m"))
	again := r.pools.pools[0].siblings[0]
	require.NotNil(t, again.Usual)
	x, y := was.Step(2, 1100, 10), again.Usual.Step(2, 1100, 10)
	assert.InEpsilon(t, x.Seconds, y.Seconds, 1e-9)
	saved := 0
	r.pools.References(func([]collect.Attribute, []byte) { saved++ })
	assert.Equal(t, 1, saved)
	evaluate(day+int64(diagnose.BaselineMemory)+1, pod("m"))
	assert.Nil(t, again.Usual, "it is too old")
}

// However many engines and configurations a pool has, what is kept of them is bounded.
func TestAPoolKeepsFewOfItsEngines(t *testing.T) {
	t.Parallel()
	p := &pool{}
	for i := range 1000 {
		p.meet(&diagnose.Member{Model: fmt.Sprint("model-", i), Blocks: 1000})
	}
	assert.LessOrEqual(t, len(p.siblings), learn.MostReferences)
	first := p.siblings[0]
	first.Usual = usual(t, 0.02, day)
	for i := range 1000 {
		p.meet(&diagnose.Member{Model: fmt.Sprint("other-", i), Blocks: 1000})
	}
	assert.Same(t, first, p.siblings[0], "what is known stays")
	m := diagnose.Member{Model: first.Model, Blocks: 1050}
	assert.Same(t, first, p.siblingsOf(&m), "5 % more blocks are the same configuration")
	m.Blocks = 1200
	assert.NotSame(t, first, p.siblingsOf(&m))
}
