package main

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/lab/judge"
	"github.com/otelcol-vllm/otelcol-vllm/lab/test/accuracy/stories"
)

// perfect is a result in which every fault is reported at once with its cause, and nothing
// else. It stands for no engine.
func perfect(m stories.Meta) Record {
	p := &judge.Played{}
	for minute := range int(m.Seconds / window) {
		for server := range m.Servers {
			l := judge.Line{Minute: minute, Server: server, Requests: 100, Condition: "healthy", TrueCauses: map[string]float64{}}
			from := float64(minute) * window
			for _, in := range m.Injections {
				if in.Cause == "" || !in.Concerns(server) || from < in.At || from >= in.Ends(&m) {
					continue
				}
				l.Harmful, l.Effect, l.Severity, l.Condition = true, max(1.1, in.Wanted), 2, "degraded"
				l.TrueCauses[in.Cause] = 1
				l.Causes = []judge.Cause{{Name: in.Cause, Role: "primary"}}
				if in.Cause == "asleep" || in.Cause == "stalled" {
					l.Condition, l.Causes = in.Cause, nil
				}
			}
			p.Lines = append(p.Lines, l)
		}
	}
	for _, in := range m.Injections {
		if in.Wanted > 0 {
			p.Sought = append(p.Sought, judge.Sought{Parameter: in.Parameter, Wanted: in.Wanted, Got: in.Wanted, Value: 0.5})
		}
	}
	return newRecord(m, p)
}

// records are those of all stories of a sample.
func records(t *testing.T, change func(*Record)) []Record {
	t.Helper()
	saved := replicates
	replicates = 50
	t.Cleanup(func() { replicates = saved })
	var out []Record
	size := stories.Sizes["sample"]
	size.HealthyRecorded = 0
	for _, p := range stories.All(stories.HeldOut, size, true) {
		r := perfect(p.Meta)
		if change != nil {
			change(&r)
		}
		out = append(out, r)
	}
	return out
}

func barsByName(records []Record) map[string]Bar {
	out := map[string]Bar{}
	for _, b := range Bars(Scores(records)) {
		out[b.Name] = b
	}
	return out
}

func TestAPerfectDiagnosisHoldsEveryBar(t *testing.T) {
	for name, b := range barsByName(records(t, nil)) {
		if name == "recordings of real engines" {
			assert.True(t, b.Unmeasured)
			continue
		}
		if strings.Contains(name, "without a fault") {
			assert.True(t, b.Held, name) // A sample has too few hours for more.
			continue
		}
		assert.Equal(t, "held, the moonshot as well", b.Verdict(), "%s: %s", name, b.Seen)
	}
	bar := func(name string, must, wish float64, events int, hours float64) string {
		return rate(name, must, wish, poisson(events, hours), events, figure{}).Verdict()
	}
	assert.Equal(t, "held, the moonshot as well", bar("pages", 0, 0, 0, 10_000))
	assert.Equal(t, "held as far as measured", bar("warnings", 40, 4, 0, 900))
	assert.Equal(t, "missed", bar("warnings", 40, 4, 5, 1000))
	assert.Equal(t, "not measured", bar("warnings", 40, 4, 0, 0))
}

func TestASilentDiagnosisMissesEveryBarButThoseOfFalseAlarms(t *testing.T) {
	silent := records(t, func(r *Record) {
		for i := range r.Lines {
			r.Lines[i].Severity, r.Lines[i].Condition, r.Lines[i].Causes = 0, "healthy", nil
		}
	})
	for name, b := range barsByName(silent) {
		if strings.Contains(name, "without a fault") {
			assert.True(t, b.Held, name)
		} else if !b.Unmeasured {
			assert.Equal(t, "missed", b.Verdict(), name)
		}
	}
}

func TestFalseAlarmsMissTheirBars(t *testing.T) {
	noisy := records(t, func(r *Record) {
		if r.Kind == stories.Healthy {
			r.Alarms = append(r.Alarms, judge.Alarm{At: 3000, Severity: 3, Condition: "failing"})
		}
	})
	bars := barsByName(noisy)
	for name, b := range bars {
		if strings.Contains(name, "without a fault") {
			assert.Equal(t, "missed", b.Verdict(), name)
		}
	}
	assert.Equal(t, "held, the moonshot as well", bars["drift over 4 h to twice the bar of harm"].Verdict())
}

// The headline is about the models apart: what is wrong on untuned models must not be
// hidden by those that the diagnosis was tuned on, and not by causes that are read off.
func TestTheHeadlineHidesNothing(t *testing.T) {
	wrong := records(t, func(r *Record) {
		for i := range r.Lines {
			l := &r.Lines[i]
			if !r.Tuned && l.TrueCauses["slow_steps"] > 0 {
				l.Causes = []judge.Cause{{Name: "prefill_heavy", Role: "primary"}}
			}
		}
	})
	scores := Scores(wrong)
	assert.InDelta(t, 1, tally(scores, stories.Inferred, tuned).macro(ofRight).Value, 1e-9)
	got := tally(scores, stories.Inferred, untuned).macro(ofRight)
	assert.InDelta(t, 6.0/7, got.Value, 0.02, "one of seven causes is wrong; a few minutes have two")
	assert.InDelta(t, 1, tally(scores, stories.Inferred, untuned).macro(ofReported).Value, 1e-9)
	assert.Equal(t, "missed", barsByName(wrong)["top two, all causes, untuned models"].Verdict())
}

