//go:build e2e

package backends

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/otlptranslator"
	"github.com/prometheus/prometheus/prompb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/lab/test/collector"
)

// way is a way from the collector into a real server of the newest version.
type way struct {
	name string
	// exporter is its type in the collector, and settings that the way needs.
	exporter, settings string
	// path is where the server takes it.
	path     string
	strategy otlptranslator.TranslationStrategyOption
	// typed says that each series has its type and unit as labels.
	typed bool
	// victoria is a VictoriaMetrics with these flags.
	victoria []string
}

const (
	byOTLP  = "otlp_http"
	byWrite = "prometheus_remote_write"
	second  = "protobuf_message: io.prometheus.write.v2.Request, "
)

var ways = []way{
	{name: "otlp", exporter: byOTLP, path: "/api/v1/otlp", strategy: otlptranslator.UnderscoreEscapingWithSuffixes},
	{name: "otlp_unsuffixed", exporter: byOTLP, path: "/api/v1/otlp", strategy: otlptranslator.UnderscoreEscapingWithoutSuffixes},
	{name: "otlp_suffixed_dots", exporter: byOTLP, path: "/api/v1/otlp", strategy: otlptranslator.NoUTF8EscapingWithSuffixes},
	{name: "otlp_dotted", exporter: byOTLP, path: "/api/v1/otlp", strategy: otlptranslator.NoTranslation, typed: true},
	{name: "write_1", exporter: byWrite, path: "/api/v1/write", strategy: otlptranslator.UnderscoreEscapingWithSuffixes},
	{name: "write_2", exporter: byWrite, settings: second, path: "/api/v1/write", strategy: otlptranslator.UnderscoreEscapingWithSuffixes, typed: true},
	{name: "write_2_dotted", exporter: byWrite, settings: second + "translation_strategy: NoTranslation, ", path: "/api/v1/write", strategy: otlptranslator.NoTranslation, typed: true},
	{name: "victoria_otlp", exporter: byOTLP, path: "/opentelemetry", strategy: otlptranslator.UnderscoreEscapingWithSuffixes, victoria: []string{"-opentelemetry.usePrometheusNaming"}},
	{name: "victoria_otlp_dotted", exporter: byOTLP, path: "/opentelemetry", strategy: otlptranslator.NoTranslation, victoria: []string{""}},
	{name: "victoria_write", exporter: byWrite, path: "/api/v1/write", strategy: otlptranslator.UnderscoreEscapingWithSuffixes, victoria: []string{""}},
}

// start runs the server of a way with more of a configuration of Prometheus, and returns its address and the
// exporter that sends to it.
func (w way) start(t *testing.T, more string) (addr, exporter string) {
	t.Helper()
	switch {
	case w.victoria != nil:
		_, addr = collector.VictoriaMetrics(t, w.victoria[0], "-opentelemetry.promoteScopeMetadata=false")
	case w.typed:
		_, addr = collector.Newest(t, more+w.translation(), "--enable-feature=type-and-unit-labels")
	default:
		_, addr = collector.Newest(t, more+w.translation())
	}
	// Nothing overtakes anything.
	order := "sending_queue: {enabled: false}"
	if w.exporter == byWrite {
		order = "max_batch_request_parallelism: 1, send_metadata: true, target_info: {enabled: true}"
	}
	return addr, fmt.Sprintf("  %s/%s: {endpoint: 'http://%s%s', %s%s}\n", w.exporter, w.name, addr, w.path, w.settings, order)
}

func (w way) translation() string {
	return fmt.Sprintf("otlp: {translation_strategy: %s, promote_resource_attributes: [k8s.cluster.name, k8s.namespace.name, k8s.pod.name, service.version, vllm.server.kind]}\n", w.strategy)
}

// sending runs a collector that sends what a receiver has to all exporters, which have a line each.
func sending(t *testing.T, before, exporters, receiver string) *collector.Process {
	t.Helper()
	var names []string
	for line := range strings.Lines(strings.TrimSpace(exporters)) {
		name, _, _ := strings.Cut(strings.TrimSpace(line), ": ")
		names = append(names, name)
	}
	file := filepath.Join(t.TempDir(), "config.yaml")
	config := fmt.Sprintf("%s\nexporters:\n%s\nservice:\n  telemetry: {metrics: {level: none}}\n  pipelines:\n    metrics: {receivers: [%s], processors: [vllm], exporters: [%s]}\n",
		before, exporters, receiver, strings.Join(names, ", "))
	require.NoError(t, os.WriteFile(file, []byte(config), 0o600))
	return collector.Start(t, nil, collector.Binary(t), "--config", file, "--feature-gates=exporter.prometheusremotewritexporter.enableSendingRW2")
}

// stores returns all samples that a server has.
func stores(t *testing.T, addr string) (all []prompb.TimeSeries) {
	t.Helper()
	var decoded struct {
		Data struct {
			Result []struct {
				Metric map[string]string
				Values [][2]any
			}
		}
	}
	body := collector.Get(t, "http://"+addr+"/api/v1/query?"+url.Values{"query": {`{__name__=~".+"}[10m]`}}.Encode())
	require.NoError(t, json.Unmarshal(body, &decoded))
	for _, series := range decoded.Data.Result {
		one := prompb.TimeSeries{}
		for name, value := range series.Metric {
			one.Labels = append(one.Labels, prompb.Label{Name: name, Value: value})
		}
		for _, pair := range series.Values {
			v, err := strconv.ParseFloat(pair[1].(string), 64)
			require.NoError(t, err)
			one.Samples = append(one.Samples, prompb.Sample{Timestamp: int64(math.Round(pair[0].(float64) * 1000)), Value: v})
		}
		all = append(all, one)
	}
	return all
}

