package engine

import (
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/internal/test/race"
)

// The time is the processor time of this process, so that a busy machine does not
// matter. No other test of the package runs meanwhile.
func TestAVirtualHourTakesLessThanAThousandthOfItsTime(t *testing.T) {
	race.SkipSequential(t)
	spent := func() time.Duration {
		var usage syscall.Rusage
		require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
		return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	}
	best := time.Hour
	for range 3 {
		s := start(t, Config{Seed: 1, Model: Llama8B(), Workload: Chat(5), FrontEnd: DefaultFrontEnd()})
		began := spent()
		s.AdvanceTo(3600)
		best = min(best, spent()-began)
	}
	assert.Less(t, best, 3600*time.Millisecond)
}
