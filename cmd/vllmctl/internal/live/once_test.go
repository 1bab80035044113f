package live

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/config/configmiddleware"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/status"
	"github.com/otelcol-vllm/otelcol-vllm/lab/test/network"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim"
)

// "top --once || alert" needs 1 where users are harmed, also by demand alone. The oracle is the load of two minutes: a
// server ends 22 requests a second, so the last one of 25 a second waits for 12 s, and that of 60 for more than a minute.
func TestTheStatusOfAnOverloadFollowsTheHarmToUsers(t *testing.T) {
	for _, c := range []struct {
		rate     float64
		severity int
		want     status.Status
		longest  time.Duration
	}{{20, 0, status.OK, 20 * time.Second}, {25, 1, status.OK, 100 * time.Second}, {60, 2, status.Problem, 80 * time.Second}} {
		synctest.Test(t, func(t *testing.T) {
			at := network.New()
			at.Put("a:8000", simulated(t, c.rate, vllmsim.Config{}))
			client := confighttp.NewDefaultClientConfig()
			client.Middlewares = []configmiddleware.Config{{ID: network.ID}}
			plan, err := OfAddresses([]string{"http://a:8000"}, &client, Times{Interval: 2 * time.Second})
			require.NoError(t, err)
			s := NewSession(plan, NewLog())
			require.NoError(t, s.Start(t.Context(), at))
			began := time.Now()
			require.NoError(t, s.Wait(t.Context(), plan.Verdicts(), (*Table).Judged))
			assert.LessOrEqual(t, time.Since(began), c.longest, "%v", c.rate)
			table := s.Table(false)
			require.NoError(t, s.Shutdown(t.Context()))
			require.Len(t, table.Rows, 1)
			r := &table.Rows[0]
			assert.Equal(t, c.severity, r.Severity, "%v: %s, first token %v s", c.rate, r.Verdict.String(), r.Values[TTFT])
			assert.Equal(t, c.want, table.Status())
			if c.severity > 0 {
				assert.Equal(t, "demand_exceeds_capacity", r.Cause, "nothing else is wrong")
			}
		})
	}
}
