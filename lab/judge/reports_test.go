package judge

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// The shipped alert waits for a minute, so what is over before pages no one.
func TestAPageIsWhatTheAlertSends(t *testing.T) {
	for name, at := range map[string]struct {
		severities []int // every 15 s
		want       []int
	}{
		"for 45 s":            {[]int{0, 3, 3, 3, 0}, []int{2}},
		"for 60 s":            {[]int{0, 3, 3, 3, 3, 0}, []int{3}},
		"until the end":       {[]int{0, 3}, []int{3}},
		"falls to a warning":  {[]int{0, 2, 3, 2, 2, 2, 2}, []int{2, 2}},
		"the second one long": {[]int{0, 3, 0, 3, 3, 3, 3, 1}, []int{2, 3}},
	} {
		r := &reports{now: make([]report, 2), paging: make([]int, 2), out: new(Played)}
		r.out.Alarms = []Alarm{{Severity: 3}} // of another server
		for i, severity := range at.severities {
			next := report{severity: severity}
			r.alarm(1, 15*float64(i), &next)
			r.now[1] = next
		}
		var got []int
		for _, a := range r.out.Alarms[1:] {
			got = append(got, a.Severity)
		}
		assert.Equal(t, at.want, got, name)
		assert.Equal(t, 3, r.out.Alarms[0].Severity, name)
	}
}
