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
	// Version is the version of this format.
	Version int `json:"version"`
	// Server is the address that was read, without secrets.
	Server string `json:"server"`
	// From is the start of the period.
	From time.Time `json:"from"`
	// To is the end of the period.
	To time.Time `json:"to"`
	// Warmup is the length of the warm-up before the period.
	Warmup float64 `json:"warmup_seconds"`
	// Notes are about approximate, missing or omitted results.
	Notes []string `json:"notes"`
	// Targets are the servers, in the order of their names.
	Targets []Target `json:"targets"`
	// Pools are the verdicts about pools; empty if the configuration has none.
	Pools []replay.Episode `json:"pools"`
	// Rules are the rule files that were evaluated; empty without --rules.
	Rules []string `json:"rules"`
	// Alerts are the alerts that would have fired by these rules.
	Alerts []rulestore.Firing `json:"would_be_alerts"`
	// RuleProblems are rules that failed, or annotations that could not be expanded.
	RuleProblems []rulestore.Problem `json:"rule_problems"`
	// Own are the alerts that fired, from the series ALERTS.
	Own []rulestore.Firing `json:"own_alerts"`
	// Incidents are the results for the file of --incidents; empty without it.
	Incidents []incident.Result `json:"incidents"`
	// FalseAlarms are alarms outside of all incidents; empty without --incidents.
	FalseAlarms []incident.Alarm `json:"false_alarms"`
	// Summary is the summary.
	Summary Summary `json:"summary"`
	// Read has numbers about the reading.
	Read Read `json:"read"`
	// Compared is true with --incidents.
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
	// Name is the instance, with further labels if the instance is ambiguous.
	Name string `json:"name"`
	// Names are vLLM's own, or those of the receiver.
	Names string `json:"names"`
	// Labels are the labels of the target in the history.
	Labels map[string]string `json:"labels"`
	// Coverage has its scrapes and gaps.
	Coverage replay.Coverage `json:"coverage"`
	// Episodes are the periods with one verdict, including the warm-up.
	Episodes []replay.Episode `json:"episodes"`
	// Dropped is the number of episodes beyond the limit.
	Dropped int `json:"dropped_episodes,omitempty"`
}

// Summary are the numbers of a backtest.
type Summary struct {
	// EngineHours are the observed hours of all engines.
	EngineHours float64 `json:"engine_hours"`
	// GapHours are the hours of all targets without scrapes.
	GapHours float64 `json:"gap_hours"`
	// Scrapes is the number of scrapes.
	Scrapes int `json:"scrapes"`
	// Failed is the number of failed scrapes.
	Failed int `json:"failed_scrapes"`
	// Hours are the hours of each condition, summed over engines.
	Hours map[string]float64 `json:"hours_by_condition"`
	// CauseHours are the hours of each primary cause, summed over engines.
	CauseHours map[string]float64 `json:"hours_by_cause"`
	// Alarms is the number of alarms of the diagnosis (severity 2 or more).
	Alarms int `json:"diagnosis_alarms"`
	// Severe is the number of these alarms with severity 3.
	Severe int `json:"diagnosis_alarms_severity_3"`
	// Pages is the number of would-be alerts that page.
	Pages int `json:"would_be_pages"`
	// PagesPerWeek is the number of these pages per week.
	PagesPerWeek float64 `json:"would_be_pages_per_week"`
	// OwnAlerts is the number of alerts that fired.
	OwnAlerts int `json:"own_alerts"`
	// Incidents is the number of incidents in the period.
	Incidents int `json:"incidents"`
	// Missed is the number of incidents that the diagnosis did not report.
	Missed int `json:"missed"`
	// MissedByRules is the number of incidents without a would-be alert.
	MissedByRules int `json:"missed_by_rules"`
	// RightCause is the number of incidents reported mostly with the cause in the file.
	RightCause int `json:"right_cause"`
	// WrongCause is the number of incidents reported mostly with another cause.
	WrongCause int `json:"wrong_cause"`
	// FalseAlarms is the number of alarms outside of all incidents.
	FalseAlarms int `json:"false_alarms"`
	// LeadMedian is the median lead time before the start of an incident; negative after it.
	LeadMedian *float64 `json:"lead_median_seconds"`
	// AheadMedian is the median lead time before the first alert that fired.
	AheadMedian *float64 `json:"ahead_of_own_alerts_median_seconds"`
}

// Read is what was read.
type Read struct {
	// Requests is the number of requests.
	Requests int `json:"requests"`
	// Retries is the number of repeated requests.
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
