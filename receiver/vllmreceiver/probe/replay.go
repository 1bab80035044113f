package probe

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	tracenoop "go.opentelemetry.io/otel/trace/noop"
	"go.uber.org/zap"

	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/fetch"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/scrape"
)

// Replays turn bodies that were recorded into what the receiver would have emitted for them
// at their times. The targets of one Replays share the memory of layouts, as the targets of a
// receiver do.
type Replays struct{ group *scrape.Group }

// NewReplays returns replays with the settings of a receiver.
func NewReplays(config *vllmreceiver.Config) (*Replays, error) {
	group, err := newGroup(config, component.TelemetrySettings{
		Logger: zap.NewNop(), TracerProvider: tracenoop.NewTracerProvider(), MeterProvider: metricnoop.NewMeterProvider(),
		Resource: pcommon.NewResource(),
	})
	return &Replays{group}, err
}

// Replay is one target whose recorded bodies are replayed in the order of their times. It is
// not safe for concurrent use; those of several targets may run at the same time.
type Replay struct {
	target   *scrape.Target
	now      time.Time
	recorded recorded
}

// recorded is what a server answered at a time. A replay sends no canaries.
type recorded struct {
	scrape.Origin
	body    []byte
	version string
	failure *fetch.Error
}

func (r *recorded) Metrics(_ context.Context, body *bytes.Buffer, _ bool) (fetch.Answer, error) {
	if r.failure != nil {
		return fetch.Answer{}, r.failure
	}
	body.Reset()
	body.Write(r.body)
	answer := fetch.Answer{ContentType: fetch.Accept, Release: func() {}}
	if bytes.HasSuffix(bytes.TrimSpace(r.body), []byte("# EOF")) {
		answer.ContentType = "application/openmetrics-text"
	}
	return answer, nil
}

func (r *recorded) Version(context.Context) (string, error) { return r.version, nil }

func (r *recorded) Load(context.Context) (float64, error) { return 0, notRecorded }

func (r *recorded) Close() {}

var notRecorded = &fetch.Error{Outcome: fetch.OutcomeOther, Message: "this was not recorded"}

// Target begins the replay of one target, whose endpoint is written as in the configuration.
// The attributes are added to its resource, as resource_attributes are.
func (r *Replays) Target(endpoint string, attributes map[string]any) (*Replay, error) {
	address, err := scrape.ParseEndpoint(endpoint)
	if err != nil {
		return nil, fmt.Errorf("endpoint: %w", err)
	}
	one := &Replay{}
	one.target = r.group.NewTarget(scrape.Server{
		Address: address, Attributes: attributes, Origin: &one.recorded, Now: func() time.Time { return one.now },
	})
	return one, nil
}

// Scrape returns the points of a body that the server showed at a time, in the Prometheus text
// format or in OpenMetrics, which ends with "# EOF". version is what GET /version answered, empty if that is not known. A body that
// is not metrics is a failed scrape, and its points say so.
func (r *Replay) Scrape(at time.Time, body []byte, version string) pmetric.Metrics {
	return r.scrape(at, recorded{body: body, version: version})
}

// Fail returns the points of a scrape that failed at a time. outcome is a value of the
// attribute of vllm.scrape.failure, "refused" for example; other if it is unknown or empty.
func (r *Replay) Fail(at time.Time, outcome string) pmetric.Metrics {
	failed := &fetch.Error{Outcome: fetch.OutcomeOther, Message: "the scrape failed"}
	for _, o := range fetch.Outcomes() {
		if o.String() == outcome {
			failed.Outcome = o
		}
	}
	return r.scrape(at, recorded{failure: failed})
}

func (r *Replay) scrape(at time.Time, answer recorded) pmetric.Metrics {
	r.now, r.recorded = at, answer
	// The error repeats what the points of a failed scrape show.
	found, _ := r.target.Scrape(context.Background())
	r.target.Done()
	return found.Metrics
}

// End returns the ends of all series, as for a target that is no longer scraped.
func (r *Replay) End(at time.Time) pmetric.Metrics {
	r.now = at
	out := pmetric.NewMetrics()
	r.target.End(out)
	return out
}

// Close frees the memory of the target.
func (r *Replay) Close() {
	r.target.Stop()
	r.target.Close()
}
