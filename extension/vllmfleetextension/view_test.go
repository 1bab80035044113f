package vllmfleetextension

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-vllm/otelcol-vllm/internal/fleet"
)

func neverRead(e *fleet.Engine) { e.Read = false }

// One of three servers is in some state, and the others serve.
func TestWhichServersAreUnfit(t *testing.T) {
	for name, tc := range map[string]struct {
		is                fleet.Engine
		routing, liveness string
	}{
		"healthy":                                {says("a", "healthy"), "200 serving", "200 serving"},
		"idle":                                   {says("a", "idle"), "200 serving", "200 serving"},
		"stalled":                                {says("a", "stalled"), "503 stalled", "503 stalled"},
		"failing":                                {says("a", "failing"), "503 failing", "200 failing"},
		"unreachable":                            {says("a", "unreachable"), "503 unreachable", "200 unreachable"},
		"unreachable just":                       {says("a", "unreachable", func(e *fleet.Engine) { e.Since = noon.Add(-29 * time.Second) }), "200 doubtful", "200 doubtful"},
		"reachable again":                        {says("a", "unreachable", func(e *fleet.Engine) { e.Failure = "" }), "200 doubtful", "200 doubtful"},
		"never read":                             {says("a", "unreachable", neverRead), "200 unread", "200 unread"},
		"never read, and stalled by its gateway": {says("a", "stalled", neverRead), "200 unread", "200 unread"},
		"starting":                               {says("a", "starting", neverRead), "200 starting", "200 starting"},
		"starting again":                         {says("a", "starting"), "200 starting", "200 starting"},
		"degraded":                               {says("a", "degraded"), "200 slow", "200 slow"},
		"critical":                               {says("a", "critical"), "200 slow", "200 slow"},
		"not known yet":                          {says("a", "unknown", func(e *fleet.Engine) { e.Severity = 2 }), "200 undecided", "200 undecided"},
		"asleep":                                 {says("a", "asleep"), "200 asleep", "200 asleep"},
		"draining":                               {says("a", "draining"), "200 draining", "200 draining"},
		"warned of":                              {says("a", "degraded", func(e *fleet.Engine) { e.Severity = 1 }), "200 serving", "200 serving"},
		"of an old restart":                      {says("a", "stalled", func(e *fleet.Engine) { e.Resumed = true }), "200 resumed", "200 resumed"},
		"stalled, 30 s ago":                      {says("a", "stalled", func(e *fleet.Engine) { e.Arrived = noon.Add(-30 * time.Second) }), "503 stalled", "503 stalled"},
		"stalled, 31 s ago":                      {says("a", "stalled", func(e *fleet.Engine) { e.Arrived = noon.Add(-31 * time.Second) }), "200 old", "200 old"},
		"old data just sent":                     {says("a", "stalled", func(e *fleet.Engine) { e.At = noon.Add(-61 * time.Second) }), "200 old", "200 old"},
		"a clock behind":                         {says("a", "stalled", func(e *fleet.Engine) { e.At = noon.Add(-59 * time.Second) }), "503 stalled", "503 stalled"},
		"a clock ahead":                          {says("a", "stalled", func(e *fleet.Engine) { e.At = noon.Add(time.Hour) }), "503 stalled", "503 stalled"},
		// The window is a minute.
		"no interval, 2 min ago": {says("a", "stalled", func(e *fleet.Engine) {
			e.Interval, e.Arrived, e.At = 0, noon.Add(-2*time.Minute), noon.Add(-2*time.Minute)
		}), "503 stalled", "503 stalled"},
		"no interval, 3 min ago": {says("a", "stalled", func(e *fleet.Engine) { e.Interval, e.Arrived = 0, noon.Add(-3*time.Minute) }), "200 old", "200 old"},
	} {
		t.Run(name, func(t *testing.T) {
			a := ask(t, tc.is, says("b", "healthy"), says("c", "healthy"))
			assert.Equal(t, tc.routing, a.probe("/a"))
			assert.Equal(t, tc.routing, a.probe("/a?for=routing"))
			assert.Equal(t, tc.liveness, a.probe("/a?for=liveness"))
			assert.Equal(t, "200 serving", a.probe("/b"))
		})
	}
}

