package defectlog

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
)

var begin = time.Date(2027, time.January, 1, 0, 0, 0, 0, time.UTC)

func TestServersOfOneVersionShareALine(t *testing.T) {
	core, logs := observer.New(zap.DebugLevel)
	l := New(zap.New(core), 15*time.Second)
	at := begin
	old := &catalog.Server{Version: "0.9.2", Metrics: []string{"vllm.num_requests.running"}}
	newer := &catalog.Server{Version: "0.20.0", Metrics: []string{"vllm.num_requests.running"}}
	for range 3 {
		for i := range 1000 {
			l.Add(at, fmt.Sprintf("vllm-%d:8000", i), newer)
			at = at.Add(time.Millisecond)
		}
		l.Add(at, "old:8000", old)
		l.Flush(at)
	}
	assert.Empty(t, logs.All())
	l.Flush(begin.Add(15 * time.Second))
	lines := logs.All()
	require.Len(t, lines, 2)
	assert.Contains(t, lines[0].Message, "these 1000 servers send")
	assert.Len(t, lines[0].ContextMap()["targets"], maxTargets)
	assert.EqualValues(t, 1000-maxTargets, lines[0].ContextMap()["more"])
	assert.Equal(t, []any{"old:8000"}, lines[1].ContextMap()["targets"])
	assert.Contains(t, lines[1].Message, "this server sends")
	l.Flush(begin.Add(time.Hour))
	assert.Len(t, logs.All(), 2)

	// A target that discovery removed and found again was logged already.
	l.Add(at, "vllm-3:8000", newer)
	l.Close()
	assert.Len(t, logs.All(), 2)
}

// Targets come and go for months.
func TestTheMemoryOfTheLogIsBounded(t *testing.T) {
	core, logs := observer.New(zap.DebugLevel)
	l := New(zap.New(core), time.Hour)
	for i := range 5 * maxSeen {
		l.Add(begin, fmt.Sprintf("pod-%d:8000", i), &catalog.Server{
			Version: fmt.Sprintf("0.9.%d", i%1000), Metrics: []string{"vllm.num_requests.running"},
		})
		require.LessOrEqual(t, len(l.seen.newer)+len(l.seen.former), 2*maxSeen)
		require.LessOrEqual(t, len(l.waiting), maxLines)
	}
	assert.True(t, l.Logged(fmt.Sprintf("pod-%d:8000", 5*maxSeen-1), "0.9.999"))
	assert.False(t, l.Logged("pod-0:8000", "0.9.0"))
	logs.TakeAll()
	l.Close()
	assert.LessOrEqual(t, logs.Len(), maxLines)
}

func TestServersWithoutDefectsAreNotLogged(t *testing.T) {
	core, logs := observer.New(zap.DebugLevel)
	l := New(zap.New(core), 0)
	assert.False(t, l.Add(begin, "a:8000", &catalog.Server{Version: "0.20.0", Metrics: []string{"http_requests"}}))
	l.Close()
	assert.Empty(t, logs.All())
	for _, c := range []struct {
		line line
		want string
	}{
		{line{version: "0.9.2", released: true, count: 1, sure: []catalog.DefectID{"a"}}, "vLLM 0.9.2 has 1 known defect in metrics that this server sends; see "},
		{line{version: "0.9.2", released: true, count: 2, sure: []catalog.DefectID{"a", "b"}, possible: []catalog.DefectID{"c"}}, "vLLM 0.9.2 has 2 known defects in metrics that these 2 servers send, and 1 more with some models, requests or deployments; see "},
		{line{count: 1, possible: []catalog.DefectID{"c"}}, "vLLM of an unknown version can have 1 known defect in metrics that this server sends, but only with some models, requests or deployments; see "},
	} {
		assert.Equal(t, c.want+catalog.DefectsPage, c.line.message())
	}
}

// A hostile server chooses its version and, with other receivers, its name.
func TestALineIsOneLineOfALimitedSize(t *testing.T) {
	core, logs := observer.New(zap.DebugLevel)
	l := New(zap.New(core), 0)
	for i := range 100 {
		l.Add(begin, fmt.Sprintf("%d\n", i)+strings.Repeat("é", 10000), &catalog.Server{
			Version: "0.9.2\n2027-01-01 error" + strings.Repeat("x", 10000), Metrics: []string{"vllm.num_requests.running"},
		})
	}
	l.Close()
	require.Len(t, logs.All(), 1)
	line := logs.All()[0]
	text := fmt.Sprint(line.Message, line.ContextMap())
	assert.NotContains(t, text, "\n")
	assert.NotContains(t, text, "\uFFFD")
	assert.Less(t, len(text), 10000)
	assert.Contains(t, line.Message, "vLLM 0.9.2?2027-01-01 errorxxxxx")
}

