package diagnose

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/signal"
)

// slow is an engine whose tokens take three times as long as usual.
func slow() scraped {
	s := serves("0")
	s.observed[input.InterTokenLatency] = [2]float64{1485, 0.06}
	return s
}

// errs is an engine of which a share of the requests end in errors: two or eight of 15.
func errs(n float64) scraped {
	s := serves("0")
	s.labelledCounts[input.RequestSuccess] = map[string]float64{"stop": 15 - n, "error": n}
	return s
}

func sleeps() scraped {
	s := rests("0")
	s.labelled = map[input.Metric]map[string]float64{input.SleepState: {"awake": 0}}
	return s
}

// overrun is an engine at which requests arrive faster than it serves them.
func overrun(waiting float64) scraped {
	s := serves("0")
	s.gauges = map[input.Metric]float64{input.Running: 8, input.Waiting: waiting, input.KVCacheUtilization: 0.95}
	s.observed[input.TimeToFirstToken] = [2]float64{15, 4}
	return s
}

// complete adds the counters that a server always has.
func complete(s scraped) scraped {
	s.labelledCounts = map[input.Metric]map[string]float64{input.RequestSuccess: {"stop": 0, "error": 0}}
	return s
}

// kinds are what an engine does, by the condition that it has then.
var kinds = map[string]func() scraped{
	"healthy": func() scraped { return serves("0") }, "slow": slow, "some errors": func() scraped { return errs(2) },
	"many errors": func() scraped { return errs(8) }, "stalled": func() scraped { return complete(standsStill("0")) },
	"idle": func() scraped { return complete(rests("0")) }, "asleep": func() scraped { return complete(sleeps()) }, "queue": func() scraped { return overrun(40) },
}

var conditionOf = map[string]Condition{
	"healthy": Healthy, "slow": Degraded, "some errors": Degraded, "many errors": Failing, "stalled": Stalled, "idle": Idle, "asleep": Asleep, "queue": Critical,
}

// restarted is a server that was healthy, and then of a kind, until the collector restarts. It is
// away for so many scrapes.
func restarted(t *testing.T, kind string, scrapes int) *rig {
	t.Helper()
	r := newRig(t)
	r.state.Keeper = &store{baselines: map[string][]byte{}, diagnoses: map[string][]byte{}}
	r.minutes(15, answers(1), serves("0"))
	require.Equal(t, Healthy, r.verdict("0").Condition)
	r.minutes(8, answers(1), kinds[kind]())
	require.Equal(t, conditionOf[kind], r.verdict("0").Condition, kind)
	r.leave(scrapes, kind)
	r.changes = nil
	return r
}

// leave restarts the collector, which is away for so many scrapes.
func (r *rig) leave(scrapes int, kind string) {
	r.restartCollector(r.state.Keeper.(*store))
	r.away = true
	for range scrapes {
		r.scrape(answers(1), kinds[kind]())
	}
	r.away = false
}

// What was reported before a restart of the collector is reported by the first reading after it, and
// by each further one while the engine does the same. Nothing has changed, so nothing is logged but
// that harm goes on.
func TestARestartOfTheCollectorChangesNoVerdict(t *testing.T) {
	t.Parallel()
	for kind := range kinds {
		for _, hold := range []int{1, 2, 5} {
			t.Run(fmt.Sprint(kind, " ", hold), func(t *testing.T) {
				t.Parallel()
				r := newRig(t)
				r.settings = settings(hold)
				r.state.Keeper = &store{baselines: map[string][]byte{}, diagnoses: map[string][]byte{}}
				r.minutes(15, answers(1), serves("0"))
				r.minutes(10, answers(1), kinds[kind]())
				before := *r.verdict("0")
				require.Equal(t, conditionOf[kind], before.Condition)
				r.leave(6, kind)
				r.changes = nil
				for n := range 24 {
					r.scrape(answers(1), kinds[kind]())
					now := r.verdict("0")
					require.Equal(t, before.Condition, now.Condition, "reading %d", n)
					assert.Equal(t, before.Severity, now.Severity)
					assert.True(t, before.same(now), "reading %d: %v", n, now)
				}
				require.NotEmpty(t, r.changes)
				assert.True(t, r.changes[0].Continues)
				assert.Equal(t, before.Severity >= 2, r.changes[0].News())
				for _, change := range r.changes[1:] {
					assert.False(t, change.News(), "%+v", change.To)
				}
			})
		}
	}
}

