package report

import (
	"slices"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/backtest/incident"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/backtest/replay"
)

// Summarize fills the summary from the rest of the report.
func (r *Report) Summarize() {
	s := Summary{Hours: map[string]float64{}, CauseHours: map[string]float64{}}
	add := func(episodes []replay.Episode, count bool) {
		for i := range episodes {
			e := &episodes[i]
			hours := r.within(e).Hours()
			if hours <= 0 || !count {
				continue
			}
			s.Hours[e.Condition] += hours
			if e.Cause != "" {
				s.CauseHours[e.Cause] += hours
			}
		}
		for _, run := range incident.Alarms(episodes) {
			s.Alarms++
			if slices.ContainsFunc(run, func(e *replay.Episode) bool { return e.Severity > incident.Serious }) {
				s.Severe++
			}
		}
	}
	for i := range r.Targets {
		t := &r.Targets[i]
		s.EngineHours += t.Coverage.Observed / 3600 * float64(max(1, t.Coverage.Engines))
		s.GapHours += t.Coverage.Gaps / 3600
		s.Scrapes += t.Coverage.Scrapes
		s.Failed += t.Coverage.Failed
		add(t.Episodes, true)
	}
	add(r.Pools, false)
	for i := range r.Alerts {
		if incident.Page(&r.Alerts[i]) {
			s.Pages++
		}
	}
	if weeks := r.To.Sub(r.From).Hours() / (7 * 24); weeks > 0 {
		s.PagesPerWeek = float64(s.Pages) / weeks
	}
	s.OwnAlerts = len(r.Own)
	s.FalseAlarms = len(r.FalseAlarms)
	var leads, ahead []float64
	for i := range r.Incidents {
		one := &r.Incidents[i]
		if one.Outside {
			continue
		}
		s.Incidents++
		if one.Missed {
			s.Missed++
		}
		if one.MissedByRules {
			s.MissedByRules++
		}
		if one.Right != nil && *one.Right {
			s.RightCause++
		} else if one.Right != nil {
			s.WrongCause++
		}
		if one.Diagnosis != nil && !one.Diagnosis.Already {
			leads = append(leads, one.Diagnosis.Lead)
		}
		if one.Ahead != nil {
			ahead = append(ahead, *one.Ahead)
		}
	}
	s.LeadMedian, s.AheadMedian = median(leads), median(ahead)
	r.Summary = s
}

// within is how much of an episode is in the period.
func (r *Report) within(e *replay.Episode) time.Duration {
	from, to := e.From, e.To
	if from.Before(r.From) {
		from = r.From
	}
	if to.After(r.To) {
		to = r.To
	}
	return to.Sub(from)
}

func median(all []float64) *float64 {
	if len(all) == 0 {
		return nil
	}
	slices.Sort(all)
	m := all[len(all)/2]
	if len(all)%2 == 0 {
		m = (m + all[len(all)/2-1]) / 2
	}
	return &m
}

// Failed reports whether there are misses or false alarms.
func (r *Report) Failed() bool {
	return r.Summary.Missed > 0 || r.Summary.MissedByRules > 0 || r.Summary.FalseAlarms > 0
}
