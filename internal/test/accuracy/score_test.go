package accuracy

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/internal/vllmsim/engine"
)

// twoCauses returns a story of 20 minutes. The clock falls at minute 5 and errors begin
// at minute 10; both last until minute 16. Its truth is given, not measured.
func twoCauses() (*Story, []Bin) {
	s := &Story{Name: "two", Length: 20 * window, Injections: []Injection{
		inject(engine.ParamClock, 0.5, 5*window, 16*window),
		inject(engine.ParamErrorRate, 0.5, 10*window, 16*window),
	}}
	bins := make([]Bin, 20)
	for i := range bins {
		bins[i].Judged = true
	}
	for i := 5; i < 10; i++ {
		bins[i] = Bin{Judged: true, Harm: true, Latency: true, Primary: []string{"slow_steps"}}
	}
	for i := 10; i < 16; i++ {
		bins[i] = Bin{Judged: true, Harm: true, Lost: true, Primary: []string{"erroring"}, True: []string{"erroring", "slow_steps"}}
	}
	return s, bins
}

// fake returns the report of a function for every ten seconds.
func fake(s *Story, reportAt func(at float64) Reported) []Reported {
	var out []Reported
	for at := interval; at <= s.Length; at += interval {
		t := reportAt(at)
		t.At = at
		out = append(out, t)
	}
	return out
}

func degraded(primary string, contributing ...string) Reported {
	return Reported{Severity: 2, Condition: "degraded", Primary: primary, Contributing: contributing}
}

func minuteOf(at float64) int { return int((at - 1e-9) / window) }

func oracle(bins []Bin) func(float64) Reported {
	return func(at float64) Reported {
		if b := &bins[minuteOf(at)]; b.Harm {
			return degraded(b.Primary[0])
		}
		return Reported{Condition: "healthy"}
	}
}

func TestAnOracleIsAlwaysRightAndNoReportIsNever(t *testing.T) {
	s, bins := twoCauses()
	// Minutes 5 to 7 and 10 to 12 are within three windows of an onset.
	r := score(s, bins, fake(s, oracle(bins)))
	require.Len(t, r.Verdicts, 5)
	for _, v := range r.Verdicts {
		assert.True(t, v.Right && v.TopTwo, v)
	}
	assert.Equal(t, []int{8, 9, 13, 14, 15}, minutesOf(r.Verdicts))
	assert.Equal(t, 6, r.Settling)
	assert.InDelta(t, 1.0/6, r.Delay, 1e-9, "the first scrape")
	assert.Equal(t, 5, r.Quiet)
	assert.Zero(t, r.Noisy)

	r = score(s, bins, nil)
	require.Len(t, r.Verdicts, 5)
	for _, v := range r.Verdicts {
		assert.False(t, v.Right || v.TopTwo, v)
		assert.Equal(t, "nothing", v.Reported)
	}
	assert.True(t, math.IsInf(r.Delay, 1))
}

func minutesOf(verdicts []Verdict) []int {
	var out []int
	for _, v := range verdicts {
		out = append(out, v.Minute)
	}
	return out
}

func TestAConstantReportIsRightOnlyForItsCause(t *testing.T) {
	s, bins := twoCauses()
	r := score(s, bins, fake(s, func(float64) Reported { return degraded("slow_steps", "erroring") }))
	sum := Summarize([]Result{r})
	assert.Equal(t, map[string]Share{"slow_steps": {2, 2}, "erroring": {0, 3}}, sum.Minutes)
	assert.Equal(t, map[string]Share{"slow_steps": {2, 2}, "erroring": {3, 3}}, sum.TopTwo)
	assert.Equal(t, map[string]Share{"slow_steps": {1, 1}, "erroring": {0, 1}}, sum.Runs)
	assert.Equal(t, map[string]map[string]int{"slow_steps": {"slow_steps": 2}, "erroring": {"slow_steps": 3}}, sum.Confusion)
	mean, worth := macro(sum.Minutes)
	assert.InDelta(t, 0.5, mean, 1e-12, "each cause weighs the same")
	assert.InDelta(t, 4/(1.0/2+1.0/3), worth, 1e-12)
	assert.Equal(t, 5, sum.Noisy)
}