// The transition of a diagnosis that continues has the time of the last reading before the restart,
// and no signals, because it is not new evidence.
func TestADiagnosisThatContinuesIsNoNewEvidence(t *testing.T) {
	t.Parallel()
	r := restarted(t, "slow", 4)
	last := r.at - 4*scrape
	changes := r.scrape(answers(1), slow())
	require.Len(t, changes, 1)
	assert.True(t, changes[0].Continues)
	assert.Equal(t, last, changes[0].At)
	assert.Equal(t, changes[0].To, changes[0].From)
	for s := range signal.Count {
		assert.False(t, signal.Known(changes[0].Signals[s]), s)
	}
	assert.InDelta(t, 1, changes[0].Shares.total(), 1e-9)
}

// An engine that has recovered while the collector was away is healthy as soon as it would have been
// if it had recovered after the restart of a collector that was not away.
func TestAnEngineThatRecoveredMeanwhileIsHealthy(t *testing.T) {
	t.Parallel()
	for kind, condition := range conditionOf {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			until := func(r *rig) (minutes float64) {
				for r.verdict("0") == nil || r.verdict("0").Condition != Healthy {
					r.scrape(answers(1), serves("0"))
					minutes += 0.25
					require.Less(t, minutes, 20.0)
				}
				return minutes
			}
			one := newRig(t)
			one.minutes(15, answers(1), serves("0"))
			one.minutes(8, answers(1), kinds[kind]())
			require.Equal(t, condition, one.verdict("0").Condition)
			r := restarted(t, kind, 8)
			r.scrape(answers(1), serves("0"))
			// What it cannot compare with a whole window takes as long.
			assert.LessOrEqual(t, until(r)+0.25, max(until(one)+0.5, 1.25))
		})
	}
}

// A diagnosis is not used where the server has restarted in between, where it is older than a server
// that is silent is remembered, and where it is in the future.
func TestADiagnosisThatIsNotUsed(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		scrapes int
		change  func(r *rig)
		used    bool
	}{
		"as old as may be":     {19, func(*rig) {}, true},
		"too old":              {20, func(*rig) {}, false},
		"same process":         {4, func(r *rig) { r.process = 1000.5 }, true},
		"other process":        {4, func(r *rig) { r.process = 1002 }, false},
		"counters fell":        {4, func(r *rig) { r.restart(); r.started = 0 }, false},
		"counters began again": {4, func(r *rig) { r.started = r.at - scrape }, false},
		"counters as before":   {4, func(r *rig) { r.started = r.at - 10*scrape }, true},
		"of the future":        {4, func(r *rig) { r.at -= 10 * scrape }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.process = 1000
			r.state.Keeper = &store{baselines: map[string][]byte{}, diagnoses: map[string][]byte{}}
			r.minutes(15, answers(1), serves("0"))
			r.minutes(8, answers(1), slow())
			require.Equal(t, Degraded, r.verdict("0").Condition)
			r.leave(test.scrapes, "slow")
			r.changes = nil
			test.change(r)
			changes := r.scrape(answers(1), slow())
			if test.used {
				assert.Equal(t, Degraded, r.verdict("0").Condition)
				return
			}
			assert.Equal(t, Unknown, r.verdict("0").Condition)
			assert.Equal(t, JustSeen, r.verdict("0").Because)
			assert.False(t, slices.ContainsFunc(changes, func(c Transition) bool { return c.News() }))
			r.minutes(3, answers(1), serves("0"))
			assert.Equal(t, Healthy, r.verdict("0").Condition)
		})
	}
}

