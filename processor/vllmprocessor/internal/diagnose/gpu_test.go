package diagnose

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/gpu"
)

// The clock of a GPU is held down from a minute after the start of the excess on, when it first is harm. Evidence that
// appears more than three windows after that is not a detail.
func TestEvidenceOfGPUsAppearsWithinThreeWindows(t *testing.T) {
	t.Parallel()
	const window, since = int64(time.Minute), int64(time.Hour) * 400_000
	for late, want := range map[time.Duration]string{3 * time.Minute: powerCap, 3*time.Minute + time.Second: ""} {
		store := gpu.NewStore(time.Minute)
		limited := 0.0
		at := since + window + int64(late)
		for now := since - 7*window; now <= at; now += scrape {
			var r gpu.Reading
			r.Reset("GPU-1")
			r.Sharing = gpu.Exclusive
			if now > since+window {
				limited += time.Duration(scrape).Seconds()
			}
			r.Add(gpu.PowerTime, limited)
			store.Place("server", gpu.Owner{PodUID: "u"})
			store.Observe([]gpu.Batch{{
				Workload: gpu.Workload{Key: "gpus", Owner: gpu.Owner{PodUID: "u"}}, Time: now, Readings: []gpu.Reading{r},
			}}, now, make([]bool, 1))
		}
		x := excess{since: since, harmed: since + window}
		store.Of("server", func(j *gpu.Joined) {
			x.judge(&gpuLook{
				Joined: j, lost: 0.3,
				before: gpu.Span{From: since - 6*window, To: since - window}, since: gpu.Span{From: since, To: at}, now: gpu.Span{From: since, To: at},
			}, at, window)
		})
		assert.Equal(t, want, x.now.detail, late)
	}
}
