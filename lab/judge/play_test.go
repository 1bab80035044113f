package judge

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
)

func chatServer(seed uint64, rate float64) engine.Config {
	return engine.Config{
		Seed: seed, Model: engine.Llama8B(), FrontEnd: engine.DefaultFrontEnd(), Workload: engine.Chat(rate), Semantics: Semantics(),
	}
}

func TestASlowServerIsHarmfulWhileItIsSlow(t *testing.T) {
	story := &Story{
		Name: "slow", Servers: []engine.Config{chatServer(1, 5)}, Length: 25 * time.Minute,
		Injections: []Injection{{Parameter: engine.ParamBandwidth, Value: 0.4, At: 600, Until: 1080}},
	}
	played, err := Play(t.Context(), story)
	require.NoError(t, err)
	require.Len(t, played.Lines, 25)
	for i, line := range played.Lines {
		assert.Equal(t, i, line.Minute)
		assert.InDelta(t, 300, line.Requests, 80)
		assert.Equal(t, i >= 10 && i < 18, line.Harmful, "minute %d: %+v", i, line)
		if line.Harmful {
			assert.Equal(t, map[string]float64{"slow_steps": 1}, line.TrueCauses)
		}
	}
	assert.Equal(t, "degraded", played.Lines[15].Condition)
	assert.Equal(t, "slow_steps", played.Lines[15].Causes[0].Name)
	again, err := Play(t.Context(), story)
	require.NoError(t, err)
	assert.Equal(t, played, again)
}

// Each server has its own truth, and one processor sees all of them.
func TestServersShareAProcessor(t *testing.T) {
	story := &Story{
		Name: "two", Servers: []engine.Config{chatServer(1, 5), chatServer(2, 5)}, Length: 16 * time.Minute, Interval: 15 * time.Second,
		Injections: []Injection{{Parameter: engine.ParamBandwidth, Value: 0.3, At: 480, Servers: []int{1}}},
		Processor:  map[string]any{"window": "30s", "pool": map[string]any{"interval": "15s"}},
	}
	played, err := Play(t.Context(), story)
	require.NoError(t, err)
	require.Len(t, played.Lines, 32)
	for i, line := range played.Lines {
		assert.Equal(t, i/2, line.Minute)
		assert.Equal(t, i%2, line.Server)
		assert.Equal(t, line.Server == 1 && line.Minute >= 8, line.Harmful, "%+v", line)
		require.NotNil(t, line.Pool)
	}
	last := played.Lines[31]
	assert.Equal(t, "degraded", last.Condition)
	assert.Equal(t, "degraded", last.Pool.Condition)
	assert.Equal(t, "healthy", played.Lines[30].Condition)
	require.Len(t, played.Alarms, 1)
	assert.Equal(t, 1, played.Alarms[0].Server)
	assert.Equal(t, "slow_steps", played.Alarms[0].Cause)
	// Half a minute of hold would be two windows; the third is for scrapes.
	assert.InDelta(t, 480+60, played.Alarms[0].At, 45)
	again, err := Play(t.Context(), story)
	require.NoError(t, err)
	assert.Equal(t, played, again)
}

// A restart and missing scrapes are no harm, but the processor sees them.
func TestFaultsAreInAllRuns(t *testing.T) {
	played, err := Play(t.Context(), &Story{
		Name: "faults", Servers: []engine.Config{chatServer(3, 5)}, Length: 26 * time.Minute,
		Injections: []Injection{{Parameter: engine.ParamBandwidth, Value: 0.3, At: 1200}},
		Faults: []Fault{
			{Kind: Restart, At: 300, Until: 420}, {Kind: Missed, At: 600, Until: 660}, {Kind: Unreachable, At: 800, Until: 950},
		},
	})
	require.NoError(t, err)
	for _, line := range played.Lines {
		assert.Equal(t, line.Minute >= 20, line.Harmful, "%+v", line)
		switch {
		case line.Minute == 5 || line.Minute == 6:
			assert.Zero(t, line.Requests, "there is no process")
		default:
			assert.Greater(t, line.Requests, 200, "requests of another process are others: %+v", line)
		}
	}
	assert.Equal(t, "unreachable", played.Lines[14].Condition)
	assert.Equal(t, "slow_steps", played.Lines[24].Causes[0].Name)
}

// A server is reported as its worst engine, of several by the first.
func TestTheReportOfAServerIsThatOfItsWorstEngine(t *testing.T) {
	metrics := pmetric.NewMetrics()
	to := metrics.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics()
	point := func(name, engine string, value float64, attributes ...string) {
		m := to.AppendEmpty()
		m.SetName(name)
		p := m.SetEmptyGauge().DataPoints().AppendEmpty()
		p.SetDoubleValue(value)
		p.Attributes().PutStr("engine", engine)
		for i := 0; i < len(attributes); i += 2 {
			p.Attributes().PutStr(attributes[i], attributes[i+1])
		}
	}
	for engine, severity := range map[string]float64{"0": 0, "2": 2, "10": 2} {
		point("vllm.diagnosis.severity", engine, severity)
		point("vllm.diagnosis.condition", engine, 1, "condition", "condition of "+engine)
		point("vllm.diagnosis.condition", engine, 0, "condition", "before")
	}
	point("vllm.diagnosis.cause", "2", 1, "cause", "b", "role", "notice", "detail", "")
	point("vllm.diagnosis.cause", "2", 1, "cause", "c", "role", "contributing", "detail", "")
	point("vllm.diagnosis.cause", "2", 1, "cause", "d", "role", "primary", "detail", "x")
	point("vllm.diagnosis.cause", "2", 0, "cause", "gone", "role", "primary", "detail", "x")
	point("vllm.diagnosis.cause", "10", 1, "cause", "other", "role", "primary", "detail", "")
	assert.Equal(t, report{2, "condition of 2", []Cause{{Name: "d", Role: "primary", Detail: "x"}, {Name: "c", Role: "contributing"}, {Name: "b", Role: "notice"}}},
		readReport(metrics, serverPrefix))
	assert.Equal(t, report{severity: -1}, readReport(pmetric.NewMetrics(), serverPrefix))
}