func origin() Origin {
	return Origin{Size: "sample", Command: "make accuracy", Commit: "abc", Print: "123", Machine: "two processors", Date: "2026-01-01", Planned: 9, Recorded: true}
}

func TestThePage(t *testing.T) {
	all := records(t, nil)
	page := Page(origin(), all, Beside{}, "")
	lines := strings.Split(page, "\n")
	require.Greater(t, len(lines), 100)
	assert.Contains(t, strings.Join(lines[:20], "\n"), "untuned models", "the headline is in the first screen")
	assert.NotContains(t, page, "NaN")
	assert.NotContains(t, page, "%!", "a format that does not fit")
	for _, name := range append(append([]string{}, stories.Inferred...), stories.ReadOff...) {
		assert.Contains(t, page, "| "+name+" |", "every cause is listed")
	}
	for _, b := range Bars(Scores(all)) {
		assert.Contains(t, page, b.Name)
	}
	assert.Contains(t, page, recordingsBegin+"\n"+recordingsEnd)
	assert.Equal(t, page, Page(origin(), all, Beside{}, ""), "equal results make equal pages")
	// A page of few stories has gaps, and no numbers that mean nothing.
	few := Page(origin(), all[:3], Beside{}, "")
	assert.NotContains(t, few, "NaN")
	assert.NotContains(t, few, "%!")
}

func TestThePartsOfOthersAreKept(t *testing.T) {
	kept := recordingsBegin + "\n| run | said |\n" + recordingsEnd
	page := Page(origin(), records(t, nil)[:5], Beside{}, "old\n"+kept+"\nold")
	assert.Equal(t, 1, strings.Count(page, kept))
	assert.Equal(t, page, Page(origin(), records(t, nil)[:5], Beside{}, page), "and kept again")
	gpus := gpusBegin + "\n| details | said |\n" + gpusEnd
	both := Page(origin(), records(t, nil)[:5], Beside{}, kept+"\n"+gpus)
	assert.Equal(t, 1, strings.Count(both, kept))
	assert.Equal(t, 1, strings.Count(both, gpus))
}

func TestTheCurveIsDrawn(t *testing.T) {
	svg, err := Chart(records(t, nil))
	require.NoError(t, err)
	assert.Contains(t, string(svg), "8B at 20/s: right cause")
	assert.Equal(t, 6, strings.Count(string(svg), "<polyline"))
}

func TestEffectsAreBinnedByTheirRatio(t *testing.T) {
	for effect, bin := range map[float64]float64{0: 0, 0.5: 0, 0.9: 1, 1: 1, 1.12: 1, 1.2: 1.3, 1.7: 2, 2.4: 2, 2.5: 3, 4.2: 5, 7: 5, 7.2: 10, 50: 10} {
		assert.InDelta(t, bin, effectBin(effect), 0, "effect %v", effect)
	}
}

func TestDelaysOfTheBar(t *testing.T) {
	late := records(t, func(r *Record) {
		// The right report comes ten minutes after the onset.
		for i := range r.Lines {
			l := &r.Lines[i]
			if len(r.Injections) > 0 && float64(l.Minute)*window < r.Injections[0].At+600 {
				l.Severity, l.Condition, l.Causes = 0, "healthy", nil
			}
		}
	})
	b := barsByName(late)["median delay of the right cause at 3 times the bar of harm"]
	assert.Equal(t, "missed", b.Verdict())
	d := delaysOf(Scores(late), func(s *Score) bool { return sized(s) && s.Kind == stories.Curve }, rightDelay)
	assert.InDelta(t, 11, quantile(d, 0.5), 1)
	assert.False(t, math.IsInf(quantile(d, 0.9), 1))
}

