package replay

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/backtest/history"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/backtest/promapi"
	"github.com/otelcol-vllm/otelcol-vllm/internal/test/captures"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/surface"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/probe"
)

// scraped is what Prometheus stores of bodies, by its own parser: the labels of the target
// are added to each series, and labels of the same name are renamed.
func scraped(t *testing.T, bodies [][]byte, contentType string, begin int64, target labels.Labels) []promapi.Series {
	t.Helper()
	index := map[string]int{}
	var out []promapi.Series
	add := func(l labels.Labels, at int64, v float64) {
		b := labels.NewBuilder(l)
		target.Range(func(own labels.Label) {
			if before := l.Get(own.Name); before != "" {
				b.Set("exported_"+own.Name, before)
			}
			b.Set(own.Name, own.Value)
		})
		one := b.Labels()
		i, known := index[one.String()]
		if !known {
			i = len(out)
			index[one.String()] = i
			out = append(out, promapi.Series{Labels: one})
		}
		if n := len(out[i].Times); n > 0 && out[i].Times[n-1] == at {
			return // Twice in one body: the first counts.
		}
		out[i].Times, out[i].Values = append(out[i].Times, at), append(out[i].Values, v)
	}
	for n, body := range bodies {
		at := begin + int64(n)*15_000
		p, err := textparse.New(body, contentType, labels.NewSymbolTable(), textparse.ParserOptions{FallbackContentType: "text/plain"})
		require.NoError(t, err)
		for {
			entry, err := p.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err)
			if entry == textparse.EntrySeries {
				_, _, v := p.Series()
				var l labels.Labels
				p.Labels(&l)
				add(l, at, v)
			}
		}
		add(labels.FromStrings("__name__", "up"), at, 1)
	}
	return out
}

// points are the points of metrics as lines, sorted. Descriptions are those of the HELP lines
// for families that the catalogue does not know, and a history has none.
func points(metrics pmetric.Metrics) []string {
	var out []string
	for _, rm := range metrics.ResourceMetrics().All() {
		resource := attributes(rm.Resource().Attributes())
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				head := resource + " " + m.Name() + " " + m.Unit() + " " + m.Type().String()
				number := func(p pmetric.NumberDataPoint) {
					out = append(out, fmt.Sprint(head, attributes(p.Attributes()), p.StartTimestamp(), p.Timestamp(), p.Flags(), p.DoubleValue()))
				}
				switch m.Type() {
				case pmetric.MetricTypeGauge:
					for _, p := range m.Gauge().DataPoints().All() {
						number(p)
					}
				case pmetric.MetricTypeSum:
					for _, p := range m.Sum().DataPoints().All() {
						number(p)
					}
				case pmetric.MetricTypeHistogram:
					for _, p := range m.Histogram().DataPoints().All() {
						out = append(out, fmt.Sprint(head, attributes(p.Attributes()), p.StartTimestamp(), p.Timestamp(), p.Flags(), p.Count(), p.Sum(), p.BucketCounts().AsRaw(), p.ExplicitBounds().AsRaw()))
					}
				case pmetric.MetricTypeSummary:
					for _, p := range m.Summary().DataPoints().All() {
						out = append(out, fmt.Sprint(head, attributes(p.Attributes()), p.StartTimestamp(), p.Timestamp(), p.Flags(), p.Count(), p.Sum()))
					}
				default:
				}
			}
		}
	}
	// The number of lines of the body is not the same: what the receiver does not need is not
	// read from a history.
	out = slices.DeleteFunc(out, func(line string) bool { return strings.Contains(line, " vllm.scrape.samples ") })
	slices.Sort(out)
	return out
}

func attributes(m pcommon.Map) string {
	var out []string
	for name, value := range m.All() {
		out = append(out, name+"="+value.AsString())
	}
	slices.Sort(out)
	return "{" + strings.Join(out, ",") + "}"
}

// without are the lines of a that b does not have, without their resources.
func without(a, b []string) (out []string) {
	for _, line := range a {
		if _, found := slices.BinarySearch(b, line); !found {
			_, line, _ = strings.Cut(line, "} ")
			out = append(out, line)
		}
	}
	return out
}

// same replays bodies as they were, and as they are written from what Prometheus stored of
// them. The points are the same.
func same(t *testing.T, name string, bodies [][]byte, contentType string) {
	t.Helper()
	target := labels.FromStrings("instance", "a:8000", "job", "vllm", "namespace", "chat", "pod", "chat-0")
	begin := time.Date(2027, time.January, 1, 0, 0, 0, 0, time.UTC).UnixMilli()
	series := scraped(t, bodies, contentType, begin, target)
	rand.New(rand.NewPCG(1, 1)).Shuffle(len(series), func(i, j int) { series[i], series[j] = series[j], series[i] })
	config := vllmreceiver.NewFactory().CreateDefaultConfig().(*vllmreceiver.Config)
	replays, err := probe.NewReplays(config)
	require.NoError(t, err)
	attributes := attributesOf(target, false)
	plain, err := replays.Target("http://a:8000", attributes)
	require.NoError(t, err)
	written, err := replays.Target(endpointOf("a:8000", attributes), attributes)
	require.NoError(t, err)
	p := history.NewPart(&history.Target{Labels: target}, series)
	b := newBody(p, nil)
	require.Len(t, p.Times, len(bodies), name)
	for n, at := range p.Times {
		when := time.UnixMilli(at).UTC()
		text, samples := b.at(at)
		require.Positive(t, samples)
		want, got := points(plain.Scrape(when, bodies[n], "0.20.0")), points(written.Scrape(when, text, "0.20.0"))
		require.NotEmpty(t, want, name)
		missing, extra := without(want, got), without(got, want)
		if !assert.Empty(t, missing, "%s, scrape %d: missing", name, n) || !assert.Empty(t, extra, "%s, scrape %d: extra", name, n) {
			return
		}
	}
}

func TestTheTextOfAHistoryGivesThePointsOfTheBodies(t *testing.T) {
	for _, dialect := range surface.Dialects() {
		simulated, err := vllmsim.New(vllmsim.Config{Dialect: dialect, Engines: 1, Rate: 5, Start: time.Date(2026, time.December, 31, 23, 0, 0, 0, time.UTC)})
		if err != nil {
			t.Fatal(dialect, err)
		}
		var bodies [][]byte
		contentType := ""
		for range 5 {
			simulated.Advance(15 * time.Second)
			body, kind, err := simulated.Targets()[0].Body()
			require.NoError(t, err, dialect)
			bodies, contentType = append(bodies, body), kind
		}
		same(t, dialect, bodies, contentType)
	}
}

// The same on the recorded bodies of real servers, where they are, else on the project's own.
func TestTheTextOfAHistoryGivesThePointsOfRealBodies(t *testing.T) {
	n := 0
	for _, body := range captures.Bodies(t) {
		if body.OpenMetrics() {
			continue
		}
		same(t, body.Name, [][]byte{body.Text, body.Text}, "text/plain; version=0.0.4")
		n++
	}
	assert.Greater(t, n, 5)
}