func TestStoriesThatCannotBePlayedAreRefused(t *testing.T) {
	ok := Story{Servers: []engine.Config{chatServer(1, 1)}, Length: 2 * time.Minute}
	for want, change := range map[string]func(*Story){
		"a story needs a server":                                       func(s *Story) { s.Servers = nil },
		"length 1s is not between 1m and 336h0m0s":                     func(s *Story) { s.Length = time.Second },
		"scrape_interval 1h0m0s is not between 1s and the length 2m0s": func(s *Story) { s.Interval = time.Hour },
		"there is no server 1":                                         func(s *Story) { s.Injections = []Injection{{Servers: []int{1}}} },
		"want at, at + over and until in this order":                   func(s *Story) { s.Injections = []Injection{{At: 30, Until: 20}} },
		"faults must not overlap":                                      func(s *Story) { s.Faults = []Fault{{Missed, 10, 20}, {Missed, 15, 30}} },
		"processor: ":                                                  func(s *Story) { s.Processor = map[string]any{"window": "1"} },
		"no_such_key":                                                  func(s *Story) { s.Processor = map[string]any{"no_such_key": 1} },
		"storage: there is no extension":                               func(s *Story) { s.Processor = map[string]any{"storage": "file_storage"} },
		"workload":                                                     func(s *Story) { s.Servers = []engine.Config{chatServer(1, -1)} },
	} {
		s := ok
		change(&s)
		_, err := Play(t.Context(), &s)
		assert.ErrorContains(t, err, want)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Play(ctx, &ok)
	assert.ErrorIs(t, err, context.Canceled)
}

// What is kept of a day is its lines: requests are forgotten minute by minute, also those
// that the nominal run does not have.
func TestWhatIsKeptDoesNotGrow(t *testing.T) {
	story := &Story{
		Servers: []engine.Config{chatServer(1, 6)}, Length: 2 * time.Hour, Interval: time.Minute,
		Injections: []Injection{{Parameter: engine.ParamArrivalRate, Value: 1.3, At: 60}},
	}
	truth, err := newTruth(story, 0, nil, 60)
	require.NoError(t, err)
	most := 0
	for minute := 1; minute <= 120; minute++ {
		at := float64(minute) * minuteSeconds
		require.NoError(t, truth.advance(at))
		require.NoError(t, truth.advanceOthers(at))
		if minute%10 == 0 {
			truth.forget(at)
			most = max(most, len(truth.join.open))
		}
	}
	assert.Less(t, most, 100, "no more than what is under way")
	assert.InDelta(t, 6*60, truth.join.at(60).in[actual].requests, 80, "the nominal stream")
}

// What a request takes at the end of a story is what it takes where the story goes on.
func TestTheEndOfAStoryIsJudgedAsItsMiddle(t *testing.T) {
	for name, of := range map[string]struct {
		cfg       engine.Config
		injection Injection
		objective string
	}{
		"a queue that grows": {overloaded(6), Injection{Parameter: engine.ParamBandwidth, Value: 0.5, At: 200}, "1s"},
		// Within the objective there is no harm, however many have not ended yet.
		"slow answers": {chatServer(6, 3), Injection{Parameter: engine.ParamBandwidth, Value: 0.3, At: 200}, "500ms"},
		"clients that try again": {func() engine.Config {
			cfg := overloaded(4)
			cfg.Workload.Timeout, cfg.Workload.Retries, cfg.Workload.RetryAfter = 20, 2, 5
			return cfg
		}(), Injection{Parameter: engine.ParamErrorRate, Value: 0.3, At: 200}, "1s"},
	} {
		t.Run(name, func(t *testing.T) {
			story := &Story{
				Name: name, Servers: []engine.Config{of.cfg}, Length: 6 * time.Minute, Injections: []Injection{of.injection},
				Processor: map[string]any{"objectives": []any{map[string]any{
					"name": "gap", "metric": "vllm.inter_token_latency", "threshold": of.objective, "target": 0.95,
				}}},
			}
			short, err := Play(t.Context(), story)
			require.NoError(t, err)
			story.Length = 16 * time.Minute
			long, err := Play(t.Context(), story)
			require.NoError(t, err)
			for i := range short.Lines {
				a, b := &short.Lines[i], &long.Lines[i]
				assert.Equal(t, b.Requests, a.Requests, "minute %d", i)
				assert.InDelta(t, b.Effect, a.Effect, 0.01*b.Effect+0.01, "minute %d", i)
				assert.Equal(t, b.Harmful, a.Harmful, "minute %d", i)
			}
			assert.Len(t, short.Lines, 6)
		})
	}
}