func TestTheRightReports(t *testing.T) {
	s, bins := twoCauses()
	both := bins[13]
	both.Primary = []string{"erroring", "slow_steps"}
	demand := Bin{Judged: true, Harm: true, Primary: []string{"demand_exceeds_capacity"}, Also: []string{"decode_load"}}
	none := Bin{Judged: true, Harm: true}
	for name, c := range map[string]struct {
		bin        Bin
		reported   Reported
		right, top bool
	}{
		"the cause":               {bins[13], degraded("erroring"), true, true},
		"another":                 {bins[13], degraded("frontend_bound"), false, false},
		"one true, not primary":   {bins[13], degraded("slow_steps"), false, false},
		"second":                  {bins[13], degraded("slow_steps", "erroring"), false, true},
		"one of three":            {bins[13], degraded("slow_steps", "erroring", "kv_pressure"), false, false},
		"failing":                 {bins[13], Reported{Severity: 3, Condition: "failing", Primary: "erroring"}, true, true},
		"the cause, but healthy":  {bins[13], Reported{Condition: "healthy", Primary: "erroring"}, false, false},
		"unknown":                 {bins[13], Reported{Severity: 1, Condition: "unknown"}, false, false},
		"either of two":           {both, degraded("slow_steps"), true, true},
		"another name":            {demand, degraded("decode_load"), true, true},
		"no cause, none reported": {none, degraded(""), false, false},
		"nothing":                 {bins[13], Reported{Severity: -1}, false, false},
		"stalled is no cause":     {bins[13], Reported{Severity: 3, Condition: stalled}, false, false},
		"stalled with some cause": {bins[13], Reported{Severity: 3, Condition: stalled, Primary: "erroring"}, true, true},
	} {
		c.reported.At = 13 * window
		assert.Equal(t, c.right, right(s, &c.bin, &c.reported), name)
		assert.Equal(t, c.top, topTwo(s, &c.bin, &c.reported), name)
	}
}

func TestAStallIsAConditionAndItsDrainIsAnyHarm(t *testing.T) {
	for name, p := range map[string]engine.Parameter{stalled: engine.ParamStall, asleep: engine.ParamSleep} {
		s := &Story{Length: 20 * window, Injections: []Injection{inject(p, 1, 5*window, 10*window)}}
		b := &Bin{Judged: true, Harm: true, Primary: []string{name}}
		for _, c := range []struct {
			at       float64
			reported Reported
			want     bool
		}{
			{8 * window, Reported{Condition: name}, true},
			{8 * window, degraded("slow_steps"), false},
			{11 * window, Reported{Condition: name}, true},
			{11 * window, degraded("demand_exceeds_capacity"), true},
			{11 * window, Reported{Condition: "healthy"}, false},
		} {
			c.reported.At = c.at
			assert.Equal(t, c.want, right(s, b, &c.reported), "%s at %v: %v", name, c.at, c.reported)
		}
	}
}

func TestTheDelayStartsAtTheFirstHarmfulMinute(t *testing.T) {
	s, bins := twoCauses()
	late := func(by float64) []Reported {
		return fake(s, func(at float64) Reported {
			if at < 5*window+by {
				return Reported{Condition: "healthy"}
			}
			return oracle(bins)(at)
		})
	}
	assert.InDelta(t, 2, score(s, bins, late(120)).Delay, 1e-9)
	assert.InDelta(t, 3.5, score(s, bins, late(210)).Delay, 1e-9)
	// The wrong cause up to minute 10, in which the truth becomes another.
	r := score(s, bins, fake(s, func(float64) Reported { return degraded("erroring") }))
	assert.InDelta(t, 5+1.0/6, r.Delay, 1e-9)
}

func TestMinutesThatDoNotCountAreCounted(t *testing.T) {
	s, bins := twoCauses()
	bins[8].Judged, bins[8].Harm = false, false
	bins[9].Primary = nil
	r := score(s, bins, fake(s, oracle(make([]Bin, 20))))
	assert.Equal(t, []int{13, 14, 15}, minutesOf(r.Verdicts))
	assert.Equal(t, 1, r.Undetermined)
	assert.Equal(t, 1, r.Unjudged)
}

func TestFalseAlarmsAreChangesWithoutHarm(t *testing.T) {
	s, bins := twoCauses()
	level := func(levels map[int]int) []Reported {
		return fake(s, func(at float64) Reported { return Reported{Severity: levels[minuteOf(at)]} })
	}
	alarms := func(reported []Reported) []int {
		var out []int
		found, hours := falseAlarms(s, bins, reported)
		assert.InDelta(t, 6.0/60, hours, 1e-9, "5 minutes before, and from minute 19 on")
		for _, a := range found {
			out = append(out, a.Severity)
		}
		return out
	}
	assert.Empty(t, alarms(level(nil)))
	assert.Empty(t, alarms(level(map[int]int{5: 2, 9: 3, 17: 2})), "harm, or just after")
	assert.Equal(t, []int{2}, alarms(level(map[int]int{1: 2, 2: 2})), "one change")
	assert.Equal(t, []int{2, 2}, alarms(level(map[int]int{1: 2, 3: 2})))
	assert.Equal(t, []int{2, 3}, alarms(level(map[int]int{1: 2, 2: 3, 3: 2})))
	assert.Equal(t, []int{3}, alarms(level(map[int]int{1: 1, 19: 3})))

	s.Faults = []Fault{{Restart, 1 * window, 2 * window}}
	found, hours := falseAlarms(s, bins, level(map[int]int{1: 3, 4: 2}))
	assert.InDelta(t, 4.0/60, hours, 1e-9, "minutes 0, 3, 4 and 19")
	require.Len(t, found, 1)
	assert.Equal(t, 2, found[0].Severity)
}

