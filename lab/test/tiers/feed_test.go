//go:build e2e

package tiers

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/otelcol-vllm/otelcol-vllm/lab/test/collector"
)

// scrapeOf is the nth scrape of a server as the receiver emits it.
func scrapeOf(instance string, began time.Time, n int) pmetric.Metrics {
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	for name, value := range map[string]string{
		"service.name": "vllm", "service.instance.id": instance, "service.version": "0.11.1", "pool": "models.a",
	} {
		rm.Resource().Attributes().PutStr(name, value)
	}
	metrics := rm.ScopeMetrics().AppendEmpty().Metrics()
	at, start := pcommon.NewTimestampFromTime(began.Add(time.Duration(n)*15*time.Second)), pcommon.NewTimestampFromTime(began.Add(-time.Hour))
	of := func(attributes pcommon.Map) {
		attributes.PutStr("model_name", "m")
		attributes.PutStr("engine", "0")
	}
	running := metrics.AppendEmpty()
	running.SetName("vllm.num_requests.running")
	gauge := running.SetEmptyGauge().DataPoints().AppendEmpty()
	gauge.SetTimestamp(at)
	gauge.SetDoubleValue(3)
	of(gauge.Attributes())
	tokens := metrics.AppendEmpty()
	tokens.SetName("vllm.generation_tokens")
	sum := tokens.SetEmptySum()
	sum.SetIsMonotonic(true)
	sum.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	total := sum.DataPoints().AppendEmpty()
	total.SetTimestamp(at)
	total.SetStartTimestamp(start)
	total.SetDoubleValue(float64(100 * n))
	of(total.Attributes())
	latency := metrics.AppendEmpty()
	latency.SetName("vllm.time_to_first_token")
	latency.SetUnit("s")
	histogram := latency.SetEmptyHistogram()
	histogram.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	buckets := histogram.DataPoints().AppendEmpty()
	buckets.SetTimestamp(at)
	buckets.SetStartTimestamp(start)
	buckets.ExplicitBounds().FromRaw([]float64{0.5})
	buckets.BucketCounts().FromRaw([]uint64{uint64(n), 0})
	buckets.SetCount(uint64(n))
	buckets.SetSum(0.25 * float64(n))
	of(buckets.Attributes())
	return md
}

// What the processor makes of scrapes that arrive again or late, and of a server that moves
// to another collector.
func TestRepeatedLateAndMovedScrapes(t *testing.T) {
	t.Parallel()
	behind := newBackend(t)
	var clients []pmetricotlp.GRPCClient
	var running []*collector.Process
	own := make([]string, 2)
	for i := range own {
		address := ownAddress(t)
		own[i] = ownAddress(t)
		host, port, _ := strings.Cut(own[i], ":")
		running = append(running, start(t, "pool-otlp.yaml", map[string]string{
			"OTLP_LISTEN": address, "OTLP_ENDPOINT": fmt.Sprintf("%s/pool-%d", behind.url, i),
		}, append(soon, "service::telemetry::metrics: {level: normal, readers: [{pull: {exporter: {prometheus: {host: "+host+", port: "+port+"}}}}]}")...))
		connection, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
		require.NoError(t, err)
		t.Cleanup(func() { _ = connection.Close() })
		clients = append(clients, pmetricotlp.NewGRPCClient(connection))
	}
	began := time.Now().Add(-10 * time.Minute).Truncate(time.Second)
	send := func(to int, instance string, numbers ...int) {
		for _, n := range numbers {
			_, err := clients[to].Export(t.Context(), pmetricotlp.NewExportRequestFromMetrics(scrapeOf(instance, began, n)))
			require.NoError(t, err)
		}
	}
	for n := 1; n <= 20; n++ {
		send(0, "usual", n)
		send(0, "repeated", n)
		send(n/11, "moved", n)
		switch n {
		case 10:
			send(0, "repeated", 10, 10, 10)
		case 14:
			send(0, "repeated", 12)
		}
	}
	numbers := func(instance, from string) (out []int) {
		behind.mu.Lock()
		defer behind.mu.Unlock()
		for _, at := range behind.derived[instance][from] {
			out = append(out, int(at.Sub(began)/(15*time.Second)))
		}
		return out
	}
	last := func(all []int) int { return append([]int{0}, all...)[len(all)] }
	running[0].WaitFor(t, "the last derived values", func() bool {
		return last(numbers("usual", "pool-0")) == 20 && last(numbers("repeated", "pool-0")) == 20 && last(numbers("moved", "pool-1")) == 20
	})
	usual, repeated := numbers("usual", "pool-0"), numbers("repeated", "pool-0")
	before, after := numbers("moved", "pool-0"), numbers("moved", "pool-1")
	page := string(collector.Get(t, "http://"+own[0]+"/metrics"))
	t.Logf("usual %v\nrepeated %v\nmoved %v and then %v", usual, repeated, before, after)
	ignored := 0
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, "otelcol_processor_vllm_ignored_points") {
			t.Log(strings.TrimSpace(line))
			ignored++
		}
	}
	assert.Positive(t, ignored)
	arrived := scrapesOf(behind.account, "repeated")
	assert.Len(t, arrived, 24, "raw points are passed on, also those that are repeated")
	slices.Sort(repeated)
	assert.Equal(t, usual, slices.Compact(repeated), "no derived value is missing or at another time")
	assert.Equal(t, usual[:len(before)], before)
	assert.Equal(t, 12, after[0], "a value needs two scrapes")
	for _, c := range running {
		c.Stop(t)
	}
}