// A server that does not answer when the collector starts, and then is another process, was
// reported as before until then. Its series end by a number.
func TestAServerThatComesBackAsAnotherProcess(t *testing.T) {
	t.Parallel()
	r := restarted(t, "slow", 1)
	r.scrape(answers(0))
	assert.Equal(t, Degraded, r.verdict("0").Condition, "one failed scrape is not a reading")
	r.restart()
	r.scrape(answers(1), serves("0"))
	assert.Equal(t, Healthy, r.verdict("0").Condition, "as with each new server")
	var conditions []string
	for _, value := range r.state.Values(r.window, allRows()) {
		if value.Row == engineRows.condition {
			conditions = append(conditions, fmt.Sprintf("%s %g", value.Extra[0], value.Number))
		}
	}
	assert.ElementsMatch(t, []string{"degraded 0", "unknown 0", "healthy 1"}, conditions)
	r.minutes(1, answers(1), serves("0"))
	assert.Equal(t, Healthy, r.verdict("0").Condition)
}

// A stall that began before the collector restarted is reported when it would have been.
func TestAStallGoesOnOverARestart(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.state.Keeper = &store{baselines: map[string][]byte{}, diagnoses: map[string][]byte{}}
	r.minutes(15, answers(1), serves("0"))
	r.minutes(0.75, answers(1), standsStill("0"))
	require.NotEqual(t, Stalled, r.verdict("0").Condition)
	r.leave(2, "stalled")
	r.scrape(answers(1), standsStill("0"))
	r.scrape(answers(1), standsStill("0"))
	assert.Equal(t, Stalled, r.verdict("0").Condition)
	r.leave(2, "stalled")
	r.scrape(answers(1), standsStill("0"))
	assert.Equal(t, Stalled, r.verdict("0").Condition, "with the first reading")
}

// The new collector may have other settings. Evidence that it does not collect ends.
func TestWhatTheNewCollectorDoesNotJudgeEnds(t *testing.T) {
	t.Parallel()
	all := func(string) bool { return true }
	for name, settings := range map[string]func(s *Settings){
		"an objective for the first token": func(s *Settings) {
			s.Objectives = []Objective{{Name: "a", Input: input.TimeToFirstToken, Threshold: 10, Target: 0.5, Matches: all}}
		},
		"an objective for each token": func(s *Settings) {
			s.Objectives = []Objective{{Name: "a", Input: input.InterTokenLatency, Threshold: 10, Target: 0.5, Matches: all}}
		},
	} {
		for _, kind := range []string{"slow", "queue"} {
			r := restarted(t, kind, 4)
			settings(r.settings)
			r.minutes(6, answers(1), serves("0"))
			assert.Equal(t, Healthy, r.verdict("0").Condition, "%s: %s", name, kind)
		}
	}
	missed := newRig(t)
	missed.settings.Objectives = []Objective{{Name: "a", Input: input.TimeToFirstToken, Threshold: 0.5, Target: 0.99, Matches: all}}
	missed.state.Keeper = &store{baselines: map[string][]byte{}, diagnoses: map[string][]byte{}}
	missed.minutes(15, answers(1), serves("0"))
	missed.minutes(8, answers(1), overrun(40))
	require.Equal(t, "a", missed.verdict("0").Objective)
	missed.leave(4, "queue")
	missed.scrape(answers(1), overrun(40))
	assert.Equal(t, "a", missed.verdict("0").Objective)
	missed.settings.Objectives = nil
	missed.minutes(6, answers(1), serves("0"))
	assert.Equal(t, Healthy, missed.verdict("0").Condition)

	for kind, condition := range conditionOf {
		if condition != Degraded && condition != Failing {
			continue
		}
		r := restarted(t, kind, 4)
		for range 4 { // Every three minutes, with a window of one.
			r.scrape(answers(1), kinds[kind]())
			r.at += 11 * scrape
		}
		assert.Equal(t, Unknown, r.verdict("0").Condition, kind)
		assert.Equal(t, FarApart, r.verdict("0").Because, kind)
	}
}

