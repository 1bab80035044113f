package realruns

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
)

// reports has a report each ten seconds: severity 2 with a cause, or 0 where it is empty.
func reports(texts ...string) []Reported {
	var out []Reported
	for i, text := range texts {
		r := Reported{At: float64(10 * i), Condition: "healthy"}
		switch text {
		case "":
		case "unreachable":
			r.Condition, r.Severity = "unreachable", 3
		case "kv":
			r.Condition, r.Severity, r.Cause, r.Detail = "degraded", 2, "demand_exceeds_capacity", "kv"
		case "seqs":
			r.Condition, r.Severity, r.Cause, r.Detail = "degraded", 2, "demand_exceeds_capacity", "seqs"
		default:
			r.Condition, r.Severity, r.Cause = "degraded", 2, text
		}
		out = append(out, r)
	}
	return out
}

func repeat(text string, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = text
	}
	return out
}

func join(parts ...[]string) []string {
	var out []string
	for _, part := range parts {
		out = append(out, part...)
	}
	return out
}

func TestTheJudgementOfAnEpisode(t *testing.T) {
	for name, test := range map[string]struct {
		right   []string
		reports []string
		want    Judged
	}{
		"right": {[]string{"slow_steps"}, join(repeat("", 15), repeat("slow_steps", 25)), Judged{Right, 100, 300, 50, 50, -1}},
		"late":  {[]string{"slow_steps"}, join(repeat("", 25), repeat("slow_steps", 15)), Judged{Late, 100, 300, 150, 150, -1}},
		"late after another cause": {
			[]string{"slow_steps"},
			join(repeat("", 20), repeat("kv", 3), repeat("slow_steps", 17)),
			Judged{Late, 100, 300, 100, 130, -1},
		},
		"wrong detail":  {[]string{"demand_exceeds_capacity/kv"}, repeat("seqs", 40), Judged{WrongDetail, 100, 300, 0, -1, -1}},
		"right detail":  {[]string{"demand_exceeds_capacity/kv"}, repeat("kv", 40), Judged{Right, 100, 300, 0, 0, -1}},
		"any detail":    {[]string{"demand_exceeds_capacity"}, repeat("kv", 40), Judged{Right, 100, 300, 0, 0, -1}},
		"wrong":         {[]string{"slow_steps"}, repeat("seqs", 40), Judged{Wrong, 100, 300, 0, -1, -1}},
		"mostly wrong":  {[]string{"slow_steps"}, join(repeat("seqs", 25), repeat("slow_steps", 15)), Judged{Wrong, 100, 300, 0, 150, -1}},
		"silent":        {[]string{"slow_steps"}, repeat("", 40), Judged{Silent, 100, 300, -1, -1, -1}},
		"before it":     {[]string{"slow_steps"}, join(repeat("slow_steps", 10), repeat("", 30)), Judged{Silent, 100, 300, -1, -1, -1}},
		"a condition":   {[]string{"unreachable"}, join(repeat("", 12), repeat("unreachable", 19), repeat("", 9)), Judged{Right, 100, 300, 20, 20, 10}},
		"one of two":    {[]string{"kv_pressure", "demand_exceeds_capacity/kv"}, repeat("kv", 40), Judged{Right, 100, 300, 0, 0, -1}},
		"kept too long": {[]string{"slow_steps"}, join(repeat("slow_steps", 38), repeat("", 2)), Judged{Right, 100, 300, 0, 0, 80}},
	} {
		truth := Truth{Episodes: []Episode{{From: 100, Until: 300, Right: test.right}}}
		assert.Equal(t, []Judged{test.want}, truth.Judge(reports(test.reports...), 390), name)
	}
}

// The first alarm about a short episode can come after it.
func TestAShortEpisodeHasPatience(t *testing.T) {
	truth := Truth{Episodes: []Episode{{From: 100, Until: 130, Right: []string{"slow_steps"}}}}
	got := truth.Judge(reports(join(repeat("", 20), repeat("slow_steps", 5), repeat("", 5))...), 290)
	assert.Equal(t, []Judged{{Right, 100, 130, 100, 100, 120}}, got)
	got = truth.Judge(reports(join(repeat("", 23), repeat("slow_steps", 5))...), 290)
	assert.Equal(t, Silent, got[0].Outcome)
}

func TestEpisodesFollowEachOther(t *testing.T) {
	truth := Truth{Episodes: []Episode{
		{From: 0, Until: 200, Right: []string{"demand_exceeds_capacity/seqs"}},
		{From: 200, Until: math.MaxFloat64, Right: []string{"demand_exceeds_capacity/kv"}},
	}}
	got := truth.Judge(reports(repeat("seqs", 40)...), 390)
	assert.Equal(t, []Outcome{Right, WrongDetail}, []Outcome{got[0].Outcome, got[1].Outcome})
	assert.InDelta(t, 390, got[1].Until, 0)
}

func TestAlarmsWithoutHarm(t *testing.T) {
	none := Truth{}
	assert.InDelta(t, 0.5, none.FalseMinutes(reports("", "kv", "kv", "", "kv"), 10), 1e-9)
	// Two windows after the end are no false alarm.
	some := Truth{Episodes: []Episode{{From: 100, Until: 200}}}
	assert.InDelta(t, 1.5, some.FalseMinutes(reports(join(repeat("", 10), repeat("kv", 32))...), 10), 1e-9)
	assert.InDelta(t, 0, some.FalseMinutes(reports(join(repeat("", 10), repeat("kv", 23))...), 10), 1e-9)
}

func TestTheVerdictOfARecording(t *testing.T) {
	for want, r := range map[string]*Result{
		"": {}, "right": {Known: true},
		"**false alarm** for 1.5 minutes":               {Known: true, FalseMinutes: 1.5},
		"**silent**":                                    {Known: true, Judged: []Judged{{Silent, 0, 10, -1, -1, 5}}},
		"right after 50 s, kept for 60 s after the end": {Known: true, Judged: []Judged{{Right, 0, 10, 50, 50, 60}}},
		"0 to 10 s: **silent**; 20 to 90 s: **late**: right after 55 s; **false all-clear** at 40 s": {
			Known: true, Judged: []Judged{{Silent, 0, 10, -1, -1, -1}, {Late, 20, 90, 5, 55, -1}}, AllClears: []Change{{At: 15}, {At: 40}},
		},
		"**wrong detail**, alarm after 3 s": {Known: true, Judged: []Judged{{WrongDetail, 0, 10, 3, -1, -1}}},
	} {
		assert.Equal(t, want, r.verdict())
	}
	assert.Equal(t, "late, false all-clear, false alarm", (&Result{
		Known: true, Judged: []Judged{{Late, 20, 90, 5, 55, -1}}, AllClears: []Change{{At: 40}}, FalseMinutes: 1,
	}).outcomes())
	assert.Equal(t, "right", (&Result{Known: true}).outcomes())
}