// A server is as its worst engine, and a restart is advised only where all have stalled.
func TestAServerWithSeveralEngines(t *testing.T) {
	second := func(condition string, change ...func(*fleet.Engine)) fleet.Engine {
		return says("a", condition, append(change, func(e *fleet.Engine) { e.Key, e.Engine = "second", "1" })...)
	}
	a := ask(t, says("a", "critical"), second("stalled"))
	assert.Equal(t, "503 stalled", a.probe("/a"))
	assert.Equal(t, "200 stalled", a.probe("/a?for=liveness"))
	assert.Contains(t, a.get("/probe/a").Body.String(), `"condition":"stalled"`, "that of the engine that is the reason")

	a = ask(t, says("a", "stalled"), second("stalled"))
	assert.Equal(t, "503 stalled", a.probe("/a?for=liveness"))

	a = ask(t, says("a", "stalled"), second("stalled", func(e *fleet.Engine) { e.Arrived = noon.Add(-time.Hour) }))
	assert.Equal(t, "200 stalled", a.probe("/a?for=liveness"), "of one it is not known now")
}

// some returns so many servers of which the first have a condition, each for a second longer than the one before.
func some(n, first int, condition string) (engines []fleet.Engine) {
	for i := range n {
		e := says(strconv.Itoa(i), "healthy")
		if i < first {
			e = says(strconv.Itoa(i), condition)
			e.Since = e.Since.Add(-time.Duration(i) * time.Second)
		}
		engines = append(engines, e)
	}
	return engines
}

// refused are the servers that probes for routing refuse, in the order of their numbers.
func (a *asked) refused() (names []string) {
	for _, s := range a.view().servers {
		if s.refused {
			names = append(names, s.engines[0].Server)
		}
	}
	return names
}

func TestAtMostAShareOfAPoolIsUnfit(t *testing.T) {
	for _, tc := range []struct {
		servers, stalled, refused int
		share                     float64
	}{
		{1, 1, 1, 0.3},
		{2, 2, 1, 0.3},
		{3, 3, 1, 0.3},
		{6, 6, 1, 0.3},
		{7, 7, 2, 0.3},
		{10, 10, 3, 0.3},
		{10, 2, 2, 0.3},
		{100, 100, 29, 0.29},
		{10, 10, 0, 0},
		{10, 10, 10, 1},
		{10, 10, 1, 0.001},
	} {
		t.Run(fmt.Sprint(tc), func(t *testing.T) {
			a := ask(t, some(tc.servers, tc.stalled, "stalled")...)
			a.config.UnfitShare = tc.share
			assert.Len(t, a.refused(), tc.refused)
			if tc.stalled > tc.refused {
				assert.Equal(t, "200 limited", a.probe("/0"), "the one for the shortest time")
				assert.Equal(t, "200 limited", a.probe("/0?for=liveness"))
			}
			if tc.refused > 0 {
				assert.Equal(t, "503 stalled", a.probe(fmt.Sprint("/", tc.stalled-1)), "the one for the longest")
			}
		})
	}
}

// Pools are the servers of one model and namespace: one that has stalled does not use up the share of another.
func TestTheShareIsOfEachPool(t *testing.T) {
	elsewhere := func(name string, change func(*fleet.Engine)) fleet.Engine { return says(name, "stalled", change) }
	a := ask(
		t, says("a", "stalled"), says("b", "stalled"),
		elsewhere("model", func(e *fleet.Engine) { e.Model = "other" }),
		elsewhere("namespace", func(e *fleet.Engine) { e.Namespace = "other" }),
		elsewhere("cluster", func(e *fleet.Engine) { e.Cluster = "other" }),
	)
	assert.ElementsMatch(t, []string{"a", "model", "namespace", "cluster"}, a.refused())
}

// A server is of the pool of its model: also where a processor knows none, or one that the server had before a restart.
func TestThePoolOfAServerWithAnotherModelBefore(t *testing.T) {
	for name, change := range map[string]func(*fleet.Engine){
		"before": func(e *fleet.Engine) { e.Model, e.Arrived = "before", noon.Add(-time.Hour) },
		"none":   func(e *fleet.Engine) { e.Model = "" },
	} {
		engines := some(3, 3, "stalled")
		for n := range engines {
			engines = append(engines, says(fmt.Sprint(n), "stalled", change))
		}
		for range 3 {
			engines = append(engines[1:], engines[0]) // Whichever is told first.
			assert.Len(t, ask(t, engines...).refused(), 1, name)
		}
	}
	// Nor does what it said before its restart count.
	a := ask(t, says("a", "healthy"), says("a", "stalled", func(e *fleet.Engine) { e.Arrived = noon.Add(-time.Hour) }))
	assert.Equal(t, "200 serving", a.probe("/a"))
}

