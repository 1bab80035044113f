package normalize

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/exposition"
)

func hostile(n int) map[string]*exposition.Layout {
	bodies := map[string]func(b *strings.Builder){
		"unknown families": func(b *strings.Builder) {
			for i := range n {
				fmt.Fprintf(b, "vllm:new_%d_seconds 1\n", i)
			}
		},
		"series": func(b *strings.Builder) {
			b.WriteString("# TYPE vllm:num_requests_running gauge\n")
			for i := range n {
				fmt.Fprintf(b, "vllm:num_requests_running{model_name=\"%d\"} 1\n", i)
			}
		},
		"pids": func(b *strings.Builder) {
			b.WriteString("# TYPE vllm:num_requests_running gauge\n")
			for i := range n {
				fmt.Fprintf(b, "vllm:num_requests_running{pid=\"%d\"} 1\n", i)
			}
		},
		"engines of one mirrored histogram": func(b *strings.Builder) {
			b.WriteString("# TYPE vllm:e2e_request_latency_seconds histogram\n")
			for i := range n {
				b.WriteString(histogramSeries("vllm:e2e_request_latency_seconds", fmt.Sprintf(`engine="%d"`, i), 1, "1"))
			}
		},
		"adapter sets": func(b *strings.Builder) {
			b.WriteString("# TYPE vllm:lora_requests_info gauge\n")
			for i := range n {
				fmt.Fprintf(b, "vllm:lora_requests_info{running_lora_adapters=\"a,b,c%d\"} %d\n", i, i)
			}
		},
		"names that differ by separators alone": func(b *strings.Builder) {
			b.WriteString("a 1\n")
			for i := range n / 6 {
				b.WriteString("a:")
				for bit := range 16 {
					b.WriteString([]string{":x", "_x"}[i>>bit&1])
				}
				b.WriteString(" 1\n")
			}
		},
		"parts of one name": func(b *strings.Builder) {
			b.WriteString("a" + strings.Repeat(":b", 5*n) + " 1\n")
		},
	}
	layouts := make(map[string]*exposition.Layout, len(bodies))
	for name, write := range bodies {
		var b strings.Builder
		write(&b)
		layouts[name] = exposition.NewReader(exposition.NewMemory(0)).Read([]byte(b.String()), exposition.DialectText).Layout
	}
	return layouts
}

// A body within the limits of size and lines must be planned at a cost that
// grows as the body does: with the square of it, one target would stop all. The
// cost is counted in bytes allocated, which other work on the machine does not
// change.
func TestHostileBodiesCostNoMoreThanTheirSize(t *testing.T) {
	const small, factor = 1500, 8
	options := Options{GenAI: true}
	cost := func(layout *exposition.Layout) float64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		Make(layout, options)
		runtime.ReadMemStats(&after)
		return float64(after.TotalAlloc - before.TotalAlloc)
	}
	large := hostile(small * factor)
	for name, layout := range hostile(small) {
		t.Run(name, func(t *testing.T) {
			short, long := cost(layout), cost(large[name])
			// Linear cost gives about 8, quadratic 64.
			assert.Less(t, long, 3*factor*short+1<<20, "%.0f bytes for %d, %.0f for %d", short, small, long, small*factor)
		})
	}
}

// Names are compared by their parts, so there must not be many.
func TestNoNameHasManyParts(t *testing.T) {
	for name, layout := range hostile(1500) {
		for _, m := range Make(layout, Options{}).Metrics {
			assert.LessOrEqual(t, strings.Count(m.Name, "."), maxDots, name)
		}
	}
}
