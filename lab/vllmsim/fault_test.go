package vllmsim

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
)

func faulty(t *testing.T, faults ...Fault) (*Server, *httptest.Server) {
	t.Helper()
	work := engine.Chat(5)
	s, err := New(Config{Hardware: "8b-h100", Workload: &work, Faults: faults})
	require.NoError(t, err)
	front := httptest.NewServer(s.Targets()[0])
	t.Cleanup(front.Close)
	return s, front
}

// ask returns the status of an answer, 0 if there is none.
func ask(t *testing.T, method, url, body string) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if !assert.NoError(t, err) {
		return 0
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0
	}
	_ = response.Body.Close()
	return response.StatusCode
}

func TestAServerThatIsAwayAnswersNothing(t *testing.T) {
	for _, kind := range []FaultKind{FaultUnreachable, FaultRestart} {
		s, front := faulty(t, Fault{10, 20, kind})
		for _, here := range []bool{true, false, true} {
			for _, path := range []string{"/metrics", "/health", "/v1/models"} {
				assert.Equal(t, here, ask(t, http.MethodGet, front.URL+path, "") == http.StatusOK, "%s of %s", path, kind)
			}
			s.Advance(10 * time.Second)
		}
	}
}

func TestARestartEndsTheRequestsThatAreUnderWay(t *testing.T) {
	s, front := faulty(t, Fault{10, 20, FaultRestart})
	s.Advance(9 * time.Second)
	status := make(chan int)
	go func() {
		status <- ask(t, http.MethodPost, front.URL+"/v1/completions", `{"prompt": "x", "max_tokens": 5000}`)
	}()
	target := s.Targets()[0]
	require.Eventually(t, func() bool {
		target.mu.Lock()
		defer target.mu.Unlock()
		return len(target.awaited) == 1
	}, 10*time.Second, time.Millisecond)
	s.Advance(5 * time.Second)
	assert.Equal(t, http.StatusInternalServerError, <-status)
	assert.Equal(t, 0, ask(t, http.MethodPost, front.URL+"/v1/completions", `{"prompt": "x"}`))
	s.Advance(6 * time.Second)
	go func() {
		status <- ask(t, http.MethodPost, front.URL+"/v1/completions", `{"prompt": "x", "max_tokens": 2}`)
	}()
	require.Eventually(t, func() bool {
		s.Advance(100 * time.Millisecond)
		select {
		case code := <-status:
			assert.Equal(t, http.StatusOK, code)
			return true
		default:
			return false
		}
	}, 10*time.Second, 5*time.Millisecond)
}

func TestAProcessGoesOnWithTheChangesThatHappenedBefore(t *testing.T) {
	work := engine.Workload{Rate: 0.5, CV: 0.1, Prompt: engine.Lengths{Median: 100}, Output: engine.Lengths{Median: 50}}
	var gaps []float64
	s, err := New(Config{
		Hardware: "8b-h100", Workload: &work, Faults: []Fault{{100, 150, FaultRestart}},
		Changes: []engine.Change{
			{At: 50, Parameter: engine.ParamHostDelay, Value: 0.1},
			{At: 120, Parameter: engine.ParamHostDelay, Value: 0.2},
			{At: 200, Parameter: engine.ParamHostDelay, Value: 0},
		},
		Truth: func(_ int, o engine.Outcome) {
			if o.Arrived > 150 && o.End == engine.EndStop {
				gaps = append(gaps, o.MeanGap)
			}
		},
	})
	require.NoError(t, err)
	s.Advance(300 * time.Second)
	_, _, err = s.Targets()[0].Body()
	require.NoError(t, err)
	require.Greater(t, len(gaps), 40)
	assert.Greater(t, gaps[0], 0.2)
	assert.Less(t, gaps[len(gaps)-1], 0.02)
}

// The router sends a request of a trace to the same server, whether processes were restarted
// before or not.
func TestARestartDoesNotMoveTheRequestsOfATrace(t *testing.T) {
	trace := &engine.Traffic{Name: "even", Span: 1000}
	for i := range 1000 {
		trace.Arrivals = append(trace.Arrivals, engine.Arrival{At: float64(i), Prompt: 50, Output: 5})
	}
	servers := func(faults ...Fault) map[int]int {
		out := map[int]int{}
		s, err := New(Config{
			Hardware: "8b-h100", Targets: 2, Shares: []float64{0.5, 0.5}, Workload: &engine.Workload{Traffic: trace}, Faults: faults,
			Truth: func(server int, o engine.Outcome) {
				_, twice := out[o.ID%engine.ProcessIDs]
				assert.False(t, twice, "request %d", o.ID)
				out[o.ID%engine.ProcessIDs] = server
			},
		})
		require.NoError(t, err)
		s.Advance(900 * time.Second)
		for _, target := range s.Targets() {
			_, _, err = target.Body()
			require.NoError(t, err)
		}
		return out
	}
	usual, restarted := servers(), servers(Fault{100, 150, FaultRestart}, Fault{300, 310, FaultRestart})
	require.Greater(t, len(restarted), 800)
	require.Less(t, len(restarted), 850, "those of 60 s are not in the truth")
	for id, server := range restarted {
		require.Equal(t, usual[id], server, "request %d", id)
	}
}

func TestFaultsThatCannotBe(t *testing.T) {
	work, waves := engine.Chat(1), engine.Chat(1)
	waves.Swing, waves.Period = 0.5, 60
	for want, cfg := range map[string]Config{
		`unknown fault "fire"`:          {Hardware: "8b-h100", Faults: []Fault{{1, 2, "fire"}}},
		"must end later than it begins": {Hardware: "8b-h100", Faults: []Fault{{2, 2, FaultUnreachable}}},
		"must not overlap":              {Hardware: "8b-h100", Workload: &work, Faults: []Fault{{1, 3, FaultUnreachable}, {2, 4, FaultRestart}}},
		"without waves":                 {Hardware: "8b-h100", Workload: &waves, Faults: []Fault{{1, 2, FaultRestart}}},
		"workload without waves":        {Hardware: "8b-h100", Faults: []Fault{{1, 2, FaultRestart}}},
	} {
		_, err := New(cfg)
		require.ErrorContains(t, err, want)
	}
}