func TestWilsonsInterval(t *testing.T) {
	// The example of Newcombe (Statistics in Medicine 17, 1998, table I): 81 of 263.
	low, high := wilson(81.0/263, 263)
	assert.InDelta(t, 0.2553, low, 5e-5)
	assert.InDelta(t, 0.3662, high, 5e-5)
	// And 0 of 20.
	low, high = wilson(0, 20)
	assert.InDelta(t, 0, low, 1e-12)
	assert.InDelta(t, 0.1611, high, 5e-5)
}

func TestBoundsOfRates(t *testing.T) {
	// Exact Poisson limits of 95 % (Garwood 1936): 0 events to 3.689, 4 to 10.242.
	assert.InDelta(t, 3.689, atMost(0, 10_000), 5e-3)
	assert.InDelta(t, 10.242, atMost(4, 10_000), 5e-3)
	assert.InDelta(t, 1-math.Exp(-0.5), poissonAtLeast(1, 0.5), 1e-12)
}

func TestQuantilesOfDelays(t *testing.T) {
	assert.InDelta(t, 2, quantileOf([]float64{1, 2, 3}, 0.5), 0)
	assert.InDelta(t, 2, quantileOf([]float64{1, 2, 3, 4}, 0.5), 0)
	assert.InDelta(t, 9, quantileOf([]float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, 0.9), 0)
	assert.True(t, math.IsNaN(quantileOf(nil, 0.5)))
}

func TestASampleRefutesAndDoesNotConfirm(t *testing.T) {
	s, bins := twoCauses()
	few := Summarize([]Result{score(s, bins, fake(s, oracle(bins)))})
	assert.Empty(t, Refuted(&few, &Alarms{Hours: 96}))
	assert.Empty(t, Refuted(&Summary{}, &Alarms{}))
	// 2 wrong stories of 16 are possible for a diagnosis that is right in nine of ten;
	// 9 wrong ones are not.
	stories := func(wrong int) *Summary {
		var results []Result
		for i := range 16 {
			reportAt := oracle(bins)
			if i < wrong {
				reportAt = func(float64) Reported { return Reported{Condition: "healthy"} }
			}
			results = append(results, score(s, bins, fake(s, reportAt)))
		}
		sum := Summarize(results)
		return &sum
	}
	assert.Empty(t, Refuted(stories(2), &Alarms{Hours: 96}))
	assert.NotEmpty(t, Refuted(stories(9), &Alarms{Hours: 96}))
	assert.Len(t, Refuted(&few, &Alarms{96, []Alarm{{Severity: 2}, {Severity: 2}}}), 1, "two warnings in four days are far above 4 in 10,000 h")
	assert.Empty(t, Refuted(&few, &Alarms{5000, []Alarm{{Severity: 2}}}))
	assert.Len(t, Refuted(&few, &Alarms{5000, []Alarm{{Severity: 3}}}), 1)
}

func TestMissedBarsHaveTheDifference(t *testing.T) {
	sum := Summary{
		Minutes: map[string]Share{"a": {950, 1000}, "b": {850, 1000}}, TopTwo: map[string]Share{"a": {1000, 1000}, "b": {930, 1000}},
		Delays: []float64{1, 2, 3, 4, 7},
	}
	var missed []string
	for _, bar := range Bars(&sum, &Alarms{Hours: 5000, Alarms: []Alarm{{Severity: 2}, {Severity: 2}, {Severity: 2}}}) {
		if !bar.Holds {
			missed = append(missed, bar.Name+": "+bar.Short)
		}
	}
	// By hand: 0.9 of 2000 has the lower bound 0.8861; the top two are 0.965.
	assert.Equal(t, []string{
		"right cause, mean over the causes: 1.4 points", "right cause among the two strongest: 0.5 points",
		"delay, 90 % of the stories: 1.0", "false alarms at warning severity: 1.0 too many",
	}, missed)
}