// Each bar is about its own stories.
func TestTheBarsAreAboutWhatTheySay(t *testing.T) {
	wrongWhere := func(where func(*Record) bool) map[string]Bar {
		return barsByName(records(t, func(r *Record) {
			for i := range r.Lines {
				if where(r) {
					r.Lines[i].Causes = []judge.Cause{{Name: "cache_thrash", Role: "primary"}}
					r.Lines[i].Condition = "degraded"
				}
			}
		}))
	}
	const inferred, rises, top = "causes that need inference, untuned models, mean over the causes", "the same, rising or recorded traffic", "top two, all causes, untuned models"
	for name, c := range map[string]struct {
		where  func(*Record) bool
		missed []string
	}{
		"tuned models":            {func(r *Record) bool { return r.Tuned }, nil},
		"recorded traffic":        {func(r *Record) bool { return r.Recorded && !r.Tuned }, []string{rises}},
		"rising, tuned":           {func(r *Record) bool { return r.Rising && r.Tuned }, nil},
		"all on untuned models":   {func(r *Record) bool { return !r.Tuned }, []string{inferred, rises, top}},
		"flat, untuned, no trace": {func(r *Record) bool { return !r.Tuned && !r.Rising && !r.Recorded }, []string{inferred, top}},
	} {
		bars := wrongWhere(c.where)
		for _, bar := range []string{inferred, rises, top} {
			b := bars[bar]
			assert.Equal(t, slices.Contains(c.missed, bar), !b.Held, "wrong on %s: %s is %s", name, bar, b.Seen)
		}
	}
}

// A legitimate growth lasts for hours: its minutes would outweigh those of all faults.
func TestALegitimateGrowthIsApart(t *testing.T) {
	all := records(t, func(r *Record) {
		if r.Kind != stories.Healthy || r.Recorded {
			return
		}
		for minute := range 300 { // Never reported.
			r.Lines = append(r.Lines, judge.Line{Minute: minute, Harmful: true, Effect: 3, TrueCauses: map[string]float64{"decode_load": 1}})
		}
	})
	scores := Scores(all)
	for _, of := range []func(*Score, *Verdict) bool{tuned, untuned} {
		assert.InDelta(t, 1, tally(scores, []string{"decode_load"}, of).macro(ofRight).Value, 1e-9)
	}
	page := Page(origin(), all, Beside{}, "")
	i := strings.Index(page, "| a legitimate growth that does harm |")
	require.Positive(t, i)
	assert.Contains(t, page[i:i+200], "| 100.0 % (", "its silence is said")
}

// What "always" says of a few stories proves little, and those without harm are said.
func TestABarOfFewStoriesIsUnproven(t *testing.T) {
	var some []Score
	for i := range 12 {
		delay := 1.0
		if i == 0 {
			delay = math.NaN()
		}
		some = append(some, Score{Record: &Record{}, Noticed: delay, Delay: delay})
	}
	all := func(*Score) bool { return true }
	b := always("x", some, all)
	assert.Equal(t, "held, the moonshot as well", b.Verdict())
	assert.Equal(t, "reported in 11, right in 11 of 11 stories with harm (12 played)", b.Seen)
	assert.Equal(t, "held as far as measured", always("x", some[:5], all).Verdict())
	assert.Equal(t, "not measured", always("x", some[:1], all).Verdict())
}

// The truth about the exposition is in minutes without harm and without an alarm, too.
func TestFaultsOfTheExpositionHaveAllTheirMinutes(t *testing.T) {
	m := meta()
	m.Kind, m.Variant, m.Injections = stories.Exposition, "frozen_gauges", nil
	m.Faults = []judge.Fault{{Kind: judge.Frozen, At: 600, Until: 1200}}
	p := &judge.Played{}
	for minute := range 60 {
		l := judge.Line{Minute: minute, Requests: 100, Condition: "healthy"}
		if minute >= 14 && minute < 20 {
			l.Causes = []judge.Cause{{Name: "frozen_gauges", Role: "notice"}}
		}
		p.Lines = append(p.Lines, l)
	}
	r := newRecord(m, p)
	said, of := exposed(&r)
	// Minutes that end after 660 s and before 1200 s.
	assert.Equal(t, []int{5, 8}, []int{said, of})
	m.Variant = "unreachable"
	r = newRecord(m, p)
	said, of = exposed(&r)
	assert.Equal(t, []int{0, 8}, []int{said, of}, "silence is a miss")
}

func TestTheReasonForFewHours(t *testing.T) {
	for _, c := range []struct {
		played, count, missed float64
		want                  string
	}{
		{600, 500, 50, ""},
		{120, 100, 0, "too few were played"},
		{126, 20, 0, "traffic alone does harm nearly always"},
		{630, 400, 30, "200 had harm by traffic alone or just before, 30 missed an objective"},
		{630, 400, 0, "230 had harm by traffic alone or just before"},
		{126, 20, 90, "too few were played"},
	} {
		assert.Equal(t, c.want, fewBecause(c.played, c.count, c.missed))
	}
}

// What the stories with many minutes weigh is said.
func TestTheHeadlineWithoutLongStories(t *testing.T) {
	wrong := Scores(records(t, func(r *Record) {
		for i := range r.Lines {
			if s := (Score{Record: r}); slow(&s) {
				r.Lines[i].Causes = []judge.Cause{{Name: "cache_thrash", Role: "primary"}}
			}
		}
	}))
	assert.Less(t, tally(wrong, stories.Inferred, untuned).macro(ofRight).Value, 0.9)
	assert.Equal(t, 2, strings.Count(withoutLong(wrong), "100.0 % ("))
}
