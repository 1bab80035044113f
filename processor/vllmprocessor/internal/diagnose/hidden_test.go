package diagnose

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
)

// connected is a server that works on so many requests, and has so many open files.
func connected(requests, files float64) []scraped { return withFiles(serves("0"), requests, files) }

// hangs is one whose gauges show so many requests and which does nothing, with so many open files.
func hangs(requests, files float64) []scraped { return withFiles(rests("0"), requests, files) }

func withFiles(engine scraped, requests, files float64) []scraped {
	engine.gauges[input.Running] = requests
	server := answers(1)
	server.gauges[input.OpenFiles] = files
	return []scraped{server, engine}
}

// follow lets a server work whose open files are what they are by its requests.
func follow(t *testing.T, files func(requests float64) float64) *rig {
	t.Helper()
	r := newRig(t)
	r.follow(files)
	return r
}

func (r *rig) follow(files func(requests float64) float64) {
	random := rand.New(rand.NewPCG(1, 1))
	for range 60 {
		n := float64(random.IntN(9))
		r.scrape(connected(n, files(n))...)
	}
	r.scrape(connected(0, files(0))...)
}

// stay is several scrapes of an engine that does nothing and whose gauges show no request.
func (r *rig) stay(scrapes int, files float64) {
	for range scrapes {
		r.scrape(hangs(0, files)...)
	}
}

func perRequest(n float64) float64 { return 35 + n }

// A hang that begins without requests leaves the gauges at 0. The open files show who waits.
func TestAHangIsSeenByOpenFiles(t *testing.T) {
	t.Parallel()
	r := follow(t, perRequest)
	r.stay(8, 35)
	assert.Equal(t, Idle, r.verdict("0").Condition)
	r.scrape(hangs(0, 38)...)
	r.scrape(hangs(0, 41)...)
	assert.Equal(t, Idle, r.verdict("0").Condition, "half a minute has not passed yet")
	r.scrape(hangs(0, 45)...)
	r.scrape(hangs(0, 47)...)
	assert.Equal(t, Stalled, r.verdict("0").Condition)
	for n := range 8 {
		r.scrape(connected(float64(8-n), float64(43-n))...)
	}
	assert.NotEqual(t, Stalled, r.verdict("0").Condition)
}

// With few or short requests the files hardly change while it works. As many more as requests would have come are
// requests; connections that are opened ahead are fewer.
func TestAHangIsSeenByOpenFilesThatWereSteady(t *testing.T) {
	t.Parallel()
	quiet := func() *rig { // One request a second: half of those of a minute are 30.
		r := newRig(t)
		for n := range 60 {
			r.scrape(connected(float64(n%2), 35+float64(n%2))...)
		}
		r.scrape(connected(0, 35)...)
		return r
	}
	r := quiet()
	r.stay(2, 35)
	for n := range 6 {
		r.scrape(hangs(0, 36+15*float64(n))...)
	}
	assert.Equal(t, Stalled, r.verdict("0").Condition)
	r.stay(40, 60)
	assert.Equal(t, Stalled, r.verdict("0").Condition, "clients that give up leave no more than some")
	r.stay(10, 35)
	assert.NotEqual(t, Stalled, r.verdict("0").Condition, "nobody is there any more")

	for name, files := range map[string]func(n int) float64{
		"its traffic stops":            func(int) float64 { return 35 },
		"connections are opened ahead": func(int) float64 { return 35 + 20 },
	} {
		r := quiet()
		r.stay(2, 35)
		for n := range 40 {
			r.scrape(hangs(0, files(n))...)
		}
		assert.Equal(t, Idle, r.verdict("0").Condition, name)
	}
}

// A server that counts its requests itself needs no open files.
func TestAHangIsSeenByWhatTheServerCounts(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	scrape := func(load float64, engine scraped) {
		a := answers(1)
		a.gauges[input.ServerLoad] = load
		r.scrape(a, engine)
	}
	for range 20 {
		scrape(2, serves("0"))
	}
	for range 8 {
		scrape(0, rests("0"))
	}
	assert.Equal(t, Idle, r.verdict("0").Condition)
	scrape(1, rests("0"))
	scrape(0, rests("0"))
	scrape(1, rests("0"))
	scrape(2, rests("0"))
	assert.Equal(t, Idle, r.verdict("0").Condition, "half a minute has not passed yet")
	scrape(3, rests("0"))
	assert.Equal(t, Stalled, r.verdict("0").Condition)
}

// Where they say nothing about requests, they are not believed.
func TestOpenFilesThatDoNotFollowRequestsSayNothing(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(2, 2))
	for name, files := range map[string]func(float64) float64{
		"clients keep their connections": func(float64) float64 { return 60 },
		"half of them do":                func(n float64) float64 { return 60 + n/2 },
		"by chance":                      func(float64) float64 { return 40 + float64(random.IntN(12)) },
	} {
		r := follow(t, files)
		for n := range 20 {
			r.scrape(hangs(0, 60+float64(n))...)
		}
		assert.Equal(t, Idle, r.verdict("0").Condition, name)
	}
	for name, next := range map[string]func(n int) float64{
		"four are too few":                    func(int) float64 { return 39 },
		"a leak of three in a minute is slow": func(n int) float64 { return 35 + float64(n/16) },
		"it closes them":                      func(n int) float64 { return 35 + float64(max(0, 8-8*n)) },
	} {
		r := follow(t, perRequest)
		for n := range 200 {
			r.scrape(hangs(0, next(n))...)
		}
		assert.Equal(t, Idle, r.verdict("0").Condition, name)
	}
}

// Files that are open for other reasons from some time on are no requests once the engine works again.
func TestWhatIsOpenWhileItWorksIsNotHidden(t *testing.T) {
	t.Parallel()
	var h hidden
	at := int64(time.Hour)
	see := func(requests, files float64, moved bool) float64 {
		at += int64(15 * time.Second)
		r := reading{runningNow: requests, fromServer: fromServer{files: files}}
		r.At = at
		return h.observe(&r, moved, 0)
	}
	for n := range 50 {
		assert.Zero(t, see(float64(n%8), 35+float64(n%8), true))
	}
	assert.Zero(t, see(0, 35, true))
	assert.InDelta(t, 10, see(0, 45, false), 0.3)
	assert.Zero(t, see(0, 45, true), "it has finished something")
	assert.Zero(t, see(0, 45, false))
	assert.InDelta(t, 6, see(0, 51, false), 0.3)
	assert.InDelta(t, 7, see(3, 58, false)+see(3, 58, true), 6.1)
}
