package incident

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/backtest/replay"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/rulestore"
)

// Story is what a backtest found.
type Story struct {
	Period struct{ From, To time.Time }
	// Episodes are those of all targets and pools.
	Episodes []replay.Episode
	// Names are further names of a target, such as its pod.
	Names map[string][]string
	// Ruled is true where rules were evaluated. Pages are their alerts, Own the user's.
	Ruled      bool
	Pages, Own []rulestore.Firing
	// Margin is how long before an incident an alarm may be, and after it, and belong to it.
	Margin time.Duration
}

// Serious is the severity from which on a verdict is an alarm.
const Serious = 2

// Seen is when something reported an incident first.
type Seen struct {
	// By is the condition and cause, or the alert.
	By string `json:"by"`
	// At is when that was.
	At time.Time `json:"at"`
	// Lead is the lead time before the start of the incident; negative after it.
	Lead float64 `json:"lead_seconds"`
	// Subject is the subject, if known.
	Subject string `json:"subject,omitempty"`
	// Already is true if the report started long before the incident, so it has no lead time.
	Already bool `json:"already,omitempty"`
}

// Result is how an incident was seen.
type Result struct {
	// Incident is the incident in the file.
	Incident `json:"incident"`
	// Outside is true if the incident is outside of the period, and not compared.
	Outside bool `json:"outside,omitempty"`
	// Diagnosis is the first report of the diagnosis.
	Diagnosis *Seen `json:"diagnosis,omitempty"`
	// Alerts are the would-be alerts, each with its first firing.
	Alerts []Seen `json:"alerts,omitempty"`
	// Own are the alerts that fired.
	Own []Seen `json:"own_alerts,omitempty"`
	// Ahead is the lead time of the diagnosis before the first alert that fired.
	Ahead *float64 `json:"ahead_of_own_alerts_seconds,omitempty"`
	// Reported is the condition or cause that lasted longest during the incident.
	Reported string `json:"reported,omitempty"`
	// Right is true if that is the cause in the file.
	Right *bool `json:"right_cause,omitempty"`
	// Missed is true if the diagnosis did not report it.
	Missed bool `json:"missed,omitempty"`
	// MissedByRules is true if no would-be alert fired.
	MissedByRules bool `json:"missed_by_rules,omitempty"`
}

// Alarm is an alarm outside of all incidents.
type Alarm struct {
	// By is the condition and cause, or the alert.
	By string `json:"by"`
	// Subject is the subject, if known.
	Subject string `json:"subject,omitempty"`
	// From is when it started.
	From time.Time `json:"from"`
	// To is when it ended.
	To time.Time `json:"to"`
	// Rule is true for a would-be page of a rule, false for the diagnosis.
	Rule bool `json:"rule,omitempty"`
}

// Compare compares the incidents with a story.
func Compare(incidents []Incident, s *Story) (results []Result, falseAlarms []Alarm) {
	for _, one := range incidents {
		r := Result{Incident: one}
		if one.To.Before(s.Period.From) || one.From.After(s.Period.To) {
			r.Outside = true
			results = append(results, r)
			continue
		}
		r.diagnosis(s)
		r.Alerts = alerts(&one, s, s.Pages)
		r.Own = alerts(&one, s, s.Own)
		r.MissedByRules = s.Ruled && len(r.Alerts) == 0
		if own := first(r.Own); own != nil && r.Diagnosis != nil && !r.Diagnosis.Already {
			ahead := own.At.Sub(r.Diagnosis.At).Seconds()
			r.Ahead = &ahead
		}
		results = append(results, r)
	}
	return results, alarms(incidents, s)
}

// diagnosis finds what the diagnosis reported of an incident.
func (r *Result) diagnosis(s *Story) {
	lasted := map[string]time.Duration{}
	said := map[string][]string{}
	for i := range s.Episodes {
		e := &s.Episodes[i]
		if !serious(e) || !about(&r.Incident, s, e) || !r.meets(e.From, e.To, s.Margin, 0) {
			continue
		}
		one := r.seen(Verdict(e), e.Subject.String(), e.From, s.Margin)
		if r.Diagnosis == nil || r.Diagnosis.Already && !one.Already {
			r.Diagnosis = one
		}
		from, to := later(e.From, r.From), earlier(e.To, r.To)
		name := cmp.Or(e.Cause, e.Condition)
		lasted[name] += max(to.Sub(from), time.Millisecond)
		said[name] = []string{e.Cause, e.Condition}
	}
	r.Missed = r.Diagnosis == nil
	for name, d := range lasted {
		if r.Reported == "" || d > lasted[r.Reported] || d == lasted[r.Reported] && name < r.Reported {
			r.Reported = name
		}
	}
	if r.Cause != "" && r.Reported != "" {
		right := slices.Contains(said[r.Reported], r.Cause)
		r.Right = &right
	}
}

