package judge

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/internal/test/race"
)

// byTheClock pages for a server from one time to another, whatever it shows.
type byTheClock struct {
	scrapes [2]int
	last    float64
	server  int
	broken  error
}

func (m *byTheClock) Scraped(_ context.Context, server int, at float64, metrics pmetric.Metrics) (Report, error) {
	m.scrapes[server]++
	m.last = max(m.last, at)
	if metrics.DataPointCount() == 0 {
		return Report{}, errors.New("the scrape is empty")
	}
	if server == m.server && at > 300 && at <= 480 {
		return Report{Condition: "failing", Cause: "erroring", Severity: page}, m.broken
	}
	return Report{Condition: "healthy"}, m.broken
}

// A method in the processor's place is asked at each scrape, what it says is kept, and what is true is the same.
func TestAMethodJudgesInPlaceOfTheProcessor(t *testing.T) {
	race.SkipSequential(t)
	t.Parallel()
	var tape bytes.Buffer
	recorded, err := PlayTaped(t.Context(), taped(), &tape)
	require.NoError(t, err)
	method := &byTheClock{server: 1}
	got, err := Replay(t.Context(), bytes.NewReader(tape.Bytes()), method)
	require.NoError(t, err)
	// 14 minutes of 10 s; from 95 to 140 s there was none, at 100, 110, 120 and 130.
	assert.Equal(t, [2]int{80, 80}, method.scrapes)
	assert.InDelta(t, 840, method.last, 0)
	require.Len(t, got.Lines, len(recorded.Lines))
	for i, l := range got.Lines {
		want := recorded.Lines[i]
		want.Condition, want.Severity, want.Causes, want.Pool = "healthy", 0, []Cause{}, nil
		// Minute 5 ends at 360 s.
		if l.Server == 1 && l.Minute >= 5 && l.Minute <= 7 {
			want.Condition, want.Severity, want.Causes = "failing", page, []Cause{{Name: "erroring", Role: "primary"}}
		}
		require.Equal(t, want, l)
	}
	assert.Equal(t, []Alarm{{Server: 1, At: 310, Severity: page, Condition: "failing", Cause: "erroring"}}, got.Alarms)
	assert.Equal(t, []Said{{At: 10, Condition: "healthy"}}, got.Said[0])
	assert.Equal(t, []Said{
		{At: 10, Condition: "healthy"}, {At: 310, Condition: "failing", Severity: page, Cause: "erroring"}, {At: 490, Condition: "healthy"},
	}, got.Said[1])
	assert.Equal(t, recorded.Felt, got.Felt)
	assert.Equal(t, recorded.Sought, got.Sought)

	broken := errors.New("broken")
	_, err = Replay(t.Context(), bytes.NewReader(tape.Bytes()), &byTheClock{broken: broken})
	require.ErrorIs(t, err, broken)
}
