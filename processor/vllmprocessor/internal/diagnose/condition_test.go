package diagnose

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/signal"
)

// A server that reports nothing of what moves when it works cannot be seen to stand
// still, and one that generates nothing works where it takes prompts in.
func TestStandingStillHasToBeSeen(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		progress func(n int) [numProgress]number
		want     Condition
	}{
		"nothing is reported": {func(int) [numProgress]number { return nothingReported() }, Healthy},
		"only the utilization of a KV cache": {func(int) [numProgress]number {
			p := nothingReported()
			p[2] = 0
			return p
		}, Healthy},
		"embeddings": {func(n int) [numProgress]number { return [numProgress]number{0, 0, 0, 0, number(1000 * n)} }, Healthy},
		"it stands":  {func(int) [numProgress]number { return [numProgress]number{5000, 700, 0.4, 0, 9000} }, Stalled},
	} {
		e := &engine{baseline: signal.NewBaseline()}
		var got Condition
		for n := range 20 {
			r := healthyReading(int64(n+1) * scrape)
			r.progress = test.progress(n)
			e.Progress.observe(&r)
			e.still = e.Progress.judge(&r)
			got = e.judge(settings(2), &r, &symptoms{})
		}
		assert.Equal(t, test.want, got, name)
	}
}

func nothingReported() (p [numProgress]number) {
	for i := range p {
		p[i] = number(math.NaN())
	}
	return p
}

// An engine that began again is judged after three windows; where these are long,
// as soon as one has nothing of the time before, and not before ten minutes.
func TestStartingEnds(t *testing.T) {
	t.Parallel()
	for window, want := range map[time.Duration]time.Duration{
		10 * time.Second: 30 * time.Second,
		time.Minute:      3 * time.Minute,
		10 * time.Minute: 10 * time.Minute,
		time.Hour:        time.Hour,
	} {
		c := settings(2)
		c.Window = window
		e := &engine{baseline: signal.NewBaseline()}
		began := int64(100 * time.Hour)
		condition := func(after time.Duration) Condition {
			r := healthyReading(began + int64(after))
			r.restarted = began
			return e.judge(c, &r, &symptoms{})
		}
		assert.Equal(t, Starting, condition(want-time.Second), window)
		assert.Equal(t, Healthy, condition(want), window)
	}
}
