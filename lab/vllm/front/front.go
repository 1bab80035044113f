// Package front is a gateway before a vLLM server: it passes requests on, holds them back on command,
// and measures them by the conventions for generative AI, as Envoy AI Gateway does.
package front

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// Gateway is a handler of HTTP requests.
type Gateway struct {
	// Hold is for how long a request waits before it goes to the server, as a time.Duration.
	Hold atomic.Int64

	proxy        *httputil.ReverseProxy
	reader       *sdk.ManualReader
	whole, first metric.Float64Histogram
}

// New returns a gateway before the server at an address.
func New(server string) (*Gateway, error) {
	to, err := url.Parse(server)
	if err != nil {
		return nil, err
	}
	g := &Gateway{proxy: httputil.NewSingleHostReverseProxy(to), reader: sdk.NewManualReader()}
	g.proxy.FlushInterval = -1 // Each token at once.
	meter := sdk.NewMeterProvider(sdk.WithReader(g.reader)).Meter("gateway")
	bounds := metric.WithExplicitBucketBoundaries(.01, .04, .16, .64, 2.56, 10.24, 40.96)
	if g.whole, err = meter.Float64Histogram("gen_ai.server.request.duration", metric.WithUnit("s"), bounds); err != nil {
		return nil, err
	}
	g.first, err = meter.Float64Histogram("gen_ai.server.time_to_first_token", metric.WithUnit("s"), bounds)
	return g, err
}

// ServeHTTP passes a request on.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	began := time.Now()
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var asked struct{ Model string }
	_ = json.Unmarshal(raw, &asked) // The server says what is wrong.
	r.Body = io.NopCloser(bytes.NewReader(raw))
	time.Sleep(time.Duration(g.Hold.Load()))
	attributes := []attribute.KeyValue{attribute.String("gen_ai.request.model", asked.Model)}
	seen := &watched{ResponseWriter: w, begins: func() {
		g.first.Record(r.Context(), time.Since(began).Seconds(), metric.WithAttributes(attributes...))
	}}
	g.proxy.ServeHTTP(seen, r)
	if seen.failed || !seen.begun {
		attributes = append(attributes, attribute.String("error.type", "_OTHER"))
	}
	g.whole.Record(r.Context(), time.Since(began).Seconds(), metric.WithAttributes(attributes...))
}

// watched notes whether an answer is an error, and calls begins at the first byte of another one.
type watched struct {
	http.ResponseWriter

	begins        func()
	failed, begun bool
}

func (w *watched) WriteHeader(status int) {
	w.failed = status >= http.StatusBadRequest
	w.ResponseWriter.WriteHeader(status)
}

func (w *watched) Write(p []byte) (int, error) {
	if !w.failed && !w.begun && len(p) > 0 {
		w.begun = true
		w.begins()
	}
	return w.ResponseWriter.Write(p)
}

// Unwrap lets each part be sent at once.
func (w *watched) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Metrics are what the gateway has measured at a time, as it would push them.
func (g *Gateway) Metrics(ctx context.Context, at time.Time) (pmetric.Metrics, error) {
	out := pmetric.NewMetrics()
	var all metricdata.ResourceMetrics
	if err := g.reader.Collect(ctx, &all); err != nil {
		return out, err
	}
	rm := out.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr("service.name", "gateway")
	scope := rm.ScopeMetrics().AppendEmpty()
	for _, from := range all.ScopeMetrics {
		for _, m := range from.Metrics {
			to := scope.Metrics().AppendEmpty()
			to.SetName(m.Name)
			to.SetUnit(m.Unit)
			to.SetEmptyHistogram().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
			for _, p := range m.Data.(metricdata.Histogram[float64]).DataPoints {
				point := to.Histogram().DataPoints().AppendEmpty()
				point.SetTimestamp(pcommon.NewTimestampFromTime(at))
				point.SetStartTimestamp(pcommon.NewTimestampFromTime(p.StartTime))
				point.SetCount(p.Count)
				point.SetSum(p.Sum)
				point.ExplicitBounds().FromRaw(p.Bounds)
				point.BucketCounts().FromRaw(p.BucketCounts)
				for _, a := range p.Attributes.ToSlice() {
					point.Attributes().PutStr(string(a.Key), a.Value.String())
				}
			}
		}
	}
	return out, nil
}