// Servers that have left do not raise the share of those that are there, and do not count as lost.
func TestServersThatHaveLeft(t *testing.T) {
	engines := some(10, 3, "stalled")
	for n := 3; n < 10; n++ {
		engines[n] = says(fmt.Sprint(n), "unreachable", func(e *fleet.Engine) { e.Arrived = noon.Add(-time.Hour) })
	}
	a := ask(t, engines...)
	assert.Equal(t, []string{"2"}, a.refused(), "one of three")
	assert.False(t, a.view().suspect)
}

// A server that one processor cannot read, and another can, is not unreachable.
func TestAServerThatAnotherProcessorReads(t *testing.T) {
	a := ask(t, says("a", "unreachable"), says("b", "healthy"), says("c", "healthy"))
	assert.Equal(t, "503 unreachable", a.probe("/a"))
	a.Join("vllm/two", &source{engines: []fleet.Engine{says("a", "healthy")}})
	a.clock = a.clock.Add(fresh)
	assert.Equal(t, "200 doubtful", a.probe("/a"))
}

// A processor that is in two pipelines is two that have one name.
func TestAProcessorInTwoPipelines(t *testing.T) {
	a := ask(t, says("a", "stalled"), says("c", "healthy"))
	_, leave := a.Join("vllm", &source{engines: []fleet.Engine{says("b", "critical")}})
	assert.Equal(t, "503 stalled", a.probe("/a"))
	assert.Equal(t, "200 slow", a.probe("/b"))
	leave()
	a.clock = a.clock.Add(fresh)
	assert.Equal(t, "503 stalled", a.probe("/a"))
	assert.Equal(t, "200 unknown", a.probe("/b"))
	_, leave = a.Join("vllm", &source{engines: []fleet.Engine{says("b", "critical")}})
	a.leave() // In any order.
	a.clock = a.clock.Add(fresh)
	assert.Equal(t, "200 slow", a.probe("/b"))
	assert.Equal(t, "200 unknown", a.probe("/a"))
	leave()
}

// The share does not move from one server to another: a server that is refused stays so until it is fit.
func TestTheShareStaysWhereItIs(t *testing.T) {
	a := ask(t, some(3, 1, "stalled")...)
	assert.Equal(t, []string{"0"}, a.refused())
	engines := some(3, 3, "stalled")
	a.set(engines...)
	a.clock = a.clock.Add(fresh)
	assert.Equal(t, []string{"0"}, a.refused())
	engines[0] = says("0", "healthy")
	a.set(engines...)
	a.clock = a.clock.Add(fresh)
	assert.Equal(t, []string{"2"}, a.refused(), "the one for the longest")
}

// Where most servers vanish, the collector suspects itself. It cannot know whether a server or its own network is the
// reason where only that one is there.
func TestTheCollectorSuspectsItself(t *testing.T) {
	for _, tc := range []struct {
		servers, lost, refused int
		suspect                bool
	}{{1, 1, 0, true}, {2, 1, 1, false}, {2, 2, 0, true}, {3, 1, 1, false}, {3, 2, 0, true}, {10, 5, 3, false}, {10, 6, 0, true}, {10, 10, 0, true}} {
		t.Run(fmt.Sprint(tc), func(t *testing.T) {
			a := ask(t, some(tc.servers, tc.lost, "unreachable")...)
			assert.Len(t, a.refused(), tc.refused)
			assert.Equal(t, tc.suspect, a.view().suspect)
			want := "503 unreachable"
			if tc.suspect {
				want = "200 suspect"
			}
			assert.Equal(t, want, a.probe(fmt.Sprint("/", tc.lost-1)))
		})
	}
	// One pool has vanished, and the others are there: its network may be another.
	engines := some(10, 0, "")
	for _, name := range []string{"x", "y"} {
		engines = append(engines, says(name, "unreachable", func(e *fleet.Engine) { e.Model = "other" }))
	}
	a := ask(t, engines...)
	assert.False(t, a.view().suspect)
	assert.Equal(t, "200 suspect", a.probe("/x"))

	// Most servers of all pools have vanished, if not of this one.
	engines = some(10, 3, "unreachable")
	for n := range 10 {
		engines = append(engines, says(fmt.Sprint("x", n), "unreachable", func(e *fleet.Engine) { e.Model = "other" }))
	}
	a = ask(t, engines...)
	assert.Empty(t, a.refused())

	// The scrapes of the others have just begun to fail: the one that was lost first is not the reason.
	engines = some(3, 1, "unreachable")
	for n := range engines {
		engines[n].Failure = "timeout"
	}
	a = ask(t, engines...)
	assert.Equal(t, "200 suspect", a.probe("/0"))

	// Servers that were never read, or that nobody hears of, do not count as those that are there.
	engines = some(10, 2, "unreachable")
	for n := range engines[4:] {
		engines[4+n].Arrived = noon.Add(-time.Hour)
	}
	a = ask(t, engines...)
	a.config.UnfitShare = 0.5
	assert.Len(t, a.refused(), 2, "two of four")
	engines[2].Read = false
	a = ask(t, engines...)
	assert.Equal(t, "200 suspect", a.probe("/0"), "two of three")

	engines = append(some(6, 2, "unreachable"), some(5, 5, "starting")...)
	for n := range engines[6:] {
		e := &engines[6+n]
		e.Resource, e.Read, e.Failure = "starts"+e.Server, false, "refused"
	}
	a = ask(t, engines...)
	assert.Len(t, a.refused(), 2, "two of six")

	// A stall is not because of the network.
	engines = some(10, 6, "unreachable")
	engines[9] = says("9", "stalled")
	a = ask(t, engines...)
	assert.Equal(t, []string{"9"}, a.refused())
}

