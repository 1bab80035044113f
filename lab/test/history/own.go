package history

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// own returns the collector's own telemetry, as a Prometheus server scrapes it from the
// collector's port: without suffixes.
func (c *running) own() []Sample {
	var collected metricdata.ResourceMetrics
	require.NoError(c.t, c.reader.Collect(c.t.Context(), &collected))
	out := []Sample{{`up{job="otelcol-vllm",instance="collector-a:8888"}`, 1}}
	for _, scope := range collected.ScopeMetrics {
		for _, m := range scope.Metrics {
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				for _, p := range data.DataPoints {
					out = append(out, Sample{ownSeries(m.Name, p.Attributes), float64(p.Value)})
				}
			case metricdata.Gauge[int64]:
				for _, p := range data.DataPoints {
					out = append(out, Sample{ownSeries(m.Name, p.Attributes), float64(p.Value)})
				}
			case metricdata.Sum[float64]:
				for _, p := range data.DataPoints {
					out = append(out, Sample{ownSeries(m.Name, p.Attributes), p.Value})
				}
			case metricdata.Gauge[float64]:
				for _, p := range data.DataPoints {
					out = append(out, Sample{ownSeries(m.Name, p.Attributes), p.Value})
				}
			case metricdata.Histogram[float64]:
				for _, p := range data.DataPoints {
					out = append(out, ownHistogram(m.Name, p.Attributes, p.Bounds, p.BucketCounts, p.Sum)...)
				}
			case metricdata.Histogram[int64]:
				for _, p := range data.DataPoints {
					out = append(out, ownHistogram(m.Name, p.Attributes, p.Bounds, p.BucketCounts, float64(p.Sum))...)
				}
			default:
			}
		}
	}
	return out
}

// ownHistogram returns the series of a histogram.
func ownHistogram(name string, attributes attribute.Set, bounds []float64, counts []uint64, sum float64) (out []Sample) {
	count := 0.0
	for i, n := range counts {
		count += float64(n)
		le := "+Inf"
		if i < len(bounds) {
			le = strconv.FormatFloat(bounds[i], 'g', -1, 64)
		}
		out = append(out, Sample{ownSeries(name+"_bucket", attributes, "le="+quote(le)), count})
	}
	return append(out, Sample{ownSeries(name+"_sum", attributes), sum}, Sample{ownSeries(name+"_count", attributes), count})
}

// ownSeries writes a series as the collector's own exporter names it.
func ownSeries(name string, attributes attribute.Set, more ...string) string {
	underscores := strings.NewReplacer(".", "_")
	labels := []string{`job="otelcol-vllm"`, `instance="collector-a:8888"`}
	for _, kv := range attributes.ToSlice() {
		labels = append(labels, underscores.Replace(string(kv.Key))+"="+quote(kv.Value.String()))
	}
	return underscores.Replace(name) + "{" + strings.Join(append(labels, more...), ",") + "}"
}

func quote(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(text) + `"`
}

// up returns what a Prometheus server knows that scrapes the servers itself. Only stories
// with vLLM's own names have it.
func (c *running) up(at time.Duration) (out []Sample) {
	if !c.story.Wire {
		return nil
	}
	for i := range c.story.Servers {
		servers := &c.story.Servers[i]
		if at < servers.From {
			continue
		}
		for _, host := range servers.hosts() {
			request, err := http.NewRequestWithContext(c.t.Context(), http.MethodGet, "http://"+host+"/metrics", http.NoBody)
			require.NoError(c.t, err)
			answers := 0.0
			if response, err := c.network.RoundTrip(request); err == nil {
				answers = 1
				require.NoError(c.t, response.Body.Close())
			}
			out = append(out, Sample{fmt.Sprintf("up{job=%q,instance=%q}", "vllm", host), answers})
		}
	}
	return out
}