// A slow engine whose slowness begins right after the restart is judged by what was usual before.
func TestWhatWasUsualBeforeARestartJudgesWhatComesAfter(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.state.Keeper = &store{baselines: map[string][]byte{}, diagnoses: map[string][]byte{}}
	r.minutes(15, answers(1), serves("0"))
	r.leave(4, "healthy")
	r.minutes(6, answers(1), slow())
	assert.Equal(t, Degraded, r.verdict("0").Condition)
	assert.Equal(t, SlowSteps, r.verdict("0").Primary)
	assert.Equal(t, Learned, r.verdict("0").Reference)

	fresh := newRig(t)
	fresh.minutes(6, answers(1), slow())
	assert.Equal(t, Healthy, fresh.verdict("0").Condition, "0.06 s is usual where nothing else is known")
}

// What is stored of an engine is some hundred bytes, and bounded.
func TestASavedDiagnosisIsSmall(t *testing.T) {
	t.Parallel()
	for kind := range kinds {
		r := newRig(t)
		r.minutes(15, answers(1), serves("0"))
		r.minutes(8, answers(1), kinds[kind]())
		r.state.Diagnoses(func(_ Kept, _ []input.Attribute, data []byte) {
			t.Logf("%s: %d bytes", kind, len(data))
			assert.Less(t, len(data), 2000, kind)
			at, sound := DiagnosisAge(data)
			assert.True(t, sound)
			assert.Equal(t, r.at, at)
		})
	}
	d := saved{At: 1, Reported: Verdict{Objective: strings.Repeat("\x01", maxSavedName+1)}}
	assert.Nil(t, d.encode(), "a name that is too long")
	d.Reported.Objective = ""
	for c := range NumCauses {
		d.Details.Reported[c] = strings.Repeat("\x01", maxSavedName)
	}
	assert.Nil(t, d.encode(), "escaped it is too long")
}

// What stands in a storage becomes an attribute only where it is a detail of this cause.
func TestAStoredDetailIsOneOfTheCatalogue(t *testing.T) {
	t.Parallel()
	for detail, want := range map[string]string{"kv": "kv", "": "", "thermal": "unset", "forged\nline": "unset"} {
		e := &engine{baseline: learned(1)}
		d := saved{At: 1}
		d.Details.Reported[DemandExceedsCapacity], d.Details.Shown[DemandExceedsCapacity] = detail, true
		require.True(t, e.resume(settings(2), d.encode(), 1))
		assert.Equal(t, strings.TrimPrefix(want, "unset"), e.Details.Reported[DemandExceedsCapacity], "%q", detail)
		assert.Equal(t, want != "unset", e.Details.Shown[DemandExceedsCapacity], "%q", detail)
	}
}

// A stored diagnosis with numbers that no engine has is not used, or it is and ends as any other.
func TestADamagedDiagnosisHoldsNothing(t *testing.T) {
	t.Parallel()
	base := newRig(t)
	base.state.Keeper = &store{baselines: map[string][]byte{}, diagnoses: map[string][]byte{}}
	base.minutes(15, answers(1), serves("0"))
	base.minutes(8, answers(1), overrun(40))
	keeper := base.state.Keeper.(*store)
	base.restartCollector(keeper)
	var key string
	for k := range keeper.diagnoses {
		key = k
	}
	var fields map[string]any
	require.NoError(t, json.Unmarshal(keeper.diagnoses[key], &fields))
	random := rand.New(rand.NewPCG(1, 2))
	used := 0
	for range 120 {
		var damaged map[string]any
		require.NoError(t, json.Unmarshal(keeper.diagnoses[key], &damaged))
		spoil(random, damaged, 1+random.IntN(3))
		damaged["diagnosis"], damaged["at"] = fields["diagnosis"], base.at
		data, err := json.Marshal(damaged)
		require.NoError(t, err)
		r := newRig(t)
		r.at = base.at
		r.state.Keeper = &store{baselines: keeper.baselines, diagnoses: map[string][]byte{key: data}}
		if _, sound := decodeDiagnosis(data); sound {
			used++
		}
		for range 40 {
			r.scrape(answers(1), serves("0"))
			v := r.verdict("0")
			require.Less(t, v.Condition, NumConditions)
			require.LessOrEqual(t, v.Severity, 3)
			require.LessOrEqual(t, r.engine("0").Shares.total(), 1+1e-6)
			require.True(t, signal.Known(r.engine("0").Shares.total()))
		}
		require.Equal(t, Healthy, r.verdict("0").Condition, "%s", data)
	}
	assert.Greater(t, used, 12, "some of the damage is not seen")
	for _, data := range []string{
		"", "null", "{}", "[]", "\x00", strings.Repeat("{", maxSavedDiagnosis), `{"diagnosis":1,"at":5}`, `{"version":1}`,
		strings.Replace(string(keeper.diagnoses[key]), `"at"`, `"and":1,"at"`, 1),
	} {
		_, sound := decodeDiagnosis([]byte(data))
		assert.False(t, sound, data)
	}
}

