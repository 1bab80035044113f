package scrape

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// increase is what a Prometheus backend reads from the points of a counter: every
// rise is an increase, and after a fall the whole value is one. The first point is
// where it begins.
type increase struct {
	last  float64
	known bool
	total float64
}

func (i *increase) read(t *testing.T, metrics pmetric.Metrics) {
	t.Helper()
	for _, p := range sums(t, metrics, "vllm.prompt_tokens") {
		if p.Flags().NoRecordedValue() {
			continue
		}
		switch v := p.DoubleValue(); {
		case !i.known:
		case v < i.last:
			i.total += v
		default:
			i.total += v - i.last
		}
		i.last, i.known = p.DoubleValue(), true
	}
}

// Two replicas answer in turn and do nothing. Whichever of them has the larger
// counters and whichever is older, no increase is reported, and the log has one line
// what is wrong.
func TestIdleReplicasReportNoIncrease(t *testing.T) {
	for _, tt := range []struct {
		name        string
		firstStart  float64
		firstValue  string
		secondStart float64
		secondValue string
	}{
		{"the older one first, with less", -7200, "100", -3600, "6000"},
		{"the older one first, with more", -7200, "6000", -3600, "100"},
		{"the newer one first, with less", -3600, "100", -7200, "6000"},
		{"the newer one first, with more", -3600, "6000", -7200, "100"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t)
			seen := increase{}
			bodies := []string{
				counter(tt.firstValue) + process(unix(tt.firstStart)),
				counter(tt.secondValue) + process(unix(tt.secondStart)),
			}
			for i := range 40 {
				out := r.scrape(bodies[i%2])
				assert.Equal(t, []string{"gauge vllm.up"}, upOnly(out), "scrape %d", i)
				seen.read(t, out)
			}
			assert.InDelta(t, 0, seen.total, 0)
			assert.Equal(t, 1, countLogged(r, "Several server processes"))
			assert.Zero(t, r.asked["/version"]-1, "the other process is not asked for its version")
		})
	}
}

// What the process whose points are emitted does is reported in full.
func TestReplicasTheEmittedProcessIsCountedCompletely(t *testing.T) {
	r := newRig(t)
	seen := increase{}
	for i := range 40 {
		if i%3 == 0 {
			seen.read(t, r.scrape(counter(fmt.Sprint(1000+10*i))+process(unix(-7200))))
			continue
		}
		seen.read(t, r.scrape(counter(fmt.Sprint(90000+500*i))+process(unix(-3600))))
	}
	assert.InDelta(t, 390, seen.total, 0)
}

// A process that is silent for five minutes is gone: another one takes its place,
// and its first value is a baseline.
func TestReplicasAnotherOneReplacesOneThatIsGone(t *testing.T) {
	r := newRig(t)
	r.scrape(counter("100") + process(unix(-7200)))
	var taken pmetric.NumberDataPoint
	scrapes := 0
	for ok := false; !ok; scrapes++ {
		require.Less(t, scrapes, 30)
		taken, ok = sums(t, r.scrape(counter("6000")+process(unix(-3600))), "vllm.prompt_tokens")["0"]
	}
	assert.Equal(t, 20, scrapes, "five minutes")
	assert.InDelta(t, -3600, seconds(taken.StartTimestamp()), 0.001)
	assert.InDelta(t, 6000, taken.DoubleValue(), 0)
	// The old one is back, and the new one is the one that is emitted now.
	assert.Empty(t, sums(t, r.scrape(counter("101")+process(unix(-7200))), "vllm.prompt_tokens"))
}

// A restart is not a replica: its process started after the last scrape of the old
// one, or a little before by a clock that differs.
func TestReplicasARestartIsNotAReplica(t *testing.T) {
	for _, start := range []float64{7, -60} {
		r := newRig(t)
		r.scrape(counter("100") + process(unix(-7200)))
		point, ok := sums(t, r.scrape(counter("6000")+process(unix(start))), "vllm.prompt_tokens")["0"]
		require.True(t, ok)
		assert.InDelta(t, max(start, 0), seconds(point.StartTimestamp()), 0.001)
		assert.Zero(t, countLogged(r, "Several server processes"))
	}
}

// The start of one process may move by a part of a second, where it is computed
// from the time of boot.
func TestAStartThatMovesALittleIsTheSameProcess(t *testing.T) {
	r := newRig(t)
	for i, start := range []float64{-7200, -7199.4, -7200, -7199.2} {
		point, ok := sums(t, r.scrape(counter(fmt.Sprint(100+i))+process(unix(start))), "vllm.prompt_tokens")["0"]
		require.True(t, ok, "scrape %d", i)
		assert.InDelta(t, -7200, seconds(point.StartTimestamp()), 0.001, "scrape %d", i)
	}
}

// After an outage of an hour the replica that answers is taken at once.
func TestReplicasAfterAnOutage(t *testing.T) {
	r := newRig(t)
	r.scrape(counter("100") + process(unix(-7200)))
	r.now = r.now.Add(time.Hour)
	r.fail(500)
	point, ok := sums(t, r.scrape(counter("6000")+process(unix(-9000))), "vllm.prompt_tokens")["0"]
	require.True(t, ok)
	assert.InDelta(t, -9000, seconds(point.StartTimestamp()), 0.001)
}

func upOnly(metrics pmetric.Metrics) []string {
	var out []string
	for _, rm := range metrics.ResourceMetrics().All() {
		for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
			if m.Name() == "vllm.up" {
				out = append(out, strings.ToLower(m.Type().String())+" "+m.Name())
			}
		}
	}
	return out
}

func countLogged(r *rig, text string) int {
	n := 0
	for _, message := range r.logged("warn") {
		if strings.Contains(message, text) {
			n++
		}
	}
	return n
}
