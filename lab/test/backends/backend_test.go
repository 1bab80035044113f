//go:build e2e

package backends

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/golang/snappy"
	"github.com/prometheus/otlptranslator"
	"github.com/prometheus/prometheus/prompb"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
)

// recorder is a stand-in for a backend: it accepts and stores OTLP, remote writes and
// requests for OAuth tokens.
type recorder struct {
	url string

	mu       sync.Mutex
	requests []request
	tokens   []url.Values
	otlp     []pmetric.Metrics
	written  []prompb.TimeSeries
	errs     []error
	refusing bool
}

// request is the path and the headers of a request, and the data points and bytes, before compression, of one with OTLP.
type request struct {
	path          string
	header        http.Header
	points, bytes int
}

// accessToken is the token that the recorder issues.
const accessToken = "token-of-the-hour"

func newRecorder(t *testing.T) *recorder {
	t.Helper()
	r := &recorder{}
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	r.url = server.URL
	return r
}

func (r *recorder) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.refusing {
		http.Error(w, "come back later", http.StatusServiceUnavailable)
		return
	}
	if req.URL.Path == "/token" || req.URL.Path == "/tenant/oauth2/v2.0/token" {
		if err := req.ParseForm(); err != nil {
			r.errs = append(r.errs, err)
		}
		r.tokens = append(r.tokens, req.PostForm)
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"access_token":%q,"token_type":"Bearer","expires_in":3600}`, accessToken)
		return
	}
	if err := r.take(req); err != nil {
		r.errs = append(r.errs, err)
		http.Error(w, err.Error(), http.StatusBadRequest)
	}
}

func (r *recorder) take(req *http.Request) error {
	content, err := io.ReadAll(req.Body)
	if err != nil {
		return err
	}
	r.requests = append(r.requests, request{path: req.URL.Path, header: req.Header.Clone()})
	switch encoding := req.Header.Get("Content-Encoding"); encoding {
	case "snappy":
		decoded, err := snappy.Decode(nil, content)
		if err != nil {
			return err
		}
		var write prompb.WriteRequest
		if err := write.Unmarshal(decoded); err != nil {
			return err
		}
		r.written = append(r.written, write.Timeseries...)
		return nil
	case "gzip":
		return r.takeOTLP(gunzip(content))
	case "":
		return r.takeOTLP(content, nil)
	default:
		return fmt.Errorf("unexpected encoding %q", encoding)
	}
}

func (r *recorder) takeOTLP(content []byte, err error) error {
	if err != nil {
		return err
	}
	export := pmetricotlp.NewExportRequest()
	if err := export.UnmarshalProto(content); err != nil {
		return err
	}
	r.otlp = append(r.otlp, export.Metrics())
	last := &r.requests[len(r.requests)-1]
	last.points, last.bytes = export.Metrics().DataPointCount(), len(content)
	return nil
}

// refuse makes the backend answer everything with 503, or accept it again.
func (r *recorder) refuse(refusing bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refusing = refusing
}

// received returns what has arrived so far.
func (r *recorder) received() received {
	points := r.points()
	r.mu.Lock()
	defer r.mu.Unlock()
	return received{points: points, series: slices.Clone(r.written), requests: slices.Clone(r.requests)}
}

// point is a data point with its metric, scope and resource.
type point struct {
	resource, attributes pcommon.Map
	name, unit           string
	kind                 pmetric.MetricType
	temporality          pmetric.AggregationTemporality
	monotonic            bool
	start, at            pcommon.Timestamp
	noValue              bool
	// value is the sum of a histogram; count and buckets are its own.
	value           float64
	count           uint64
	bounds, buckets int
}

// derived reports whether the processor made the point.
func (p point) derived() bool {
	_, sent := p.attributes.Get(sent)
	return !sent && derivedNames()[p.name]
}

// strategies are Prometheus's ways to translate names.
var strategies = []otlptranslator.TranslationStrategyOption{
	otlptranslator.UnderscoreEscapingWithSuffixes, otlptranslator.UnderscoreEscapingWithoutSuffixes,
	otlptranslator.NoUTF8EscapingWithSuffixes, otlptranslator.NoTranslation,
}

// derivedNames are the names of derived metrics in each of them.
var derivedNames = sync.OnceValue(func() map[string]bool {
	names := map[string]bool{}
	for _, m := range catalog.All() {
		if m.Derived() {
			for _, strategy := range strategies {
				names[nameIn(m, strategy)] = true
			}
		}
	}
	return names
})

// points returns all points received by OTLP, in the order of their arrival.
func (r *recorder) points() []point {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []point
	for _, metrics := range r.otlp {
		for _, rm := range metrics.ResourceMetrics().All() {
			for _, sm := range rm.ScopeMetrics().All() {
				for _, m := range sm.Metrics().All() {
					all = append(all, pointsOf(rm.Resource().Attributes(), m)...)
				}
			}
		}
	}
	return all
}

func pointsOf(resource pcommon.Map, m pmetric.Metric) []point {
	var all []point
	base := point{resource: resource, name: m.Name(), unit: m.Unit(), kind: m.Type()}
	numbers := func(points pmetric.NumberDataPointSlice) {
		for _, p := range points.All() {
			one := base
			one.attributes, one.start, one.at, one.noValue = p.Attributes(), p.StartTimestamp(), p.Timestamp(), p.Flags().NoRecordedValue()
			one.value = p.DoubleValue()
			if p.ValueType() == pmetric.NumberDataPointValueTypeInt {
				one.value = float64(p.IntValue())
			}
			all = append(all, one)
		}
	}
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		numbers(m.Gauge().DataPoints())
	case pmetric.MetricTypeSum:
		base.temporality, base.monotonic = m.Sum().AggregationTemporality(), m.Sum().IsMonotonic()
		numbers(m.Sum().DataPoints())
	case pmetric.MetricTypeHistogram:
		base.temporality = m.Histogram().AggregationTemporality()
		for _, p := range m.Histogram().DataPoints().All() {
			one := base
			one.attributes, one.start, one.at, one.noValue = p.Attributes(), p.StartTimestamp(), p.Timestamp(), p.Flags().NoRecordedValue()
			one.value, one.count = p.Sum(), p.Count()
			one.bounds, one.buckets = p.ExplicitBounds().Len(), p.BucketCounts().Len()
			all = append(all, one)
		}
	case pmetric.MetricTypeSummary:
		for _, p := range m.Summary().DataPoints().All() {
			one := base
			one.attributes, one.start, one.at, one.noValue = p.Attributes(), p.StartTimestamp(), p.Timestamp(), p.Flags().NoRecordedValue()
			one.value, one.count = p.Sum(), p.Count()
			all = append(all, one)
		}
	default:
		all = append(all, base)
	}
	return all
}

func gunzip(content []byte) ([]byte, error) {
	reader, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(reader)
}

// claimsOf reads what a signed token claims, without checking the signature.
func claimsOf(t *testing.T, token string) map[string]any {
	t.Helper()
	parts := strings.Split(token, ".")
	require.Len(t, parts, 3)
	content, err := base64.RawURLEncoding.DecodeString(parts[1])
	require.NoError(t, err)
	claims := map[string]any{}
	require.NoError(t, json.Unmarshal(content, &claims))
	return claims
}
