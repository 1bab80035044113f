package stages

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// invalidKeys returns the keys of a configuration that Check reports.
func invalidKeys(c *DiagnosisConfig, window time.Duration) (keys []string) {
	c.Check(window, func(key, _ string, _ ...any) { keys = append(keys, key) })
	return keys
}

// A value at a limit is valid, and the next one beyond it is not.
func TestTheLimitsOfTheDiagnosisAreInclusive(t *testing.T) {
	t.Parallel()
	const hold, relearn, start = "diagnosis::hold", "diagnosis::relearn_after", "diagnosis::start_timeout"
	const breakEven, runbooks, boards = "diagnosis::speculation_break_even", "diagnosis::runbooks", "diagnosis::boards"
	for _, test := range []struct {
		name   string
		change func(c *DiagnosisConfig)
		want   []string
	}{
		{"the default", func(*DiagnosisConfig) {}, nil},
		{"hold 0", func(c *DiagnosisConfig) { c.Hold = 0 }, []string{hold}},
		{"hold 1", func(c *DiagnosisConfig) { c.Hold = 1 }, nil},
		{"hold 60", func(c *DiagnosisConfig) { c.Hold, c.RelearnAfter = 60, 24*time.Hour }, nil},
		{"hold 61", func(c *DiagnosisConfig) { c.Hold, c.RelearnAfter = 61, 24*time.Hour }, []string{hold}},
		{"hold 61 is not reported twice", func(c *DiagnosisConfig) { c.Hold = 61 }, []string{hold}},
		{"hold 0 is not reported twice", func(c *DiagnosisConfig) { c.Hold, c.RelearnAfter = 0, time.Minute }, []string{hold}},
		{"relearn_after 0", func(c *DiagnosisConfig) { c.RelearnAfter = 0 }, []string{relearn}},
		{"negative relearn_after", func(c *DiagnosisConfig) { c.RelearnAfter = -time.Hour }, []string{relearn}},
		{"relearn_after without unit", func(c *DiagnosisConfig) { c.RelearnAfter = 3600 }, []string{relearn}},
		// Five times a hold of 2 windows of a minute are 10 minutes.
		{"relearn_after of 10m", func(c *DiagnosisConfig) { c.RelearnAfter = 10 * time.Minute }, nil},
		{"relearn_after below 10m", func(c *DiagnosisConfig) { c.RelearnAfter = 10*time.Minute - 1 }, []string{relearn}},
		{"relearn_after of 5m with hold 1", func(c *DiagnosisConfig) { c.Hold, c.RelearnAfter = 1, 5*time.Minute }, nil},
		{"relearn_after below 5m with hold 1", func(c *DiagnosisConfig) { c.Hold, c.RelearnAfter = 1, 5*time.Minute-1 }, []string{relearn}},
		{"relearn_after of 300m with hold 60", func(c *DiagnosisConfig) { c.Hold, c.RelearnAfter = 60, 300*time.Minute }, nil},
		{"relearn_after below 300m with hold 60", func(c *DiagnosisConfig) { c.Hold, c.RelearnAfter = 60, 300*time.Minute-1 }, []string{relearn}},
		{"start_timeout 0", func(c *DiagnosisConfig) { c.StartTimeout = 0 }, nil},
		{"negative start_timeout", func(c *DiagnosisConfig) { c.StartTimeout = -1 }, []string{start}},
		{"start_timeout without unit", func(c *DiagnosisConfig) { c.StartTimeout = 600 }, []string{start}},
		{"start_timeout of a day", func(c *DiagnosisConfig) { c.StartTimeout = 24 * time.Hour }, nil},
		{"start_timeout beyond a day", func(c *DiagnosisConfig) { c.StartTimeout = 24*time.Hour + 1 }, []string{start}},
		{"break-even 1", func(c *DiagnosisConfig) { c.SpeculationBreakEven = 1 }, nil},
		{"break-even below 1", func(c *DiagnosisConfig) { c.SpeculationBreakEven = 0.99 }, []string{breakEven}},
		{"break-even 100", func(c *DiagnosisConfig) { c.SpeculationBreakEven = 100 }, nil},
		{"break-even beyond 100", func(c *DiagnosisConfig) { c.SpeculationBreakEven = 100.1 }, []string{breakEven}},
		{"negative break-even", func(c *DiagnosisConfig) { c.SpeculationBreakEven = -1.5 }, []string{breakEven}},
		{"break-even that is not a number", func(c *DiagnosisConfig) { c.SpeculationBreakEven = math.NaN() }, []string{breakEven}},
		{"runbooks in a folder", func(c *DiagnosisConfig) { c.Runbooks = "https://wiki.example.com/a b" }, nil},
		{"no runbooks", func(c *DiagnosisConfig) { c.Runbooks = "" }, []string{runbooks}},
		{"runbooks in a file", func(c *DiagnosisConfig) { c.Runbooks = "file:///etc/runbooks" }, []string{runbooks}},
		{"runbooks without a host", func(c *DiagnosisConfig) { c.Runbooks = "https:///runbooks" }, []string{runbooks}},
		{"runbooks without a scheme", func(c *DiagnosisConfig) { c.Runbooks = "wiki.example.com/runbooks" }, []string{runbooks}},
		{"no address", func(c *DiagnosisConfig) { c.Runbooks = "https://wiki.example.com/\n" }, []string{runbooks}},
		{"runbooks with a password", func(c *DiagnosisConfig) { c.Runbooks = "https://me:secret@wiki.example.com" }, []string{runbooks}},
		{"runbooks with a query", func(c *DiagnosisConfig) { c.Runbooks = "https://wiki.example.com/?a=b" }, []string{runbooks}},
		{"boards with a fragment", func(c *DiagnosisConfig) { c.Boards = "https://grafana.example.com/#a" }, []string{boards}},
		{"boards of 500 bytes", func(c *DiagnosisConfig) { c.Boards = "http://g/" + strings.Repeat("a", 491) }, nil},
		{"boards of 501 bytes", func(c *DiagnosisConfig) { c.Boards = "http://g/" + strings.Repeat("a", 492) }, []string{boards}},
		{"switched off", func(c *DiagnosisConfig) { c.Enabled = false }, nil},
	} {
		c := DefaultDiagnosisConfig()
		test.change(&c)
		assert.Equal(t, test.want, invalidKeys(&c, time.Minute), test.name)
	}
}

// The sentence about a short relearn_after names the least value.
func TestAShortRelearnAfterIsReportedWithTheLeastOne(t *testing.T) {
	t.Parallel()
	c := DefaultDiagnosisConfig()
	c.RelearnAfter = time.Minute
	var got string
	c.Check(3*time.Minute, func(_, format string, args ...any) { got = fmt.Sprintf(format, args...) })
	assert.Contains(t, got, "write at least 30m0s, five times hold times window")
	c.RelearnAfter = 0
	c.Check(3*time.Minute, func(_, format string, args ...any) { got = fmt.Sprintf(format, args...) })
	assert.Equal(t, "must be more than 0; write for example 1h", got)
}