// spoil changes some values of a decoded JSON object.
func spoil(random *rand.Rand, of map[string]any, times int) {
	names := []string{}
	for name := range of {
		names = append(names, name)
	}
	slices.Sort(names)
	bad := []any{-1, 0, 1, 3, 17, 200, 1e308, -1e308, 0.5, nil, true, false, "x", math.MaxInt64, []any{1, 2}, map[string]any{}}
	for range times {
		name := names[random.IntN(len(names))]
		switch inner := of[name].(type) {
		case map[string]any:
			if len(inner) > 0 {
				spoil(random, inner, 1)
			}
		case []any:
			if len(inner) > 0 {
				if deeper, is := inner[random.IntN(len(inner))].(map[string]any); is && len(deeper) > 0 {
					spoil(random, deeper, 1)
				} else {
					inner[random.IntN(len(inner))] = bad[random.IntN(len(bad))]
				}
			}
		default:
			of[name] = bad[random.IntN(len(bad))]
		}
	}
}

// At whatever time of whatever story the collector restarts, the conditions are those of a
// collector that does not, within a window. In the first eight windows they are those within five.
func TestARestartAtAnyTimeOfAnyStory(t *testing.T) {
	t.Parallel()
	names := []string{}
	for kind := range kinds {
		names = append(names, kind)
	}
	slices.Sort(names)
	const windows = 4 // A window has four readings.
	for seed := range uint64(80) {
		random := rand.New(rand.NewPCG(seed, 17))
		stays, restarts := newRig(t), newRig(t)
		restarts.state.Keeper = &store{baselines: map[string][]byte{}, diagnoses: map[string][]byte{}}
		both := []*rig{stays, restarts}
		var severities [2][]int
		var phases []string
		take := func(kind string) {
			for i, r := range both {
				r.scrape(answers(1), kinds[kind]())
				severity := -1
				if !r.away {
					// Notices come and go with what is learned, and while it is away the one learns less.
					severity = max(r.verdict("0").Severity, 1)
				}
				severities[i] = append(severities[i], severity)
			}
			phases = append(phases, kind)
		}
		for range 60 {
			take("healthy")
		}
		var story []string
		for range 4 {
			kind := names[random.IntN(len(names))]
			for range 8 + random.IntN(40) {
				story = append(story, kind)
			}
		}
		begin := random.IntN(len(story))
		gap := random.IntN(16)
		for n, kind := range story {
			if n == begin {
				restarts.restartCollector(restarts.state.Keeper.(*store))
				restarts.away = true
			}
			restarts.away = restarts.away && n < begin+gap
			take(kind)
		}
		from := 60 + begin + gap
		for at := from; at < len(phases); at++ {
			// A collector that was away has learned some windows less, so that it can decide a reading
			// sooner or later.
			within := windows
			if at < from+8*windows {
				within = 5 * windows
			}
			if slices.ContainsFunc(phases[max(at-5*windows-gap, 0):at], func(kind string) bool { return kind != phases[at] }) && severities[1][at] == 1 {
				continue // The next fault, which is judged by what was learned.
			}
			near := severities[0][max(at-within, 0):min(at+within+1, len(phases))]
			assert.Contains(t, near, severities[1][at], "seed %d: %s at %d after the restart at %d, gap %d", seed, phases[at], at-from, begin, gap)
		}
		if t.Failed() {
			t.Logf("%v", phases[60:])
			t.Logf("%v\n%v", severities[0][60:], severities[1][60:])
			return
		}
	}
}
