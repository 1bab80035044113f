package main

import "github.com/otelcol-vllm/otelcol-vllm/lab/judge"

// minutes are what is known of each minute of a server, besides its harm.
type minutes struct {
	// excused: a minute up to three windows before was harmful, a scrape failed within a window, or a fault has begun.
	// natural: users waited, because of the traffic itself. great: there was great harm by the limits of real servers.
	excused, natural, great []bool
}

func (s *Score) minutes(server int, harmful []judge.Line) minutes {
	n := s.Minutes / max(1, s.Servers)
	out := minutes{make([]bool, n+1), s.natural(server, n), s.felt(server, n, judge.Great)}
	for i := range harmful {
		for j := harmful[i].Minute; j <= min(harmful[i].Minute+grace, n); j++ {
			out.excused[j] = true
		}
	}
	faults := faulty(s.Record, server)
	for i := range n {
		from, to := float64(i)*window, float64(i+1)*window
		for _, f := range s.Faults {
			if f.Kind != judge.Missed && f.At < to && f.Until+window > from {
				out.excused[i] = true
			}
		}
		for _, in := range faults {
			out.excused[i] = out.excused[i] || to > in.At
		}
	}
	return out
}

// natural are the minutes of a natural slow-down: stretches of at least two in which users waited beyond the bar
// of harm against the usual, or an objective was missed, and those in which they felt harm by the limits of real
// servers; and the three after either.
func (s *Score) natural(server, n int) []bool {
	slow, out := make([]bool, n+1), s.felt(server, n, judge.Great, judge.Clear)
	for _, m := range s.Slow {
		if m[0] == server && m[1] < n {
			slow[m[1]] = true
		}
	}
	for from, to := 0, 0; from < n; from = to + 1 {
		for to = from; slow[to]; {
			to++
		}
		for i := from; to-from >= leastSlow && i < min(to+grace, n); i++ {
			out[i] = true
		}
	}
	return out
}

// alarms divides the alarms of a server by what was behind them, and adds the hours in which there could be one, up to
// a minute.
func (s *Score) alarms(server int, harmful []judge.Line, until int) {
	is := s.minutes(server, harmful)
	n := min(len(is.excused)-1, until)
	reported := make([]bool, n+1)
	for i := range s.Lines {
		if l := &s.Lines[i]; l.Server == server && l.Minute < n {
			reported[l.Minute] = alarming(l)
		}
	}
	for i := range n {
		switch {
		case is.excused[i]:
			continue
		case is.natural[i]:
			s.Slowed += window / 3600
		case reported[i]:
			s.FalseTime += window / 3600
		}
		s.Healthy += window / 3600
	}
	counts := func(a *judge.Alarm) (int, bool) {
		minute := int((a.At - 1e-9) / window)
		return minute, a.Server == server && minute < n && !is.excused[minute]
	}
	for _, a := range s.Alarms {
		minute, healthy := counts(&a)
		if !healthy {
			continue
		}
		if is.natural[minute] {
			s.Natural = append(s.Natural, a)
		} else {
			s.False = append(s.False, a)
		}
		if a.Severity >= 3 && !is.great[minute] {
			s.Pages = append(s.Pages, a)
		}
	}
	for _, a := range s.Record.Notices {
		if _, healthy := counts(&a); healthy {
			s.Notices = append(s.Notices, a)
		}
	}
}