// A version that is not a release, or that is older than what the server sends, says nothing:
// its defects are only possible.
func TestAVersionThatCannotBeTrueCanHaveDefects(t *testing.T) {
	for version, want := range map[string]string{
		"":                         "vLLM of an unknown version can have ",
		"main":                     "vLLM with the version main, which is not a release number, can have ",
		"v":                        "vLLM with the version v, which is not a release number, can have ",
		"0.99999999999999999999.1": "vLLM with the version 0.99999999999999999999.1, which is not a release number, can have ",
		"0.1.dev1+g1234":           "vLLM with the version 0.1.dev1+g1234, which is older than metrics that it sends, can have ",
		"\x1b[31m":                 "vLLM with the version ?[31m, which is not a release number, can have ",
		"0.20.0":                   "vLLM 0.20.0 has ",
		"0.20.1rc1.dev3":           "vLLM 0.20.1rc1.dev3 has ",
	} {
		core, logs := observer.New(zap.InfoLevel)
		l := New(zap.New(core), 0)
		// The second metric exists since 0.7.
		require.True(t, l.Add(begin, "vllm-0:8000", &catalog.Server{Version: version, Metrics: []string{"vllm.num_requests.running", "vllm.prefix_cache.queries"}}), version)
		l.Close()
		require.Len(t, logs.All(), 1)
		assert.Nil(t, logs.All()[0].ContextMap()["defects"], "the line is short for those on call; the level debug has the names")
		assert.True(t, strings.HasPrefix(logs.All()[0].Message, want), "%q: %s", version, logs.All()[0].Message)
	}
}

// What clients of a processor send is not known: each of these servers has its own version.
func TestManyVersionsDoNotFillTheLog(t *testing.T) {
	core, logs := observer.New(zap.DebugLevel)
	l := New(zap.New(core), 15*time.Second)
	at := begin
	add := func(i int) {
		l.Add(at, fmt.Sprintf("vllm-%d:8000", i), &catalog.Server{Version: fmt.Sprintf("0.9.%d", i), Metrics: []string{"vllm.num_requests.running"}})
		l.Flush(at)
	}
	// 30 minutes.
	for i := range 9000 {
		add(i)
		at = at.Add(200 * time.Millisecond)
	}
	lines := logs.TakeAll()
	require.Len(t, lines, maxLinesAnHour+1)
	// The first line was written when 50 waited, after 10 s.
	assert.Equal(t, "The limit of 100 lines an hour about known defects of vLLM servers is reached: until 2027-01-01T01:00:10Z, further servers are counted but not logged; see "+catalog.DefectsPage,
		lines[maxLinesAnHour].Message)

	// An hour after the first line, there is room again.
	at = begin.Add(61 * time.Minute)
	add(9000)
	at = at.Add(15 * time.Second)
	add(9001)
	lines = logs.TakeAll()
	require.NotEmpty(t, lines)
	assert.Contains(t, lines[0].Message, fmt.Sprintf(" (%d servers before were only counted)", 9000-maxLinesAnHour-maxLines))
	assert.Equal(t, "vllm-9001:8000", lines[len(lines)-1].ContextMap()["targets"].([]any)[0])
	for _, line := range lines[1:] {
		assert.NotContains(t, line.Message, "only counted")
	}
}

// The bound is in bytes: what waits keeps no long text of a server.
func TestALineThatWaitsKeepsNoLongText(t *testing.T) {
	l := New(zap.NewNop(), time.Hour)
	for i := range 200 {
		l.Add(begin, strings.Repeat("t", 1<<20), &catalog.Server{Version: fmt.Sprintf("0.9.%d", i) + strings.Repeat("x", 1<<20), Metrics: []string{"vllm.num_requests.running"}})
	}
	size := 0
	for _, line := range l.waiting {
		size += len(line.version)
		for _, target := range line.targets {
			size += len(target)
		}
	}
	assert.Less(t, size, maxLines*(maxTargets*(maxTarget+3)+maxVersion+3))
}

// The scrapes of a receiver run at the same time. Each server is in one line, once.
func TestServersAreAddedAtTheSameTime(t *testing.T) {
	core, logs := observer.New(zap.DebugLevel)
	l := New(zap.New(core), 15*time.Second)
	var group sync.WaitGroup
	// All read one clock. With a clock each, a worker that is ahead writes the lines of those
	// behind it at once, and the budget of the hour can end.
	var clock atomic.Int64
	for worker := range 8 {
		group.Go(func() {
			// Half of the servers are those of another worker, too.
			for i := range 500 {
				at := begin.Add(time.Duration(clock.Add(int64(12 * time.Millisecond))))
				l.Add(at, fmt.Sprintf("vllm-%d:8000", 250*worker+i), &catalog.Server{
					Version: fmt.Sprintf("0.9.%d", i%2), Metrics: []string{"vllm.num_requests.running"},
				})
				l.Flush(at)
			}
		})
	}
	group.Wait()
	l.Close()
	servers := 0
	for _, line := range logs.All() {
		servers += len(line.ContextMap()["targets"].([]any))
		if more, has := line.ContextMap()["more"]; has {
			servers += int(more.(int64))
		}
	}
	assert.Equal(t, 8*250+250, servers)
}
