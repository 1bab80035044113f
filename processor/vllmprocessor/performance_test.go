package vllmprocessor

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/internal/test/race"
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

// The processor time of a batch is compared with marshalling it in turns, and the state of a server with what it has been. Both limits
// catch a doubling: on a machine with other work one engine took 6.3 times its marshalling, and has 42 KB; eight have 275 KB.
func TestABatchAndTheStateOfAServerStayCheap(t *testing.T) {
	race.SkipSequential(t)
	for engines, most := range map[int]struct{ marshals, state float64 }{1: {12, 84 << 10}, 8: {12, 550 << 10}} {
		const servers = 16
		p, f := benchProcessor(t), newFleet(t, servers, engines)
		var processing, marshalling []time.Duration
		for range 45 {
			processing = append(processing, f.pass(t, p))
			began := time.Now()
			_, err := new(pmetric.ProtoMarshaler).MarshalMetrics(f.metrics)
			marshalling = append(marshalling, time.Since(began))
			require.NoError(t, err)
		}
		full := len(processing) - 20
		assert.Less(t, float64(median(processing[full:]))/float64(median(marshalling[full:])), most.marshals, "%d engines", engines)
		assert.Less(t, stateOf(p)/servers, most.state, "%d engines", engines)
	}
}
