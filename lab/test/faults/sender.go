package faults

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
)

// senderFaults are caused by senders of OTLP into the same pipeline and by lists of
// targets.
func senderFaults() []Fault {
	return []Fault{
		{Name: "OTLP with many timestamps", What: "20,000 points of one resource, then 3,000 timestamps", Heavy: true, Short: true, Begin: sending(func(send sendFunc) error {
			first := newBatch("many-timestamps")
			now := time.Now()
			for i := range 20_000 {
				first.point(now, fmt.Sprintf("model-%d", i))
			}
			if err := send(first.metrics); err != nil {
				return err
			}
			second := newBatch("many-timestamps")
			for i := range 3_000 {
				second.point(now.Add(time.Duration(i+1)*time.Millisecond), fmt.Sprintf("model-%d", i))
			}
			return send(second.metrics)
		})},
		{Name: "OTLP with both at once", What: "20,000 points and 3,000 timestamps of one resource in one request", Heavy: true, Begin: sending(func(send sendFunc) error {
			b := newBatch("both-at-once")
			now := time.Now()
			for i := range 20_000 {
				b.point(now.Add(time.Duration(i%3_000)*time.Millisecond), fmt.Sprintf("model-%d", i))
			}
			return send(b.metrics)
		})},
		{Name: "OTLP with a large resource", What: "100,000 attributes on one resource, ten times", Heavy: true, Short: true, Begin: sending(func(send sendFunc) error {
			attributes := map[string]any{"service.name": "vllm", "service.instance.id": "large-resource"}
			for i := range 100_000 {
				attributes[fmt.Sprintf("attribute-%d", i)] = "v"
			}
			for range 10 {
				b := newBatch("large-resource")
				// Not one by one: each would be looked for among the ones before.
				if err := b.metrics.ResourceMetrics().At(0).Resource().Attributes().FromRaw(attributes); err != nil {
					return err
				}
				b.point(time.Now(), "m")
				if err := send(b.metrics); err != nil {
					return err
				}
			}
			return nil
		})},
		{Name: "OTLP with new resources", What: "20 requests of 1,000 resources that never come again", Heavy: true, Begin: sending(func(send sendFunc) error {
			for n := range 20 {
				all := pmetric.NewMetrics()
				for i := range 1000 {
					b := newBatch(fmt.Sprintf("new-%d-%d", n, i))
					b.point(time.Now(), "m")
					b.metrics.ResourceMetrics().MoveAndAppendTo(all.ResourceMetrics())
				}
				if err := send(all); err != nil {
					return err
				}
			}
			return nil
		})},
		{Name: "OTLP with long values", What: "thirty times an attribute of 1 MB, each another one", Heavy: true, Begin: sending(func(send sendFunc) error {
			// Values of 8 MB at this pace take more than the limit in the OTLP receiver and the
			// queue alone, without any component of this project.
			for n := range 30 {
				b := newBatch("long-values")
				b.point(time.Now(), strconv.Itoa(n)+strings.Repeat("x", 1<<20))
				if err := send(b.metrics); err != nil {
					return err
				}
			}
			return nil
		})},
		{Name: "discovery without end", What: "HTTP discovery whose list never ends", Heavy: true, Short: true, Says: says(`larger than the limit of \d+ bytes`), Begin: discovered(func(rw http.ResponseWriter, r *http.Request, _ string) {
			_, _ = io.WriteString(rw, `[{"targets":["127.0.0.1:1"`)
			chunk := []byte(strings.Repeat(`,"127.0.0.1:1"`, 4000))
			for r.Context().Err() == nil {
				if _, err := rw.Write(chunk); err != nil {
					return
				}
			}
		})},
		{Name: "discovery that unpacks", What: "a compressed list of 100 KB that unpacks to 100 MB", Says: says(`larger than the limit of \d+ bytes|not a JSON list`), Begin: func(w *World) (Given, error) {
			list := zip(strings.NewReader(`[{"targets":["127.0.0.1:1"` + strings.Repeat(`,"127.0.0.1:1"`, 100<<20/14) + `]}]`))
			return discovered(func(rw http.ResponseWriter, _ *http.Request, _ string) {
				rw.Header().Set("Content-Encoding", "gzip")
				_, _ = rw.Write(list)
			})(w)
		}},
		{
			Name: "discovery that is silent", What: "HTTP discovery takes the request and does not answer", Says: says("discovery.*(timeout|deadline|did not answer)"),
			Begin: discovered(func(_ http.ResponseWriter, r *http.Request, _ string) { <-r.Context().Done() }),
		},
		{Name: "discovery of 20,000 targets", What: "all of them refuse the connection", Heavy: true, Says: says("limits::targets"), Begin: discovered(func(rw http.ResponseWriter, _ *http.Request, _ string) {
			targets := make([]string, 20_000)
			for i := range targets {
				targets[i] = fmt.Sprintf("127.0.%d.%d:1", 1+i/250, 1+i%250)
			}
			_ = json.NewEncoder(rw).Encode([]map[string]any{{"targets": targets}})
		})},
		{Name: "discovery that says HTML", What: "HTTP discovery answers with a page of a web server", Says: says("list could not be read.*content type"), Begin: discovered(func(rw http.ResponseWriter, _ *http.Request, _ string) {
			rw.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(rw, "<html></html>")
		})},
		{Name: "an interval of 1 ms", What: "a discovered target with __scrape_interval__ of 1 ms", Says: says("interval"), Check: askedSeldom, Begin: discovered(func(rw http.ResponseWriter, _ *http.Request, addr string) {
			_ = json.NewEncoder(rw).Encode([]map[string]any{{
				"targets": []string{addr}, "labels": map[string]string{"__scrape_interval__": "1ms", "__scrape_timeout__": "1ms"},
			}})
		})},
	}
}

