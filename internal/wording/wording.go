// Package wording composes what people read about a diagnosis, from the catalogue: the
// sentence, the next steps, the runbook and the evidence. The log of the processor, the
// records of the connector and the demo (make run) all take their words from here.
package wording

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
)

// Diagnosis is what is reported of an engine or a pool, in names of the catalogue. Names
// that the catalogue lacks, as those of a newer processor, stand in the sentence as they
// are.
type Diagnosis struct {
	Condition string
	// Cause is the primary cause, Detail its detail; both empty without one.
	Cause, Detail string
	// Also are further causes, the largest share of the harm first.
	Also    []Share
	Notices []string
	// Reason is a sentence that says more precisely than the condition what is wrong;
	// empty for none. It replaces all others.
	Reason string
	// Size is a sentence that says how large the harm is; empty for none.
	Size string
	// More is a sentence that says more precisely than the detail of the cause what it is;
	// empty for none.
	More string
	// Pool is the name of a pool; empty for an engine.
	Pool string
}

// Share is how much of the harm a cause explains, from 0 to 1.
type Share struct {
	Cause string
	Share float64
}

// Words are what people read about a diagnosis.
type Words struct {
	// Sentence is one printable line.
	Sentence string
	// Next are the steps to take, and Runbook the address of the page about it. Both are
	// empty where the catalogue has none.
	Next    []string
	Runbook string
	// Detail is the detail of the primary cause, where the catalogue has it. NotSeparable
	// is what looks the same as the primary cause.
	Detail, NotSeparable string
}

// ofPool says what the conditions of a pool are.
var ofPool = map[string]string{
	"draining":    "Kubernetes is deleting its servers.",
	"unreachable": "too many of its servers cannot be scraped to know whether its users are served.",
	"starting":    "its servers have just started and are not judged yet.",
	"asleep":      "its servers sleep and serve nothing until they are woken.",
	"stalled":     "many of its servers have stalled, so a large part of its users is not served.",
	"failing":     "many of its servers fail, so a large part of its users gets errors.",
	"critical":    "a large part of its users waits many times longer than usual.",
	"degraded":    "some of its users wait longer than they should, or get errors.",
	"unknown":     "most of its servers cannot be judged.",
	"idle":        "its servers have no requests.",
	"healthy":     "its users are served as they should be.",
}

// Of composes the words of a diagnosis. The next steps and the runbook are those of the
// primary cause, else of the condition, else of a notice where the condition asks for
// nothing. Steps that name a metric which is not enabled are left out.
func Of(d *Diagnosis, enabled func(metric string) bool) Words {
	var w Words
	var sentences []string
	harmless := false
	has := func(metric string) bool { return enabled(metric) && (d.Pool == "" || metric != "vllm.diagnosis.cause") }
	advise := func(next []catalog.Step, name string) {
		w.Next, w.Runbook = catalog.StepsWith(next, has), catalog.RunbookURL(name)
	}
	if condition, known := catalog.ConditionByName(d.Condition); known {
		if d.Pool != "" {
			sentences = append(sentences, "Pool "+d.Pool+": "+ofPool[condition.Name])
		} else {
			sentences = append(sentences, condition.Sentence)
		}
		if d.Size != "" {
			sentences = append(sentences, d.Size)
		}
		advise(condition.Next, condition.Name)
		harmless = condition.Severity == 0
	} else {
		sentences = append(sentences, "The condition is "+d.Condition+".")
	}
	ofServers := d.Pool != "" && !harmless
	if cause, known := catalog.CauseByName(d.Cause); known {
		if ofServers = ofServers && cause.Level != catalog.LevelPool; ofServers {
			sentences = append(sentences, "On the servers that do most of the harm:")
		}
		sentences = append(sentences, cause.Sentence)
		for _, detail := range cause.Details {
			if detail.Name == d.Detail {
				sentences = append(sentences, detail.Sentence)
				w.Detail = detail.Name
				if d.More != "" {
					sentences = append(sentences, d.More)
				}
			}
		}
		w.NotSeparable = cause.NotSeparable
		advise(cause.Next, cause.Name)
	} else if d.Cause != "" {
		sentences = append(sentences, "The primary cause is "+d.Cause+".")
	}
	if len(d.Also) > 0 {
		sentences = append(sentences, also(d))
	}
	for _, name := range d.Notices {
		notice, known := catalog.CauseByName(name)
		if !known {
			sentences = append(sentences, "There is a notice: "+name+".")
			continue
		}
		sentences = append(sentences, notice.Sentence)
		if harmless && d.Cause == "" {
			harmless = false // the first notice only
			advise(notice.Next, notice.Name)
		}
	}
	if ofServers && enabled("vllm.diagnosis.condition") {
		w.Next = append([]string{"See which of its servers it is: read `vllm.diagnosis.condition` of each."}, w.Next...)
	}
	w.Sentence = strings.Join(sentences, " ")
	if d.Reason != "" {
		w.Sentence = d.Reason
	}
	w.Sentence = Printable(w.Sentence)
	return w
}

