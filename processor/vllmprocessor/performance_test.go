package vllmprocessor

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// docs/why/performance.md has times and memory of one run, but its numbers of series and
// of points do not depend on the machine.
func TestThePerformancePageHasTheNumbersOfSeriesAndPoints(t *testing.T) {
	page, err := os.ReadFile("../../docs/why/performance.md")
	require.NoError(t, err)
	for engines, name := range map[int]string{1: "one engine", 8: "eight engines"} {
		p, f := benchProcessor(t), newFleet(t, 1, engines)
		for range 26 { // the benchmark's, on a filled window
			f.pass(t, p)
		}
		added := f.metrics.DataPointCount() - f.first.DataPointCount()
		points := regexp.MustCompile(fmt.Sprintf(`\| 1 server, %s \|.*\| %d \|\n`, name, added))
		assert.True(t, points.Match(page), "the page: a batch of one server with %s has %d points more", name, added)
		series := fmt.Sprintf("| 100 with %s | %d |", name, p.series.Used())
		if !strings.Contains(string(page), series) {
			t.Errorf("the page does not have %q", series)
		}
	}
}
