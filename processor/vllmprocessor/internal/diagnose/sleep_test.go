package diagnose

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
)

// paused is an engine with requests that it does not work on, because it was put to sleep and keeps
// them (mode=keep).
func paused(awake float64) scraped {
	s := standsStill("0")
	s.labelled = map[input.Metric]map[string]float64{input.SleepState: {"awake": awake}}
	return s
}

// sleepOperations is the server with operations of the sleep mode that have not ended.
func sleepOperations(n float64) scraped {
	s := answers(1)
	s.gauges[input.SleepOperations] = n
	return s
}

// What an engine did not do in its sleep is no standstill: after it woke, it has as long as any other.
func TestAnEngineThatHasWokenHasNotStalled(t *testing.T) {
	t.Parallel()
	r := usually(t)
	r.minutes(5, answers(1), paused(0))
	assert.Equal(t, Asleep, r.verdict("0").Condition)
	for range 3 {
		r.scrape(answers(1), paused(1))
		assert.False(t, r.was(Stalled))
	}
	r.minutes(1, answers(1), paused(1))
	assert.Equal(t, Stalled, r.verdict("0").Condition)
}

// An engine is put to sleep for minutes where its weights go to the memory of the host. The state says so
// only afterwards. An operation that does not end within ten minutes hides no stall.
func TestAnEngineThatIsPutToSleepHasNotStalled(t *testing.T) {
	t.Parallel()
	r := usually(t)
	r.minutes(10, sleepOperations(1), paused(1))
	assert.Equal(t, Asleep, r.verdict("0").Condition)
	assert.False(t, r.was(Stalled))
	r.minutes(2, sleepOperations(1), paused(1))
	assert.Equal(t, Stalled, r.verdict("0").Condition)
	r.scrape(sleepOperations(0), serves("0"))
	r.minutes(5, sleepOperations(0), serves("0"))
	assert.NotEqual(t, Stalled, r.verdict("0").Condition)
	r.minutes(0.5, sleepOperations(1), complete(paused(1)))
	assert.Equal(t, Asleep, r.verdict("0").Condition, "the next operation has its own time")
}
