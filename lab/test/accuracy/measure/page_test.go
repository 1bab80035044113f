package main

import (
	"math"
	"os"
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
	size := stories.Sizes["published"]
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

// ofHours are the bars about hours without a fault.
func ofHours(name string) bool {
	return strings.HasPrefix(name, "warnings") || strings.HasPrefix(name, "pages") || strings.HasPrefix(name, "tickets")
}

func TestAPerfectDiagnosisHoldsEveryBar(t *testing.T) {
	all := records(t, nil)
	for i := range all {
		if all[i].Kind == stories.Healthy {
			all[i].Tickets = new(float64)
		}
	}
	for name, b := range barsByName(all) {
		if ofHours(name) || strings.HasPrefix(name, "drift") {
			assert.True(t, b.Held, name) // There are too few hours and drifts for more.
			continue
		}
		assert.Equal(t, "held, the moonshot as well", b.Verdict(), "%s: %s", name, b.Seen)
	}
	bar := func(must, wish float64, events int, of float64) string {
		return rate("x", must, wish, 15_000, &Alarms{sum: alarmRow{nothing: float64(events), hours: of}}, nothing, figure{}).Verdict()
	}
	assert.Equal(t, "held, the moonshot as well", bar(0, 0, 0, 15_000))
	assert.Equal(t, "held as far as measured", bar(0, 0, 0, 14_999))
	assert.Equal(t, "held as far as measured", bar(40, 4, 0, 900))
	assert.Equal(t, "held", bar(40, 4, 5, 10_000))
	assert.Equal(t, "missed", bar(40, 4, 5, 1000))
	assert.Equal(t, "not measured", bar(40, 4, 0, 0))
}

func TestASilentDiagnosisMissesEveryBarButThoseOfFalseAlarms(t *testing.T) {
	silent := records(t, func(r *Record) {
		for i := range r.Lines {
			r.Lines[i].Severity, r.Lines[i].Condition, r.Lines[i].Causes = 0, "healthy", nil
		}
	})
	for name, b := range barsByName(silent) {
		switch {
		case b.Unmeasured: // A diagnosis that names nothing has no precision.
			assert.True(t, strings.HasPrefix(name, "tickets") || strings.HasPrefix(name, "precision"), name)
		case ofHours(name):
			assert.True(t, b.Held, name)
		default:
			assert.Equal(t, "missed", b.Verdict(), name)
		}
	}
}

func TestFalseAlarmsMissTheirBars(t *testing.T) {
	noisy := records(t, func(r *Record) {
		if r.Kind == stories.Healthy {
			r.Alarms = append(r.Alarms, judge.Alarm{At: 3000, Severity: 3, Condition: "failing"})
			r.Tickets = new(float64)
			*r.Tickets = 1
		}
	})
	for name, b := range barsByName(noisy) {
		assert.Equal(t, ofHours(name), !b.Held, "%s: %s", name, b.Seen)
	}
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
	assert.InDelta(t, 1, tally(scores, stories.Inferred, untuned).macro(ofNamed).Value, 1e-9)
}

func origin() Origin {
	return Origin{Size: "published", Commit: "abc", Print: "123", Machine: "two processors", Date: "2026-01-01", Planned: 9, Recorded: true}
}

func TestThePage(t *testing.T) {
	all := records(t, nil)
	resultsOf := func(records []Record) string {
		return Results(origin(), records, sections(origin(), records, Beside{}), "")
	}
	page, results := Page(origin(), all, Beside{}), resultsOf(all)
	assert.Contains(t, strings.Join(strings.Split(page, "\n")[:9], "\n"), "100 servers without a fault (untuned models), in a week", "what a fleet gets is on the first screen")
	assert.Less(t, len(strings.Split(page, "\n")), 80, "it is two screens")
	for _, name := range everyCause {
		assert.Contains(t, results, "| "+name+" |", "every cause is listed")
	}
	for _, b := range Bars(Scores(all)) {
		assert.Contains(t, page, b.Name)
	}
	assert.Equal(t, page, Page(origin(), all, Beside{}), "equal results make equal pages")
	assert.Equal(t, "table\trow\tcolumn\tvalue\nx\ta\tc\t2\n", Data([]section{{title: "x", table: "| r | b | c |\n|---|---|---|\n| a |  | **2** |\n"}}))
	// A page of few stories has gaps, and no numbers that mean nothing.
	for _, text := range []string{page, results, Page(origin(), all[:3], Beside{}), resultsOf(all[:3])} {
		assert.NotContains(t, text, "NaN")
		assert.NotContains(t, text, "%!", "a format that does not fit")
	}
}

// What is committed has the form that a run writes.
func TestTheWrittenPagesHaveTheForm(t *testing.T) {
	all := append(sections(origin(), nil, Beside{}), rightOf(nil))
	for file, have := range map[string]func(*section) bool{
		"../results.md":                    func(s *section) bool { return s.columns != nil && s.title != rightTitle },
		"../../../../docs/why/accuracy.md": func(s *section) bool { return s.title == rightTitle },
	} {
		page, err := os.ReadFile(file)
		require.NoError(t, err)
		for i := range all {
			var short table
			all[i].short(&short)
			if have(&all[i]) {
				head, _, _ := strings.Cut(short.String(), "\n")
				assert.Contains(t, string(page), head+"\n", all[i].title)
			}
		}
	}
}

func TestThePartsOfOthersAreKept(t *testing.T) {
	const recordings, gpus = "<!-- recordings: begin -->\n| run | said |\n<!-- recordings: end -->", "<!-- gpus: begin -->\n| details | said |\n<!-- gpus: end -->"
	few := records(t, nil)[:5]
	none := []section{}
	page := Results(origin(), few, none, "old\n"+recordings+"\nold\n"+gpus)
	assert.Equal(t, 1, strings.Count(page, recordings))
	assert.Equal(t, 1, strings.Count(page, gpus))
	assert.Equal(t, page, Results(origin(), few, none, page), "and kept again")
	assert.Contains(t, Results(origin(), few, none, ""), "<!-- gpus: begin -->\n<!-- gpus: end -->")
}

// The verdicts of runs are bold where something is wrong.
func TestRecordingsThatAreRightAreCounted(t *testing.T) {
	const table = "| run | what happened | verdict |\n|---|---|---|\n" +
		"| a | **steady** | right |\n| b | full | **late**: right after 300 s |\n| c | full | 12 to 90 s: right |\n\n| other | a | right |\n"
	assert.Equal(t, [2]int{2, 3}, recordingsRight("x\n<!-- recordings: begin -->\n"+table+"<!-- recordings: end -->"))
	assert.Equal(t, [2]int{}, recordingsRight("nothing"))
	bar := elsewhere(Beside{Recordings: [2]int{18, 20}})[0]
	assert.Equal(t, "held", bar.Verdict())
	assert.Equal(t, "missed", elsewhere(Beside{Recordings: [2]int{17, 20}})[0].Verdict())
	assert.Equal(t, "not measured", elsewhere(Beside{})[0].Verdict())
}

// Others are compared on the stories that they have played.
func TestRivalsAreComparedOnTheSameStories(t *testing.T) {
	ours := records(t, nil)
	theirs := records(t, func(r *Record) {
		for i := range r.Lines {
			r.Lines[i].Causes = []judge.Cause{{Name: "engine_slower", Role: "primary"}}
		}
		if r.Kind == stories.Healthy {
			r.Alarms = append(r.Alarms, judge.Alarm{At: 3000, Severity: 3})
		}
	})
	page := Page(origin(), ours, Beside{Rivals: []Rival{{"NSigma", theirs}, {"few", theirs[:100]}}})
	assert.Regexp(t, `\| this diagnosis \| 100.0 % \(.*\| 0 \(0 to \d+\) \| 0 \(0 to`, page)
	assert.Regexp(t, `\| NSigma \| 0.0 % \(0.0 to .*\) \| [1-9]\d+ \(\d+ to \d+\) \| 0 \(0 to \d+\) \| [1-9]`, page)
	assert.Regexp(t, `\| few \| 0.0 % `, page)
	assert.Regexp(t, `\| this diagnosis, on the same \| 100.0 % `, page)
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
	b := barsByName(late)["median delay of the right cause at effect 3"]
	assert.Equal(t, "missed", b.Verdict())
	d := delaysOf(Scores(late), func(s *Score) bool { return sized(s) && s.Kind == stories.Curve }, rightDelay)
	assert.InDelta(t, 11, quantile(d, 0.5), 1)
	assert.False(t, math.IsInf(quantile(d, 0.9), 1))
}

// The bars are about untuned models on generated traffic; those of the tuning set, which has none, about all it has.
func TestTheBarsAreAboutWhatTheySay(t *testing.T) {
	wrong := func(where func(*Record) bool) []Record {
		return records(t, func(r *Record) {
			for i := range r.Lines {
				if where(r) {
					r.Lines[i].Causes, r.Lines[i].Condition = []judge.Cause{{Name: "cache_thrash", Role: "primary"}}, "degraded"
				}
			}
			if r.Kind == stories.Healthy && where(r) {
				r.Alarms = append(r.Alarms, judge.Alarm{At: 3000, Severity: 2})
			}
		})
	}
	const right, precision, warned = "inferred causes right", "precision of named causes", "warnings with nothing behind, to 80 % load, without objectives"
	held := func(records []Record) []bool {
		bars := barsByName(records)
		return []bool{bars[right].Held, bars[precision].Held, bars[warned].Held}
	}
	onTuned := wrong(func(r *Record) bool { return r.Tuned })
	assert.Equal(t, []bool{true, true, true}, held(onTuned))
	assert.Equal(t, []bool{true, true, true}, held(wrong(func(r *Record) bool { return r.Recorded && r.Kind != stories.Healthy })))
	assert.Equal(t, []bool{false, false, false}, held(wrong(func(r *Record) bool { return !r.Tuned })))
	only := slices.DeleteFunc(onTuned, func(r Record) bool { return !r.Tuned })
	assert.Equal(t, []bool{false, false, false}, held(only))
}

// Of the drifts with harm all must be reported, and 20 of 27 with the right cause; fewer of them prove little.
func TestTheBarOfDrifts(t *testing.T) {
	of := func(n, reported, right int) string {
		var some []Score
		for i := range n {
			s := Score{Record: &Record{Meta: stories.Meta{Kind: stories.Drift}}, Noticed: 1, Delay: 1}
			if i >= right {
				s.Delay = math.Inf(1)
			}
			if i >= reported {
				s.Noticed = math.Inf(1)
			}
			some = append(some, s)
		}
		some = append(some, Score{Record: &Record{Meta: stories.Meta{Kind: stories.Drift}}, Noticed: math.NaN(), Delay: math.NaN()})
		return drifted(some).Verdict()
	}
	assert.Equal(t, "held, the moonshot as well", of(27, 27, 27))
	assert.Equal(t, "held", of(27, 27, 20))
	assert.Equal(t, "missed", of(27, 27, 19))
	assert.Equal(t, "missed", of(27, 26, 20))
	assert.Equal(t, "held as far as measured", of(13, 13, 10))
	assert.Equal(t, "not measured", of(0, 0, 0))
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
	data := Data(sections(origin(), all, Beside{}))
	assert.Contains(t, data, "\ta legitimate growth that does harm\tminutes silent\t100.0 % (", "its silence is said")
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
