package emit

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/derive"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
)

// The attributes of all series change in one batch that has them in the opposite order. It
// takes a few times as long as to write as many new series, and not a multiple of their
// number.
func TestAllSeriesAreRenewedInLinearTime(t *testing.T) {
	const series = 50_000
	row := &derive.Row{Metric: "vllm.generation_throughput"}
	values := func(call int) []derive.Value {
		all := make([]derive.Value, series)
		for i := range all {
			group := i
			if call%2 == 1 {
				group = series - 1 - i
			}
			all[i] = derive.Value{Row: row, Group: group, Attributes: []input.Attribute{{Name: "engine", Value: fmt.Sprint(group, call)}}}
		}
		return all
	}
	least := func(before, now time.Duration) time.Duration {
		if before == 0 {
			return now
		}
		return min(before, now)
	}
	var created, renewed time.Duration
	for range 3 {
		var m Memory
		for call := range 2 {
			all := values(call)
			begin := time.Now()
			points := m.Write(all, int64(call), int64(call))
			took := time.Since(begin)
			require.Len(t, points, series)
			for i := range points {
				require.Equal(t, all[i].Attributes, points[i].Attributes)
			}
			if call == 0 {
				created = least(created, took)
			} else {
				renewed = least(renewed, took)
			}
		}
		require.Len(t, m.live, series)
	}
	assert.Less(t, renewed, 8*created)
}
