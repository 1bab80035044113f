package realruns

import (
	"fmt"
	"math"
	"strings"
)

// Episode is a stretch of a recording in which users were harmed.
type Episode struct {
	// From and Until are in seconds since the beginning of the recording.
	From, Until float64
	// Right are the reports that are right: a condition, a cause, or a cause and its
	// detail with a slash between them.
	Right []string
}

// Truth is what is known to have happened in a recording.
type Truth struct {
	// What happened, where no index says it.
	What string
	// Why is how one can see it in the recording.
	Why string
	// Episodes are empty for a recording without harm.
	Episodes []Episode
}

const toTheEnd = math.MaxFloat64

// truths are of the recordings in the folder of shared data. Each was read off the recorded
// rows and the requests of the clients, not off what the processor reports.
var truths = map[string]Truth{
	"llama70b-tp1-16":  {Why: "No request ever waits."},
	"llama70b-tp1-128": {Why: "No request waits after the first two seconds. Tokens slow down as the KV cache fills from 37 to 61 %, as they have to."},
	"llama70b-tp4-16":  {Why: "No request ever waits."},
	"llama70b-tp8-64":  {Why: "No request ever waits."},
	"deepseek-tp4-1":   {Why: "One user, so no request ever waits."},
	"llama70b-tp1-64": {
		Why: "64 requests run, the KV cache is at 24 to 34 % and prompts stay as they are. The time between tokens is 31 ms in the second minute, " +
			"41 ms from 1140 s on and 56 ms at the end; generated tokens fall from 2,080 to 1,100 a second.",
		Episodes: []Episode{{From: 1140, Until: toTheEnd, Right: []string{"slow_steps"}}},
	},
	"llama70b-tp1-256": {
		Why: "From 263 s on requests wait nearly always, with the KV cache at 94 to 100 %; the first token takes 0.24 s before and up to 15 s after. " +
			"The label says it: the cache is too small for 256 sequences.",
		Episodes: []Episode{{From: 263, Until: toTheEnd, Right: []string{"kv_pressure", "demand_exceeds_capacity/kv"}}},
	},
	"llama70b-tp1-512": {
		Why:      "From 77 s on requests wait, with the KV cache at 95 to 100 % and preemptions from the same second on.",
		Episodes: []Episode{{From: 77, Until: toTheEnd, Right: []string{"kv_pressure", "demand_exceeds_capacity/kv"}}},
	},
	"llama70b-tp2-restart": {
		Why: "From 77 s on 32 requests wait for one of 32 sequences, with the KV cache at 4 to 8 %. The last answer comes at 809 s, " +
			"the next at 986 s with all counters at 0; from then on no request waits.",
		Episodes: []Episode{
			{From: 77, Until: 784, Right: []string{"demand_exceeds_capacity/seqs"}},
			{From: 809, Until: 986, Right: []string{"unreachable"}},
		},
	},
	"llama70b-tp4-shared-gpu": {
		Why: "64 requests run with the KV cache at 1 to 3 % and get a token every 3 s each, 18 to 22 a second together, " +
			"where the same model with one GPU instead of four gives 64 requests 2,000.",
		Episodes: []Episode{{From: 0, Until: 3628, Right: []string{"slow_steps"}}},
	},
	"llama70b-tp4-shared-gpu-small-cache": {
		Why: "The other server has taken memory and time: the cache holds 214,576 tokens instead of 3.9 million and is full from 122 s on, " +
			"and 65 requests get a token every 0.2 s, where the same model with one GPU takes 0.03 s.",
		Episodes: []Episode{{From: 0, Until: toTheEnd, Right: []string{"slow_steps", "kv_pressure"}}},
	},
	"deepseek-tp4-8": {
		Why:      "Eight long prompts without anything cached come at once: requests wait until 61 s, with the KV cache below 35 %. After that none does.",
		Episodes: []Episode{{From: 11, Until: 61, Right: []string{"demand_exceeds_capacity/tokens", "prefill_heavy"}}},
	},
	"deepseek-tp4-16": {
		Why:      "Sixteen long prompts without anything cached come at once: requests wait until 107 s, with the KV cache below 66 %. After that one or two wait for a second, once.",
		Episodes: []Episode{{From: 0, Until: 107, Right: []string{"demand_exceeds_capacity/tokens", "prefill_heavy"}}},
	},
	"deepseek-tp4-32": {
		Why:      "Requests wait from 9 s on. The prompts without anything cached are the limit at first; from 151 s on the KV cache is at 90 % or more nine tenths of the time.",
		Episodes: []Episode{cold(151), {From: 151, Until: toTheEnd, Right: full}},
	},
	"deepseek-tp4-64": {
		Why:      "Requests wait from the beginning. From 143 s on the KV cache is the limit: at 90 % or more nine tenths of the time.",
		Episodes: []Episode{cold(143), {From: 143, Until: toTheEnd, Right: full}},
	},
	"deepseek-tp4-128": {
		Why:      "Requests wait from 10 s on, up to 112. From 141 s on the KV cache is the limit: at 90 % or more nine tenths of the time, with 4 preemptions.",
		Episodes: []Episode{cold(141), {From: 141, Until: toTheEnd, Right: full}},
	},
	"deepseek-tp8-128": {
		Why: "Requests wait from 12 s on. From 154 s on the KV cache is the limit. From 413 s on the endpoint answers for seconds only, with gaps of 62, 78 and 107 s.",
		Episodes: []Episode{
			cold(154),
			{From: 154, Until: 413, Right: full},
			{From: 413, Until: 670, Right: []string{"unreachable"}},
			{From: 670, Until: toTheEnd, Right: full},
		},
	},
	"rtx-4090-llama-3.1-8b": {
		What:     "300 requests in 29 s",
		Why:      "Requests wait from 3 to 166 s, up to 234, with the KV cache at 93 to 100 %; the last ones get their first token after 138 s.",
		Episodes: []Episode{{From: 3, Until: 166, Right: full}},
	},
	"rtx-pro-6000-llama-3.1-8b": {
		What:     "300 requests in 29 s",
		Why:      "Up to 104 requests wait for one of 128 sequences, from 13 to 49 s; the last ones get their first token after 20 s.",
		Episodes: []Episode{{From: 13, Until: 49, Right: []string{"demand_exceeds_capacity/seqs"}}},
	},
	"rtx-pro-6000-qwen3-30b-a3b": {
		What:     "300 requests in 29 s, two engines",
		Why:      "Up to 37 requests wait for one of 256 sequences, from 26 to 39 s; the last ones get their first token after 10 s.",
		Episodes: []Episode{{From: 26, Until: 39, Right: []string{"demand_exceeds_capacity/seqs"}}},
	},
}

