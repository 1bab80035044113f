package scrape

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// delta is what a consumer that converts to deltas reads from a counter: after a
// new start the whole value is an increase.
type delta struct {
	last  float64
	start pcommon.Timestamp
	known bool
	total float64
}

func (d *delta) read(p pmetric.NumberDataPoint) {
	switch v := p.DoubleValue(); {
	case !d.known:
	case p.StartTimestamp() > d.start || v < d.last:
		d.total += v
	default:
		d.total += v - d.last
	}
	d.last, d.start, d.known = p.DoubleValue(), p.StartTimestamp(), true
}

// sinceEpoch is by how much a clock that was never set is ahead at the first scrape.
const sinceEpoch = -1798761600 * time.Second

// A server whose clock is wrong restarts. Each scrape has its points, and what the
// new process has counted is counted once.
func TestARestartOfAServerWhoseClockIsWrong(t *testing.T) {
	require.Equal(t, int64(0), firstScrape.Add(sinceEpoch).Unix())
	for name, ahead := range map[string]time.Duration{
		"right": 0, "a little ahead": 20 * time.Second, "an hour behind": -time.Hour, "an hour ahead": time.Hour,
		"ten minutes ahead": 10 * time.Minute, "six minutes behind": -6 * time.Minute,
		"never set": sinceEpoch + 3*time.Hour,
	} {
		for _, after := range []int{5000, 2} {
			t.Run(fmt.Sprintf("%s/%d", name, after), func(t *testing.T) {
				r := newRig(t)
				r.ahead = ahead
				seen := delta{}
				// The page names the start by the server's clock.
				start := unix((ahead - 2*time.Hour).Seconds())
				value := 1000
				// For longer than the clock is ahead.
				for i := range 300 {
					if i == 20 {
						value = after - 10
						start = unix(r.now.Sub(firstScrape).Seconds() + ahead.Seconds() - 4)
					}
					value += 10
					point, ok := sums(t, r.scrape(counter(fmt.Sprint(value))+process(start)), "vllm.prompt_tokens")["0"]
					require.True(t, ok, "scrape %d", i)
					require.Less(t, point.StartTimestamp(), point.Timestamp(), "scrape %d", i)
					seen.read(point)
				}
				assert.InDelta(t, 190+after+10*279, seen.total, 0)
				assert.Zero(t, countLogged(r, "Several server processes"))
			})
		}
	}
}

// The clock of a server is set right, and the process restarts: its start goes back.
func TestARestartAfterTheClockOfTheServerWasSetRight(t *testing.T) {
	for _, ahead := range []time.Duration{time.Hour, -time.Hour} {
		r := newRig(t)
		r.ahead = ahead
		start := unix((ahead - 10*time.Minute).Seconds())
		r.scrape(counter("100") + process(start))
		r.ahead = 0
		point, ok := sums(t, r.scrape(counter("110")+process(start)), "vllm.prompt_tokens")["0"]
		require.True(t, ok, "the clock is set right and the process is the same")
		began := point.StartTimestamp()
		point, ok = sums(t, r.scrape(counter("6000")+process(unix(20))), "vllm.prompt_tokens")["0"]
		require.True(t, ok)
		assert.Greater(t, point.StartTimestamp(), began)
		assert.Zero(t, countLogged(r, "Several server processes"))
	}
}

// Where the start of a process is computed from the time of boot, it moves with the
// clock of the machine. The process is the same.
func TestAStartThatMovesWithTheClockIsTheSameProcess(t *testing.T) {
	for _, ahead := range []time.Duration{time.Hour, -time.Hour, 3 * time.Minute} {
		r := newRig(t)
		seen := delta{}
		for i := range 40 {
			if i == 20 {
				r.ahead = ahead
			}
			point, ok := sums(t, r.scrape(counter(fmt.Sprint(1000+10*i))+process(unix(r.ahead.Seconds()-7200))), "vllm.prompt_tokens")["0"]
			require.True(t, ok, "scrape %d", i)
			seen.read(point)
		}
		assert.InDelta(t, 390, seen.total, 0)
	}
}

// A machine whose clock begins again at each boot gives each process the same start.
func TestARebootOfAServerWhoseClockIsNeverSet(t *testing.T) {
	r := newRig(t)
	start := fmt.Sprint(30)
	r.ahead = sinceEpoch + 2*time.Hour
	r.scrape(counter("6000") + process(start))
	seen := delta{}
	seen.read(sums(t, r.scrape(counter("6010")+process(start)), "vllm.prompt_tokens")["0"])
	r.ahead = -r.now.Sub(time.Unix(40, 0))
	point, ok := sums(t, r.scrape(counter("100")+process(start)), "vllm.prompt_tokens")["0"]
	require.True(t, ok)
	seen.read(point)
	assert.InDelta(t, 100, seen.total, 0)
}

// Two replicas behind one address have clocks that are wrong in different ways. No
// increase is reported, however their starts compare by their own clocks.
func TestReplicasWhoseClocksAreWrongReportNoIncrease(t *testing.T) {
	for _, clocks := range [][2]time.Duration{
		{-time.Hour, time.Hour},
		{time.Hour, -time.Hour},
		{0, -2 * time.Hour},
		{2 * time.Hour, 0},
		{sinceEpoch + 4*time.Hour, 0},
		{time.Hour, time.Hour},
	} {
		for _, ages := range [][2]float64{{7200, 3600}, {3600, 7200}, {700, 600}} {
			for _, values := range [][2]string{{"100", "6000"}, {"6000", "100"}} {
				r := newRig(t)
				seen := increase{}
				for i := range 40 {
					r.ahead = clocks[i%2]
					out := r.scrape(counter(values[i%2]) + process(unix(r.ahead.Seconds()-ages[i%2])))
					assert.Equal(t, []string{"gauge vllm.up"}, upOnly(out), "scrape %d", i)
					seen.read(t, out)
				}
				assert.InDelta(t, 0, seen.total, 0, "%v %v %v", clocks, ages, values)
				assert.Equal(t, 1, countLogged(r, "Several server processes"), "%v %v %v", clocks, ages, values)
			}
		}
	}
}

// A Date that is missing or nonsense is not used: the clocks are taken to be equal.
func TestAMalformedDateIsIgnored(t *testing.T) {
	for _, date := range []string{"", "yesterday", "Mon, 01 Jan 0001 00:00:00 GMT", "Fri, 31 Dec 9999 23:59:59 GMT"} {
		r := newRig(t)
		r.without = true
		for i := range 3 {
			r.mu.Lock()
			r.always = date
			r.mu.Unlock()
			point, ok := sums(t, r.scrape(counter(fmt.Sprint(100+i))+process(unix(-7200))), "vllm.prompt_tokens")["0"]
			require.True(t, ok, date)
			assert.InDelta(t, -7200, seconds(point.StartTimestamp()), 0.001, date)
		}
		assert.Empty(t, sums(t, r.scrape(counter("99")+process(unix(-9000))), "vllm.prompt_tokens"), "another replica")
	}
}
