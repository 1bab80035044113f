// Package report is what a backtest says: one document, and its forms as text, as JSON and
// as a page.
package report

import (
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/internal/vllmctl/backtest/incident"
	"github.com/otelcol-vllm/otelcol-vllm/internal/vllmctl/backtest/replay"
	"github.com/otelcol-vllm/otelcol-vllm/internal/vllmctl/rulestore"
)

// Report is the document of a backtest. Times are RFC 3339 in UTC, durations are seconds.
type Report struct {
	// Version is that of this form of the document.
	Version int `json:"version"`
	// Server is the address that was read, without secrets.
	Server string    `json:"server"`
	From   time.Time `json:"from"`
	To     time.Time `json:"to"`
	// Warmup is how long before From the history was read, for the baselines.
	Warmup float64 `json:"warmup_seconds"`
	// Notes are what the reader must know: what is approximate, missing or left out.
	Notes   []string `json:"notes"`
	Targets []Target `json:"targets"`
	// Pools are the verdicts about pools; empty where the configuration has none.
	Pools []replay.Episode `json:"pools"`
	// Rules are the rule files that were evaluated; empty without --rules.
	Rules []string `json:"rules"`
	// Alerts are the alerts that would have fired by these rules.
	Alerts []rulestore.Firing `json:"would_be_alerts"`
	// RuleProblems are rules that could not be evaluated.
	RuleProblems []rulestore.Problem `json:"rule_problems"`
	// Own are the alerts that did fire, by the series ALERTS.
	Own []rulestore.Firing `json:"own_alerts"`
	// Incidents compares with the file of --incidents; empty without it.
	Incidents []incident.Result `json:"incidents"`
	// FalseAlarms are alarms of the diagnosis and would-be pages outside of all incidents;
	// empty without --incidents.
	FalseAlarms []incident.Alarm `json:"false_alarms"`
	Summary     Summary          `json:"summary"`
	Read        Read             `json:"read"`

	// Compared is true where there is a file of incidents.
	Compared bool `json:"compared"`
	// Zone is the time zone of the text and the page.
	Zone *time.Location `json:"-"`
}

// Target is one server.
type Target struct {
	Name string `json:"name"`
	// Names says whether the series have vLLM's own names or ours.
	Names string `json:"names"`
	// Labels are those of the target in the history.
	Labels   map[string]string `json:"labels"`
	Coverage replay.Coverage   `json:"coverage"`
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
	// Scrapes is the number of scrapes, Failed how many of them failed.
	Scrapes int `json:"scrapes"`
	Failed  int `json:"failed_scrapes"`
	// Hours is for how long each condition was reported, added up over engines.
	Hours map[string]float64 `json:"hours_by_condition"`
	// CauseHours is for how long each primary cause was reported.
	CauseHours map[string]float64 `json:"hours_by_cause"`
	// Alarms is the number of times in which the diagnosis reported a severity of 2 or more,
	// Severe how many of them reached 3.
	Alarms int `json:"diagnosis_alarms"`
	Severe int `json:"diagnosis_alarms_severity_3"`
	// Pages is the number of would-be alerts that page; PagesPerWeek is that in a week.
	Pages        int     `json:"would_be_pages"`
	PagesPerWeek float64 `json:"would_be_pages_per_week"`
	OwnAlerts    int     `json:"own_alerts"`
	// Incidents is the number of incidents in the period, Missed those that the diagnosis did
	// not report, MissedByRules those without a would-be alert, WrongCause those with another
	// cause than the file names.
	Incidents     int `json:"incidents"`
	Missed        int `json:"missed"`
	MissedByRules int `json:"missed_by_rules"`
	RightCause    int `json:"right_cause"`
	WrongCause    int `json:"wrong_cause"`
	FalseAlarms   int `json:"false_alarms"`
	// LeadMedian is the median of the lead over the begin of the incidents that the diagnosis
	// reported, AheadMedian that over the first own alert; nil without any.
	LeadMedian  *float64 `json:"lead_median_seconds"`
	AheadMedian *float64 `json:"ahead_of_own_alerts_median_seconds"`
}

// Read is what was read.
type Read struct {
	Requests int   `json:"requests"`
	Retries  int   `json:"retries"`
	Bytes    int64 `json:"bytes"`
	Samples  int64 `json:"samples"`
	// Parts is the number of parts of the history, Kept how many came from the folder of
	// --resume.
	Parts int `json:"parts"`
	Kept  int `json:"parts_from_folder"`
	// Seconds is how long the command took.
	Seconds float64 `json:"seconds"`
}