// Each metric arrives at real servers with its name and values, and with type and unit where the server keeps them.
// A series that ended has no value any more.
func TestRealServersKeepTheWholeCatalogue(t *testing.T) {
	t.Parallel()
	addresses, exporters := map[string]string{}, ""
	for _, w := range ways {
		addr, exporter := w.start(t, "")
		addresses[w.name] = addr
		exporters += exporter
	}
	in := collector.FreeAddr(t)
	c := sending(t, fmt.Sprintf("receivers: {otlp: {protocols: {http: {endpoint: '%s'}}}}\nprocessors: {vllm: {metrics: {vllm.time_to_first_token_mean: {enabled: true}}}}", in), exporters, "otlp")
	c.WaitFor(t, "the start of all components", c.Ready)
	backend{}.scrape(t, in)
	until := time.Now().Add(collector.Patience / 2)
	for _, w := range ways {
		t.Run(w.name, func(t *testing.T) {
			name, addr := spelled(w.strategy), addresses[w.name]
			var got received
			var broken []string
			c.WaitFor(t, "everything to arrive", func() bool {
				got = received{series: stores(t, addr)}
				broken = append(writtenAs(name)(got), writtenDerivedAs(name)(got)...)
				return len(broken) == 0 || time.Now().After(until)
			})
			assert.Empty(t, broken[:min(len(broken), 5)], "%d in all", len(broken))
			now := time.Now()
			assert.Empty(t, namesIn(ask(t, addr, `{__name__=~"vllm.test.*gone.*"}`, now, now)), "they ended")
			assert.NotEmpty(t, namesIn(ask(t, addr, `{__name__=~"vllm.test.not_numbers"}`, now, now)))
			// As docs/reference/backends.md says.
			assert.Equal(t, w.victoria == nil || w.exporter == byWrite, len(ask(t, addr, `{job="vllm",instance="vllm-1:8000"}`, now, now)) > 0)
			if w.victoria != nil {
				assert.Empty(t, mistyped(described(t, addr), name))
				return
			}
			assert.Empty(t, described(t, addr))
			if w.typed {
				assert.Empty(t, mistyped(labelled(got), name))
			}
		})
	}
	c.Stop(t)
	// The gate of the second version is experimental.
	assert.Empty(t, c.Complaints("feature gate"))
}

// typeAndUnit of a metric, by its name.
type typeAndUnit map[string][2]string

// labelled reads what Prometheus's type-and-unit-labels have.
func labelled(got received) typeAndUnit {
	found := typeAndUnit{}
	for _, series := range got.series {
		name, kind := label(series, "__name__"), label(series, "__type__")
		if kind == "histogram" || kind == "summary" {
			name = strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_sum"), "_count")
		}
		found[name] = [2]string{kind, label(series, "__unit__")}
	}
	return found
}

// described reads what VictoriaMetrics knows of metrics.
func described(t *testing.T, addr string) typeAndUnit {
	t.Helper()
	var decoded struct {
		Data map[string][]struct{ Type, Unit string }
	}
	require.NoError(t, json.Unmarshal(collector.Get(t, "http://"+addr+"/api/v1/metadata?limit=10000"), &decoded))
	found := typeAndUnit{}
	for name, entries := range decoded.Data {
		found[name] = [2]string{entries[0].Type, entries[0].Unit}
	}
	return found
}

// mistyped returns the metrics of the catalogue that have another type or unit. A unit is that of OpenTelemetry or the
// word for it.
func mistyped(got typeAndUnit, nameOf func(catalog.Metric) string) (broken []string) {
	kinds := map[catalog.Kind]string{catalog.KindGauge: "gauge", catalog.KindSum: "counter", catalog.KindHistogram: "histogram", catalog.KindSummary: "summary"}
	var namer otlptranslator.UnitNamer
	for _, m := range catalog.All() {
		has, known := got[nameOf(m)]
		word := namer.Build(m.Unit)
		if !known || has[0] != kinds[m.Kind] || has[1] != m.Unit && has[1] != word {
			broken = append(broken, fmt.Sprintf("%s: %q, not %s in %q", nameOf(m), has, kinds[m.Kind], m.Unit))
		}
	}
	return broken
}

// The examples deliver everything to a real server that is away at first, and that takes samples in order only.
func TestRealServersTakeTheExamples(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"prometheus-otlp.yaml", "prometheus-remote-write.yaml", "prometheus-remote-write.yaml VictoriaMetrics"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file, _, victoria := strings.Cut(name, " ")
			b := backends[slices.IndexFunc(backends, func(b backend) bool { return b.file == file })]
			var addr string
			if victoria {
				_, addr = collector.VictoriaMetrics(t)
			} else {
				_, addr = collector.Newest(t, "")
			}
			behind, err := url.Parse("http://" + addr)
			require.NoError(t, err)
			var back atomic.Bool
			proxy := httputil.NewSingleHostReverseProxy(behind)
			front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if !back.Load() {
					http.Error(w, "come back later", http.StatusServiceUnavailable)
					return
				}
				proxy.ServeHTTP(w, r)
			}))
			t.Cleanup(front.Close)
			in := collector.FreeAddr(t)
			c := collector.Collector(t, environment(t, b, front.URL), b.config(), b.feed(in))
			c.WaitFor(t, "the start of all components", c.Ready)
			began := time.Now()
			for n := range scrapeCount {
				send(t, in, catalogue(n+1, began, time.Now()))
				// Each in a batch of its own.
				time.Sleep(1500 * time.Millisecond)
			}
			require.Empty(t, stores(t, addr))
			back.Store(true)
			c.WaitFor(t, "everything to arrive", func() bool {
				got := received{series: stores(t, addr)}
				return len(written(got)) == 0 && len(writtenDerived(got)) == 0
			})
			c.Stop(t)
		})
	}
}
