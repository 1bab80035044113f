// Package report is what a backtest says: one document, and its forms as text, as JSON and
// as a page.
package report

import (
	"slices"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/backtest/incident"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/backtest/replay"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/rulestore"
)

// Report is the document of a backtest. Times are RFC 3339 in UTC, durations are seconds.
type Report struct {
	// Version is that of this form of the document.
	Version int `json:"version"`
	// Server is the address that was read, without secrets.
	Server string `json:"server"`
	// From is when the period begins.
	From time.Time `json:"from"`
	// To is when it ends.
	To time.Time `json:"to"`
	// Warmup is how long before From the history was read, for the baselines.
	Warmup float64 `json:"warmup_seconds"`
	// Notes are what the reader must know: what is approximate, missing or left out.
	Notes []string `json:"notes"`
	// Targets are the servers, in the order of their names.
	Targets []Target `json:"targets"`
	// Pools are the verdicts about pools; empty where the configuration has none.
	Pools []replay.Episode `json:"pools"`
	// Rules are the rule files that were evaluated; empty without --rules.
	Rules []string `json:"rules"`
	// Alerts are the alerts that would have fired by these rules.
	Alerts []rulestore.Firing `json:"would_be_alerts"`
	// RuleProblems are rules that could not be evaluated, or an annotation of which could not be expanded.
	RuleProblems []rulestore.Problem `json:"rule_problems"`
	// Own are the alerts that did fire, by the series ALERTS.
	Own []rulestore.Firing `json:"own_alerts"`
	// Incidents compares with the file of --incidents; empty without it.
	Incidents []incident.Result `json:"incidents"`
	// FalseAlarms are alarms of the diagnosis and would-be pages outside of all incidents;
	// empty without --incidents.
	FalseAlarms []incident.Alarm `json:"false_alarms"`
	// Summary has the numbers.
	Summary Summary `json:"summary"`
	// Read is what was read.
	Read Read `json:"read"`
	// Compared is true where there is a file of incidents.
	Compared bool `json:"compared"`
	// Zone is the time zone of the text and the page.
	Zone *time.Location `json:"-"`
}

// Unevaluated are the problems of rules that could not be evaluated: what would have fired is not known then.
func (r *Report) Unevaluated() []rulestore.Problem {
	return slices.DeleteFunc(slices.Clone(r.RuleProblems), func(p rulestore.Problem) bool { return p.Annotation })
}

// Target is one server.
type Target struct {
	// Name is the instance, with other labels where an instance alone is not unique.
	Name string `json:"name"`
	// Names says whether the series have vLLM's own names or ours.
	Names string `json:"names"`
	// Labels are those of the target in the history.
	Labels map[string]string `json:"labels"`
	// Coverage is what there was of it.
	Coverage replay.Coverage `json:"coverage"`
	// Episodes are the times in which the verdict stayed the same, with those of the warm-up.
	Episodes []replay.Episode `json:"episodes"`
	// Dropped is the number of episodes above the limit.
	Dropped int `json:"dropped_episodes,omitempty"`
}

// Summary are the numbers of a backtest.
type Summary struct {
	// EngineHours is for how long engines were observed.
	EngineHours float64 `json:"engine_hours"`
	// GapHours is for how long targets were not.
	GapHours float64 `json:"gap_hours"`
	// Scrapes is the number of scrapes.
	Scrapes int `json:"scrapes"`
	// Failed is how many of them failed.
	Failed int `json:"failed_scrapes"`
	// Hours is for how long each condition was reported, added up over engines.
	Hours map[string]float64 `json:"hours_by_condition"`
	// CauseHours is for how long each primary cause was reported.
	CauseHours map[string]float64 `json:"hours_by_cause"`
	// Alarms is the number of times in which the diagnosis reported a severity of 2 or more.
	Alarms int `json:"diagnosis_alarms"`
	// Severe is how many of them reached 3.
	Severe int `json:"diagnosis_alarms_severity_3"`
	// Pages is the number of would-be alerts that page.
	Pages int `json:"would_be_pages"`
	// PagesPerWeek is that in a week.
	PagesPerWeek float64 `json:"would_be_pages_per_week"`
	// OwnAlerts is how often own alerts fired.
	OwnAlerts int `json:"own_alerts"`
	// Incidents is the number of incidents in the period.
	Incidents int `json:"incidents"`
	// Missed is how many of them the diagnosis did not report.
	Missed int `json:"missed"`
	// MissedByRules is how many have no would-be alert.
	MissedByRules int `json:"missed_by_rules"`
	// RightCause is how many were reported mostly with the cause that the file names.
	RightCause int `json:"right_cause"`
	// WrongCause is how many were reported mostly with another cause.
	WrongCause int `json:"wrong_cause"`
	// FalseAlarms is the number of alarms outside of all incidents.
	FalseAlarms int `json:"false_alarms"`
	// LeadMedian is the median of how long before the begin of an incident the diagnosis
	// reported it; negative after it, null without any.
	LeadMedian *float64 `json:"lead_median_seconds"`
	// AheadMedian is the median of how long before the first own alert that was.
	AheadMedian *float64 `json:"ahead_of_own_alerts_median_seconds"`
}

// Read is what was read.
type Read struct {
	// Requests is the number of requests.
	Requests int `json:"requests"`
	// Retries is how many of them were made again.
	Retries int `json:"retries"`
	// Bytes is the size of the answers, uncompressed.
	Bytes int64 `json:"bytes"`
	// Samples is the number of samples.
	Samples int64 `json:"samples"`
	// Parts is the number of parts of the history.
	Parts int `json:"parts"`
	// Seconds is how long the command took.
	Seconds float64 `json:"seconds"`
}