// Cut makes a text of another machine fit for one line: at most so many bytes, and printable. A logger escapes
// ASCII's control characters only: the others, and those that turn the direction of what follows, would reach the
// terminal of who reads the log.
func Cut(text string, most int) string {
	if len(text) <= most {
		return Printable(text)
	}
	return Printable(strings.ToValidUTF8(text[:most], "")) + fmt.Sprintf("... (%d bytes)", len(text))
}

// Printable replaces what cannot be printed on one line by question marks: a log writes a
// sentence as it is, and the name of a GPU or of an unknown cause is what another machine says.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) || r == unicode.ReplacementChar {
			return '?'
		}
		return r
	}, text)
}

// also names further causes with their shares, as in "Also: prefill_heavy 30 %, kv_pressure 15 %".
func also(d *Diagnosis) string {
	var parts []string
	for _, s := range d.Also {
		parts = append(parts, fmt.Sprintf("%s %.0f %%", s.Cause, 100*s.Share))
	}
	begin := "Also: "
	if d.Cause == "" {
		begin = "In part: "
	}
	return begin + strings.Join(parts, ", ") + "."
}

// EnabledByDefault reports whether a metric is on without a configuration.
func EnabledByDefault(metric string) bool {
	m, known := catalog.ByName(metric)
	return known && m.In(catalog.Standard)
}

// Signal is a number that a diagnosis was judged by. Usual is NaN where it is not known.
type Signal struct {
	Name         string
	Value, Usual float64
}

// String is the signal with its unit and what is usual, as in "running 30 requests (usual 15)".
func (s Signal) String() string {
	line := s.Name + " " + short(s.Value) + units[s.Name]
	if !math.IsNaN(s.Usual) && !math.IsInf(s.Usual, 0) {
		line += " (usual " + short(s.Usual) + ")"
	}
	return line
}

// Evidence returns what a diagnosis was judged by, the deciding signals first: those that the catalogue names for
// the cause, for the notices and for the condition, and then some more. values returns the value of a signal and
// what is usual, NaN where one is not known; a signal without a value is left out.
func Evidence(d *Diagnosis, values func(signal string) (value, usual float64), more ...string) (evidence []Signal) {
	var names []string
	for _, name := range append([]string{d.Cause}, d.Notices...) {
		if cause, known := catalog.CauseByName(name); known {
			names = append(names, cause.Signals...)
		}
	}
	if condition, known := catalog.ConditionByName(d.Condition); known {
		names = append(names, condition.Signals...)
	}
	names = append(names, more...)
	for i, name := range names {
		value, usual := values(name)
		if !slices.Contains(names[:i], name) && !math.IsNaN(value) && !math.IsInf(value, 0) {
			evidence = append(evidence, Signal{name, value, max(usual, 0)})
		}
	}
	return evidence
}

// Lines are signals as people read them.
func Lines(signals []Signal) (lines []string) {
	for _, s := range signals {
		lines = append(lines, s.String())
	}
	return lines
}

// units are what stands after the value of a signal: " requests/s". Shares and factors
// have none.
var units = func() map[string]string {
	all := map[string]string{}
	for _, s := range catalog.Signals() {
		if s.Unit == "1" {
			continue
		}
		unit := strings.ReplaceAll(strings.ReplaceAll(s.Unit, "{", ""), "}", "s")
		if per, found := strings.CutPrefix(unit, "1/"); found {
			unit = "per " + strings.TrimSuffix(per, "s")
		}
		all[s.Name] = " " + unit
	}
	return all
}()

// short writes a number with three digits.
func short(x float64) string {
	if math.Abs(x) >= 1000 {
		return fmt.Sprintf("%.0f", x)
	}
	return strconv.FormatFloat(x, 'g', 3, 64)
}

// Felt is what users wait for, in seconds. What is not known is NaN.
type Felt struct {
	// FirstToken is the mean wait for a first token, of those that got one and of those who still wait.
	FirstToken, UsualFirstToken float64
	// Waiting is how many still wait.
	Waiting float64
	// Token is the wait for a further token.
	Token, UsualToken float64
}

// Sentence says how long users wait; empty where it is not known.
func (f *Felt) Sentence() string {
	if math.IsNaN(f.FirstToken) {
		return ""
	}
	usual := func(seconds float64) string {
		if math.IsNaN(seconds) {
			return ""
		}
		return fmt.Sprintf(" (usual %.3g s)", seconds)
	}
	waited, still := "waited about %.3g s", ""
	if f.Waiting >= 1 {
		waited, still = "have waited about %.3g s so far", fmt.Sprintf("; %.0f of them still wait", f.Waiting)
	}
	out := fmt.Sprintf("In the last 30 s requests "+waited+" for their first token%s%s", f.FirstToken, usual(f.UsualFirstToken), still)
	if f.Token > 0 {
		out += fmt.Sprintf("; a further token took %.3g s%s", f.Token, usual(f.UsualToken))
	}
	return out + "."
}
