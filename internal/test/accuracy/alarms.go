package accuracy

// Alarm is a change to severity 2 or 3.
type Alarm struct {
	Story string
	Seed  uint64
	// At is in seconds since the beginning of the story.
	At float64
	// Severity is 2 for a warning, 3 for a page.
	Severity int
	Label    string
}

// falseAlarms returns the changes to severity 2 or 3 while nothing was wrong: no
// minute up to three windows before was harmful, and no scrape failed within a
// window. The hours are those in which an alarm would be false.
func falseAlarms(s *Story, bins []Bin, reported []Reported) (alarms []Alarm, hours float64) {
	excused := make([]bool, len(bins)+1)
	for i := range bins {
		for j := i; bins[i].Harm && j <= min(i+grace, len(bins)); j++ {
			excused[j] = true
		}
		from, to := float64(i)*window, float64(i+1)*window
		for _, f := range s.Faults {
			if f.Kind != Missed && f.At < to && f.Until+window > from {
				excused[i] = true
			}
		}
		if !excused[i] {
			hours += window / 3600
		}
	}
	severity := 0
	for i := range reported {
		t := &reported[i]
		if t.Severity >= 2 && t.Severity > severity && !excused[min(int((t.At-1e-9)/window), len(bins))] {
			alarms = append(alarms, Alarm{s.Name, s.Config.Seed, t.At, t.Severity, t.Condition + " " + t.Label()})
		}
		if t.Severity >= 0 {
			severity = t.Severity
		}
	}
	return alarms, hours
}