// askedSeldom fails where a target was asked more often than once a second, which
// is the shortest interval of the configuration. No such run takes a minute.
func askedSeldom(g *Given, _ *Sink) error {
	if asked := g.Asked(); asked > 60 || asked == 0 {
		return fmt.Errorf("the target was asked %d times", asked)
	}
	return nil
}

// discovered is a discovery over HTTP that a handler answers. The handler gets the
// address of a working target, whose requests are counted.
func discovered(list func(rw http.ResponseWriter, r *http.Request, addr string)) func(*World) (Given, error) {
	return func(w *World) (Given, error) {
		var asked atomic.Int64
		addr, err := w.HTTP(func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("Content-Type", text)
			_, _ = io.WriteString(rw, body(1700000000, asked.Add(1)))
		})
		if err != nil {
			return Given{}, err
		}
		url, err := w.HTTP(func(rw http.ResponseWriter, r *http.Request) {
			rw.Header().Set("Content-Type", "application/json")
			list(rw, r, addr)
		})
		return Given{
			Discovery: map[string]any{"http_sd_configs": []any{map[string]any{"url": "http://" + url + "/targets", "refresh_interval": "5s"}}},
			Asked:     func() int { return int(asked.Load()) },
		}, err
	}
}

// sendFunc sends one request of OTLP.
type sendFunc func(pmetric.Metrics) error

// sending is a sender in the same pipeline. The collector may refuse what it
// sends; that the sender gets an answer is what matters.
func sending(all func(send sendFunc) error) func(*World) (Given, error) {
	return func(*World) (Given, error) {
		return Given{Push: func(ctx context.Context, url string) error {
			return all(func(md pmetric.Metrics) error {
				content, err := pmetricotlp.NewExportRequestFromMetrics(md).MarshalProto()
				if err != nil {
					return err
				}
				request, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/metrics", bytes.NewReader(content))
				if err != nil {
					return err
				}
				request.Header.Set("Content-Type", "application/x-protobuf")
				response, err := http.DefaultClient.Do(request)
				if err != nil {
					return err
				}
				_, _ = io.Copy(io.Discard, response.Body)
				return response.Body.Close()
			})
		}}, nil
	}
}

// batch is the metrics of one resource that looks like a vLLM server.
type batch struct {
	metrics pmetric.Metrics
	gauge   pmetric.NumberDataPointSlice
	counter pmetric.NumberDataPointSlice
}

func newBatch(instance string) *batch {
	b := &batch{metrics: pmetric.NewMetrics()}
	rm := b.metrics.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr("service.name", "vllm")
	rm.Resource().Attributes().PutStr("service.instance.id", instance)
	sm := rm.ScopeMetrics().AppendEmpty()
	g := sm.Metrics().AppendEmpty()
	g.SetName("vllm.num_requests_running")
	b.gauge = g.SetEmptyGauge().DataPoints()
	c := sm.Metrics().AppendEmpty()
	c.SetName("vllm.generation_tokens")
	sum := c.SetEmptySum()
	sum.SetIsMonotonic(true)
	sum.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	b.counter = sum.DataPoints()
	return b
}

// point adds a gauge and a counter of one model.
func (b *batch) point(at time.Time, model string) {
	for _, points := range []pmetric.NumberDataPointSlice{b.gauge, b.counter} {
		p := points.AppendEmpty()
		p.SetTimestamp(pcommon.NewTimestampFromTime(at))
		p.SetStartTimestamp(pcommon.NewTimestampFromTime(at.Add(-time.Hour)))
		p.SetDoubleValue(1)
		p.Attributes().PutStr("model_name", model)
		p.Attributes().PutStr("engine", "0")
	}
}