// meets reports whether an alarm belongs to an incident: it began in it or up to a margin
// before it, or up to another margin after it, or it lasted from before into it.
func (i *Incident) meets(from, to time.Time, before, after time.Duration) bool {
	if from.Before(i.From.Add(-before)) {
		return to.After(i.From)
	}
	return from.Before(i.To.Add(after))
}

// seen is one report of an incident.
func (i *Incident) seen(by, subject string, at time.Time, margin time.Duration) *Seen {
	return &Seen{By: by, At: at, Lead: i.From.Sub(at).Seconds(), Subject: subject, Already: at.Before(i.From.Add(-margin))}
}

// Verdict is a condition with its cause.
func Verdict(e *replay.Episode) string {
	switch {
	case e.Cause == "":
		return e.Condition
	case e.Detail == "":
		return e.Condition + ", " + e.Cause
	}
	return e.Condition + ", " + e.Cause + " (" + e.Detail + ")"
}

func serious(e *replay.Episode) bool { return e.Severity >= Serious && !e.Warmup }

// about reports whether an episode is about the targets of an incident. A pool is about all.
func about(i *Incident, s *Story, e *replay.Episode) bool {
	return e.Subject.Pool || i.Concerns(append([]string{e.Subject.Target}, s.Names[e.Subject.Target]...)...)
}

// concerns reports whether an alert is about the targets of an incident. One that names no
// instance is about all.
func concerns(i *Incident, s *Story, f *rulestore.Firing) bool {
	var names []string
	for _, label := range []string{"instance", "exported_instance", "pod", "k8s_pod_name", "k8s.pod.name"} {
		if v := f.Labels.Get(label); v != "" {
			names = append(append(names, v), s.Names[v]...)
		}
	}
	return len(names) == 0 || i.Concerns(names...)
}

// alerts returns when each alert fired first in an incident.
func alerts(i *Incident, s *Story, all []rulestore.Firing) []Seen {
	var out []Seen
	known := map[string]int{}
	for k := range all {
		f := &all[k]
		if !concerns(i, s, f) || !i.meets(f.From, f.To, s.Margin, s.Margin) {
			continue
		}
		one := i.seen(f.Alert, f.Labels.Get("instance"), f.From, s.Margin)
		if at, again := known[f.Alert]; again {
			if out[at].Already && !one.Already {
				out[at] = *one
			}
			continue
		}
		known[f.Alert] = len(out)
		out = append(out, *one)
	}
	slices.SortStableFunc(out, func(a, b Seen) int { return a.At.Compare(b.At) })
	return out
}

// first is the first report that is not from long before; nil without one.
func first(all []Seen) *Seen {
	for k := range all {
		if !all[k].Already {
			return &all[k]
		}
	}
	return nil
}

// Page reports whether an alert would have paged a person: by its label severity, or because
// it has none.
func Page(f *rulestore.Firing) bool {
	switch strings.ToLower(f.Labels.Get("severity")) {
	case "", "page", "pager", "critical", "high", "error", "emergency":
		return true
	}
	return false
}

// alarms returns the alarms of the diagnosis and the pages of the rules that belong to no
// incident.
func alarms(incidents []Incident, s *Story) []Alarm {
	var out []Alarm
	belongs := func(from, to time.Time, of func(*Incident) bool) bool {
		return slices.ContainsFunc(incidents, func(i Incident) bool {
			return !to.Before(i.From.Add(-s.Margin)) && !from.After(i.To.Add(s.Margin)) && of(&i)
		})
	}
	for _, run := range Alarms(s.Episodes) {
		begin := run[0]
		to := run[len(run)-1].To
		if !belongs(begin.From, to, func(i *Incident) bool { return about(i, s, begin) }) {
			out = append(out, Alarm{By: Verdict(begin), Subject: begin.Subject.String(), From: begin.From, To: to})
		}
	}
	for k := range s.Pages {
		f := &s.Pages[k]
		if Page(f) && !belongs(f.From, f.To, func(i *Incident) bool { return concerns(i, s, f) }) {
			out = append(out, Alarm{By: f.Alert, Subject: f.Labels.Get("instance"), From: f.From, To: f.To, Rule: true})
		}
	}
	slices.SortStableFunc(out, func(a, b Alarm) int { return a.From.Compare(b.From) })
	return out
}

// apart is the time between two serious episodes from which on they are two alarms.
const apart = 5 * time.Minute

// Alarms joins the serious episodes of each subject that follow each other, in the order of
// their starts.
func Alarms(episodes []replay.Episode) [][]*replay.Episode {
	open := map[replay.Subject]int{}
	var out [][]*replay.Episode
	for i := range episodes {
		e := &episodes[i]
		if !serious(e) {
			continue
		}
		if at, known := open[e.Subject]; known {
			last := out[at][len(out[at])-1]
			if e.From.Sub(last.To) < apart {
				out[at] = append(out[at], e)
				continue
			}
		}
		open[e.Subject] = len(out)
		out = append(out, []*replay.Episode{e})
	}
	return out
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
