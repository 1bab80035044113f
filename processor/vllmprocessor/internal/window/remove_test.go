package window

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
)

// pod is a group of one pod, with a counter.
func pod(b *input.Batch, name string, value float64, start int64) {
	b.Groups = append(b.Groups, input.GroupOf([]input.Attribute{{Name: "engine", Value: "0"}, {Name: "pod", Value: name}}))
	b.Samples = append(b.Samples, input.Sample{Input: input.PromptTokens, Group: len(b.Groups) - 1, Value: value, Start: start})
}

func increases(r *Resource) map[string]float64 {
	all := map[string]float64{}
	for _, v := range r.Views(nil, false) {
		if increase, status := v.Increase(input.PromptTokens); status == Present {
			g := v.Group()
			all[g.Value("pod")] = increase
		}
	}
	return all
}

func fresh() *Resource {
	return NewResource(Settings{Window: time.Minute, MaxStaleness: 5 * time.Minute})
}

// Each minute of a day a pod starts, and it lives for ten minutes. With room for 40 series each
// of them is derived from.
func TestPodsThatChurnBehindOneResourceFreeTheirSeries(t *testing.T) {
	r := fresh()
	for scrape := range 24 * 60 * 2 {
		b := &input.Batch{Time: int64(scrape+1) * int64(30*time.Second)}
		minute := scrape / 2
		for p := max(0, minute-9); p <= minute; p++ {
			pod(b, fmt.Sprint(p), float64(10*(scrape-2*p)), 0)
		}
		if scrape%3 == 0 {
			r.Trim()
		}
		report := r.Observe(b, 40-r.Units())
		require.Zero(t, report.Ignored)
		if scrape > 4 {
			got := increases(r)
			require.Equal(t, 20.0, got[fmt.Sprint(max(0, minute-5))], scrape)
		}
	}
	assert.LessOrEqual(t, len(r.engines), 40)
	assert.LessOrEqual(t, len(r.index), 40)
	assert.LessOrEqual(t, len(r.existed.number), groupsExisted)
	assert.Less(t, r.nextGroup, 24*60+1)
}

// A removed series that appears again is a baseline, also once its removal is forgotten.
// Only a start after the previous batch proves that a series is new.
func TestWhatComesBackIsABaseline(t *testing.T) {
	for _, others := range []int{0, 2 * groupsExisted} {
		r := fresh()
		at := int64(0)
		observe := func(fill func(*input.Batch)) {
			at += int64(30 * time.Second)
			b := &input.Batch{Time: at}
			pod(b, "stays", float64(at/1e9), 0)
			if fill != nil {
				fill(b)
			}
			r.Observe(b, math.MaxInt)
		}
		observe(func(b *input.Batch) { pod(b, "back", 1_000_000, 0) })
		for n := 0; n < others; n += 500 {
			observe(func(b *input.Batch) {
				for i := range 500 {
					pod(b, fmt.Sprint("other", n+i), 1, 0)
				}
			})
		}
		for range 15 {
			observe(nil)
		}
		r.Trim()
		require.Len(t, r.groups, 1)
		assert.Equal(t, others > 0, r.existed.lost)
		observe(func(b *input.Batch) { pod(b, "back", 2_000_000, 0) })
		assert.NotContains(t, increases(r), "back")
		observe(func(b *input.Batch) {
			pod(b, "back", 2_000_060, 0)
			pod(b, "new", 7, 0)
			pod(b, "young", 9, at-int64(20*time.Second))
		})
		observe(func(b *input.Batch) {
			pod(b, "back", 2_000_120, 0)
			pod(b, "new", 8, 0)
			pod(b, "young", 9, at-int64(20*time.Second)-int64(30*time.Second))
		})
		got := increases(r)
		assert.Equal(t, 120.0, got["back"])
		assert.Equal(t, 9.0, got["young"], "it says that it began after the previous batch")
		if others > 0 {
			assert.NotContains(t, got, "new", "it is unknown whether it is")
		} else {
			assert.Equal(t, 8.0, got["new"])
		}
	}
}

// A series that was refused and is let in later is a baseline.
func TestWhatWasRefusedIsABaseline(t *testing.T) {
	r := fresh()
	both := func(at int64, room int) Report {
		b := &input.Batch{Time: at * int64(15*time.Second)}
		pod(b, "a", 1, 0)
		pod(b, "b", float64(1000*at), 0)
		return r.Observe(b, room)
	}
	assert.Equal(t, 1, both(1, 1).Ignored[SeriesLimit])
	alone := &input.Batch{Time: 2 * int64(15*time.Second)}
	pod(alone, "a", 1, 0)
	r.Observe(alone, 0)
	r.Observe(&input.Batch{Time: 3 * int64(15*time.Second), Groups: alone.Groups, Samples: alone.Samples}, 0)
	both(4, 1)
	assert.NotContains(t, increases(r), "b")
	for at := range int64(4) {
		both(5+at, 1)
	}
	assert.Equal(t, 4000.0, increases(r)["b"])
}

