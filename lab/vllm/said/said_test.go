package said

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/lab/judge"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllm/run"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllm/story"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim"
)

const rules = "../../../content/rules/suffixed/vllm.yaml"

// simulated is a run of a healthy server of the simulator, which does not answer for some time.
// Each look comes 3 ms late.
func simulated(t *testing.T, length, from, to float64) *run.Run {
	t.Helper()
	servers, err := vllmsim.New(vllmsim.Config{Version: "0.25.0", Rate: 2, Seed: 4})
	require.NoError(t, err)
	r := &run.Run{
		Play:    story.Play{Phases: []story.Phase{{Name: story.Steady}}},
		Version: "0.25.0", Began: time.Date(2026, time.January, 5, 0, 0, 0, 0, time.UTC), Spans: []run.Span{{From: 0, To: length}},
	}
	for at := 0.0; at <= length; at += 5 {
		s := run.Scrape{At: at + 0.003}
		if at < from || at >= to {
			s.Status = 200
			s.Body, _, err = servers.Targets()[0].Body()
			require.NoError(t, err)
		}
		r.Scrapes = append(r.Scrapes, s)
		servers.Advance(5 * time.Second)
	}
	return r
}

// scraped are the times at which the pipeline saw the server.
func scraped(t *testing.T, r *run.Run, interval time.Duration) (all *All, times []float64) {
	t.Helper()
	require.NoError(t, Feed(t.Context(), r, interval, nil, func(s *run.Scrape, metrics pmetric.Metrics) error {
		assert.Positive(t, metrics.DataPointCount(), "at %v", s.At)
		times = append(times, s.At)
		return nil
	}))
	all, err := Replay(t.Context(), r, interval, rules)
	require.NoError(t, err)
	return all, times
}

func TestAReplaySaysWhatTheCollectorWouldHaveSaid(t *testing.T) {
	r := simulated(t, 600, 400, 500)
	// The users of this server wait for tokens that do not come.
	for i := range 3 {
		r.Sent = append(r.Sent, judge.Sent{At: 410 + float64(i), End: 60, How: judge.TimedOut})
	}
	for _, interval := range []time.Duration{5 * time.Second, 15 * time.Second} {
		all, times := scraped(t, r, interval)
		require.Len(t, times, int(600/interval.Seconds())+1)
		for i, at := range times {
			assert.InDelta(t, float64(i)*interval.Seconds()+0.003, at, 1e-9)
		}
		assert.Equal(t, interval, all.Interval)
		before, gone, after := "", -1.0, ""
		for i, s := range all.Said {
			switch {
			case s.At < 400:
				before = s.Condition
				assert.Less(t, s.Severity, 2, "%+v", s)
			case s.At >= 520:
				after = s.Condition
			case s.Condition == "unreachable" && gone < 0:
				gone = s.At
				assert.GreaterOrEqual(t, s.Severity, 2)
			}
			if i > 0 {
				was := all.Said[i-1]
				assert.Greater(t, s.At, was.At)
				was.At = s.At
				assert.NotEqual(t, was, s, "only changes are noted")
			}
		}
		assert.Equal(t, "healthy", before)
		assert.True(t, gone >= 400 && gone < 480, "unreachable at %v", gone)
		assert.NotEqual(t, "unreachable", after)
		require.NotEmpty(t, all.Records)
		for _, record := range all.Records {
			assert.True(t, record.At >= 0 && record.At <= 601, "%+v", record)
		}
		for _, a := range all.Alerts {
			assert.True(t, a.From >= 400 && a.To > a.From && a.To <= 600, "%+v", a)
		}
		require.Len(t, all.Heard, len(all.Felt))
		require.NotEmpty(t, all.Felt)
		for _, h := range all.Heard {
			if h.Level == judge.Outage {
				assert.Equal(t, "unreachable", h.Report.Condition)
				assert.InDelta(t, gone-h.From, h.After, 1e-9)
			}
		}
		assert.Empty(t, all.Unfelt)
	}
}

// While looks take their whole time of 5 s, the next one is 10 s later. Scrapes each 15 s are the
// first looks at or after 90, 105, 120 and 135 s: those of 95, 105, 125 and 135 s.
func TestALateScrapeDoesNotMoveTheOthers(t *testing.T) {
	r := simulated(t, 75, 75, 80)
	for at := 85.003; at < 140; at += 10 {
		r.Scrapes = append(r.Scrapes, run.Scrape{At: at})
	}
	r.Spans[0].To = 140
	_, times := scraped(t, r, 15*time.Second)
	want := []float64{0, 15, 30, 45, 60, 75, 95, 105, 125, 135}
	require.Len(t, times, len(want), "%v", times)
	for i := range want {
		assert.InDelta(t, want[i], times[i], 0.01)
	}
}

func TestAReplayThatCannotBeIsAnError(t *testing.T) {
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	r := simulated(t, 10, 20, 20)
	_, err := Replay(t.Context(), r, 5*time.Second, "none.yaml")
	require.ErrorContains(t, err, "none.yaml")
	wrong := filepath.Join(t.TempDir(), "wrong.yaml")
	require.NoError(t, os.WriteFile(wrong, []byte("groups: [{name: a, rules: [{alert: b, expr: 'sum('}]}]"), 0o600))
	_, err = Replay(t.Context(), r, 5*time.Second, wrong)
	require.Error(t, err)
	err = Feed(t.Context(), r, 5*time.Second, map[string]any{"no_such_setting": 1}, nil)
	require.ErrorContains(t, err, "no_such_setting")
	r.Play.Processor = map[string]any{"neither_this": 1}
	_, err = Replay(t.Context(), r, 5*time.Second, rules)
	require.ErrorContains(t, err, "neither_this")
	left, err := filepath.Glob(filepath.Join(temporary, "*"))
	require.NoError(t, err)
	assert.Empty(t, left, "what was stored is removed")
}

// A minute counts by its end: what users felt then, and what was said then.
func TestMinutesCountWhatWasSaidAtTheirEnds(t *testing.T) {
	r := &run.Run{
		Play:  story.Play{Phases: []story.Phase{{Name: story.Steady}, {Name: "stop/hang"}}},
		Spans: []run.Span{{From: 0, To: 100}, {From: 100, To: 400}},
	}
	book := &story.Book{Stories: []story.Story{{Name: "stop", Say: []string{"stalled"}}}}
	all := &All{
		Felt: []judge.Felt{{Level: judge.Great, From: 110, To: 130}, {Level: judge.Clear, From: 150, To: 310}},
		Said: []judge.Said{{At: 0, Condition: "healthy"}, {At: 125, Condition: "degraded", Severity: 1}, {At: 200, Condition: "stalled", Severity: 3}, {At: 305, Condition: "healthy"}},
	}
	felt, reported, right := Minutes(book, r, all)
	// The minutes that end after 120, 180, 240 and 300 s; nothing is said at the first, and no reason at the second.
	assert.Equal(t, [3]int{4, 3, 2}, [3]int{felt, reported, right})
}
