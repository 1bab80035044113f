package derive_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/derive"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/window"
)

// An engine that restarts explains the answers of 5xx of its window, so that they count as
// errors also where the version records answers of 4xx as 5xx.
func TestARestartExplainsAnswersOf5xx(t *testing.T) {
	for _, restarts := range []bool{false, true} {
		resource := window.NewResource(window.Settings{Window: interval * time.Second, MaxStaleness: 2 * interval * time.Second})
		observe := func(at int64, tokens, failed float64) {
			points := []point{
				count(input.GenerationTokens, tokens), count(input.PromptTokens, tokens),
				count(input.HTTPRequests, 10+failed, "2xx", "/v1/completions"), count(input.HTTPRequests, failed, "5xx", "/v1/completions"),
			}
			require.True(t, resource.Observe(batch(at, release("0.20.0"), points), math.MaxInt).Observed)
		}
		observe(0, 1000, 5)
		after := 1100.0
		if restarts {
			after = 100
		}
		observe(interval/2, after, 10)
		observe(interval, after+100, 30)
		found := 0
		for _, v := range resource.Views(nil, false) {
			if _, errors, reason := derive.HTTPErrors(&v); reason == derive.OK {
				found++
				assert.Equal(t, restarts, errors[1] > 0, "restarts: %v, errors: %v", restarts, errors)
			}
		}
		assert.Equal(t, 1, found)
	}
}