// full are the right reports while a full KV cache keeps requests waiting.
var full = []string{"demand_exceeds_capacity/kv", "kv_pressure"}

// cold is the beginning of a run with long prompts of which nothing is cached.
func cold(until float64) Episode {
	return Episode{From: 12, Until: until, Right: []string{"demand_exceeds_capacity/tokens", "prefill_heavy"}}
}

// Outcome is the judgement of an episode, or of a recording without one.
type Outcome string

// The outcomes.
const (
	// Right means: the right report, within two windows, for at least half of the time in
	// which there was one.
	Right Outcome = "right"
	// Late means: the right report, but more than two windows after the harm began.
	Late Outcome = "late"
	// WrongDetail means: the right cause, with another detail.
	WrongDetail Outcome = "wrong detail"
	// Wrong means: an alarm with another cause.
	Wrong Outcome = "wrong"
	// Silent means: no alarm.
	Silent Outcome = "silent"
	// FalseAlarm means: an alarm without harm.
	FalseAlarm Outcome = "false alarm"
)

// Judged is the judgement of an episode.
type Judged struct {
	Outcome Outcome `json:"outcome"`
	// From and Until are those of the episode, as far as the recording goes.
	From  float64 `json:"from_s"`
	Until float64 `json:"until_s"`
	// After is how long after the beginning the first alarm came, and the first right
	// report; -1 for none.
	After      float64 `json:"alarm_after_s"`
	RightAfter float64 `json:"right_after_s"`
	// Kept is how long alarms went on after the end; -1 where the recording or the time
	// until the next episode is too short to know.
	Kept float64 `json:"kept_s"`
}