// A server that did not answer when the collector began is read for the first time.
func TestTheFirstAnswerIsABaseline(t *testing.T) {
	r := fresh()
	up := func(at int64, value float64) *input.Batch {
		return &input.Batch{Time: at * int64(15*time.Second), Groups: []input.Group{input.GroupOf(nil)}, Samples: []input.Sample{
			{Input: input.Up, Value: value},
		}}
	}
	for at := range int64(4) {
		r.Observe(up(at+1, 0), math.MaxInt)
	}
	b := up(5, 1)
	pod(b, "a", 1_000_000, 0)
	r.Observe(b, math.MaxInt)
	assert.Empty(t, increases(r))
	for at := range int64(4) {
		b = up(6+at, 1)
		pod(b, "a", 1_000_015, 0)
		pod(b, "b", 3, 0)
		r.Observe(b, math.MaxInt)
	}
	assert.Equal(t, map[string]float64{"a": 15, "b": 3}, increases(r), "a new engine of a server that answers counts from 0")
}

func TestTheEnginesOfAResourceAreBounded(t *testing.T) {
	r := fresh()
	for scrape := range 20 {
		b := &input.Batch{Time: int64(scrape+1) * int64(15*time.Second)}
		pod(b, "stays", float64(15*scrape), 0)
		more := 5000
		if scrape < 3 {
			more = 50_000
		}
		for i := range more {
			pod(b, fmt.Sprint(scrape, "-", i), 1, 0)
		}
		began := time.Now()
		report := r.Observe(b, math.MaxInt)
		assert.Less(t, time.Since(began), 5*time.Second)
		assert.GreaterOrEqual(t, report.Ignored[GroupLimit], more-1000)
		require.Len(t, r.groups, maxGroups)
	}
	assert.Equal(t, 60.0, increases(r)["stays"])
}

func TestEnginesBeyondWhatIsAllowedAreRefusedAndGivenBack(t *testing.T) {
	r := fresh()
	r.Allow(3)
	many := func(at int64) Report {
		b := &input.Batch{Time: at * int64(15*time.Second)}
		for i := range 5 {
			pod(b, fmt.Sprint(i), float64(at), 0)
		}
		return r.Observe(b, math.MaxInt)
	}
	assert.Equal(t, 2, many(1).Ignored[GroupLimit])
	assert.Equal(t, 3, r.Engines())
	r.Shrink(0, 2)
	assert.Equal(t, 1, r.Engines())
	assert.Equal(t, 1, r.Units())
	r.Allow(1)
	assert.Equal(t, 4, many(2).Ignored[GroupLimit])
	assert.Equal(t, map[string]float64{"0": 1}, increases(r))
}

func TestLongLabelsAndManyBucketsTakeMoreOfTheLimit(t *testing.T) {
	r := fresh()
	b := &input.Batch{Time: int64(time.Minute)}
	pod(b, strings.Repeat("x", 100*unit), 1, 0)
	assert.Equal(t, 1, r.Observe(b, 100).Ignored[SeriesLimit])
	require.Zero(t, r.Units())
	r.Observe(b, 300)
	assert.InDelta(t, 200, r.Units(), 2)
	wide := &input.Batch{Time: int64(2 * time.Minute), Groups: []input.Group{input.GroupOf(nil)}, Samples: []input.Sample{
		{Input: input.TimeToFirstToken, Bounds: make([]float64, 640), Counts: make([]float64, 641)},
	}}
	before := r.Units()
	r.Observe(wide, 300)
	assert.Equal(t, 11, r.Units()-before)
	r.Shrink(1, 0)
	assert.Equal(t, before, r.Units(), "a series goes as a whole")
	r.Shrink(1, 0)
	assert.Zero(t, r.Units())
	assert.Zero(t, r.Series())
	assert.Empty(t, r.groups)
}

// Clients make up names of models, hundreds a minute. The whole picker lasts, and keeps none
// of the names that are gone.
func TestModelsOfAPickerThatChurnLeaveTheWhole(t *testing.T) {
	r := fresh()
	page := func(at time.Duration, models ...string) *input.Batch {
		b := &input.Batch{Time: int64(time.Hour + at)}
		for i, model := range models {
			b.Groups = append(b.Groups, input.GroupOf([]input.Attribute{
				{Name: "model_name", Value: model}, {Name: "pod", Value: "a"}, {Name: "target_model_name", Value: model},
			}))
			b.Samples = append(b.Samples, input.Sample{Input: input.PickerErrors, Group: i, Value: 1})
		}
		return b
	}
	numbers := map[int]bool{}
	for minute := range 60 {
		models := []string{"real"}
		for i := range 100 {
			models = append(models, fmt.Sprint(minute, "-", i))
		}
		r.Observe(page(time.Duration(minute)*time.Minute, models...), math.MaxInt)
		r.Trim()
		for up, status := range r.Rollups() {
			numbers[up.Number] = true
			assert.True(t, up.Gateway)
			assert.Equal(t, []input.Attribute{{Name: "pod", Value: "a"}}, up.Attributes)
			assert.LessOrEqual(t, len(up.groups), 700)
			assert.Equal(t, map[bool]Status{true: Present, false: Pending}[minute == 0], status)
		}
	}
	assert.Equal(t, map[int]bool{0: true}, numbers)
	r.Observe(&input.Batch{
		Time:   int64(3 * time.Hour),
		Groups: []input.Group{input.GroupOf(nil)}, Samples: []input.Sample{{Input: input.PickerErrors, Value: 1}},
	}, math.MaxInt)
	r.Trim()
	require.Len(t, r.rollups, 1, "that of the only group that is left")
	assert.Empty(t, r.rollups[0].Attributes)
	assert.Len(t, r.rollupOf, 1)
}