// A server that two processors know is one server, and two servers with one name are two.
func TestServersOfSeveralProcessors(t *testing.T) {
	a := ask(t, says("a", "healthy"), says("b", "healthy"))
	other := &source{engines: []fleet.Engine{says("a", "stalled", func(e *fleet.Engine) { e.Key = "of two" })}}
	_, leave := a.Join("vllm/two", other)
	assert.Equal(t, "503 stalled", a.probe("/a"), "the worst counts")
	assert.Equal(t, "200 stalled", a.probe("/a?for=liveness"), "and for a restart the best")
	assert.Len(t, a.view().servers, 2)
	assert.Len(t, a.view().fleet().Engines, 3)

	leave()
	a.clock = a.clock.Add(fresh)
	assert.Equal(t, "200 serving", a.probe("/a"), "a processor that leaves takes with it what it knows")

	other.set(says("a", "stalled", func(e *fleet.Engine) { e.Resource, e.Pod, e.Namespace = "a double", "pod-1", "ns" }))
	a.Join("vllm/two", other)
	a.clock = a.clock.Add(fresh)
	assert.Equal(t, "200 ambiguous", a.probe("/a"))
	assert.Equal(t, "503 stalled", a.probe("/ns/pod-1"))
	other.set(says("a", "stalled", func(e *fleet.Engine) { e.Resource, e.Arrived = "a double", noon.Add(-time.Hour) }))
	a.clock = a.clock.Add(fresh)
	assert.Equal(t, "200 serving", a.probe("/a"), "it was replaced under its name")
}

// The collector loses its network for 90 s: the scrapes of ten servers are spread over an interval of 15 s, each fails by a
// timeout that is as long, a server is unreachable with its second failure, and reachable with its second success. No moment
// takes one of them out. Where only three are lost, they are taken out two intervals after their first failure.
func TestACollectorThatLosesItsNetwork(t *testing.T) {
	const interval, servers, back = 15 * time.Second, 10, 90 * time.Second
	for _, lost := range []int{servers, 3} {
		a := ask(t)
		out := map[string][]time.Duration{}
		for now := time.Duration(0); now < 3*time.Minute; now += fresh {
			a.clock = noon.Add(now)
			var engines []fleet.Engine
			for n := range servers {
				first := time.Duration(n) * interval / servers
				engines = append(engines, says(strconv.Itoa(n), "healthy", func(e *fleet.Engine) {
					e.At, e.Arrived = a.clock, a.clock
					if n < lost && now >= first+interval && now < first+back {
						e.Failure = "timeout"
					}
					if n < lost && now >= first+2*interval && now < first+back+interval {
						e.Condition, e.Severity, e.Since = "unreachable", 3, noon.Add(first)
					}
				}))
			}
			a.set(engines...)
			for _, name := range a.refused() {
				if len(out[name]) == 0 {
					out[name] = []time.Duration{now, 0}
				}
				out[name][1] = now
			}
		}
		if lost == servers {
			assert.Empty(t, out)
			continue
		}
		// A server has its turn every 1.5 s, and a view is taken each second.
		assert.Equal(t, map[string][]time.Duration{
			"0": {2 * interval, back - time.Second},
			"1": {2*interval + 2*time.Second, back + time.Second},
			"2": {2*interval + 3*time.Second, back + 2*time.Second},
		}, out)
	}
}