// patience is two windows of the processor's default: the time in which a report counts as
// in time, and in which an alarm may outlast its reason.
const patience = 120

// matches reports how well a report fits: the whole of it, and its cause alone.
func (r *Reported) matches(right []string) (whole, cause bool) {
	for _, want := range right {
		name, detail, _ := strings.Cut(want, "/")
		if r.Condition == name {
			return true, true
		}
		if r.Cause != "" && r.Cause == name {
			cause = true
			whole = whole || detail == "" || r.Detail == detail
		}
	}
	return whole, cause
}

// Judge judges what was reported by what is true. end is the end of the recording.
func (t *Truth) Judge(reports []Reported, end float64) []Judged {
	var out []Judged
	for i, e := range t.Episodes {
		next := end
		if i+1 < len(t.Episodes) {
			next = t.Episodes[i+1].From
		}
		out = append(out, e.judge(reports, end, next))
	}
	return out
}

func (e *Episode) judge(reports []Reported, end, next float64) Judged {
	out := Judged{From: e.From, Until: min(e.Until, end), After: -1, RightAfter: -1, Kept: -1}
	// A report about the last window comes after it.
	last := min(max(out.Until, e.From+patience), next)
	alarms, whole, cause := 0, 0, 0
	for i := range reports {
		r := &reports[i]
		if r.At < e.From || r.At > last || !r.Alarms() {
			continue
		}
		alarms++
		if out.After < 0 {
			out.After = r.At - e.From
		}
		fits, causeFits := r.matches(e.Right)
		if fits {
			whole++
			if out.RightAfter < 0 {
				out.RightAfter = r.At - e.From
			}
		}
		if causeFits {
			cause++
		}
	}
	switch {
	case alarms == 0:
		out.Outcome = Silent
	case 2*whole >= alarms && out.RightAfter > patience:
		out.Outcome = Late
	case 2*whole >= alarms:
		out.Outcome = Right
	case 2*cause >= alarms:
		out.Outcome = WrongDetail
	default:
		out.Outcome = Wrong
	}
	for i := range reports {
		if r := &reports[i]; out.After >= 0 && r.At > max(out.Until, e.From+out.After) && r.At <= next && !r.Alarms() {
			out.Kept = r.At - out.Until
			break
		}
	}
	return out
}

// FalseMinutes is how long alarms were reported without harm, and not within two windows of
// it, in minutes.
func (t *Truth) FalseMinutes(reports []Reported, interval float64) float64 {
	n := 0
	for i := range reports {
		harm := false
		for _, e := range t.Episodes {
			harm = harm || reports[i].At >= e.From && reports[i].At <= e.Until+patience
		}
		if !harm && reports[i].Alarms() {
			n++
		}
	}
	return float64(n) * interval / 60
}

// text is the judgement as the table has it.
func (j *Judged) text() string {
	switch {
	case j.Outcome == Silent:
		return "**silent**"
	case j.Outcome == Right:
		return fmt.Sprintf("right after %.0f s", j.RightAfter)
	case j.Outcome == Late:
		return fmt.Sprintf("**late**: right after %.0f s", j.RightAfter)
	}
	return fmt.Sprintf("**%s**, alarm after %.0f s", j.Outcome, j.After)
}
