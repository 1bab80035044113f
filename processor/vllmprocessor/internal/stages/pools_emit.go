package stages

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.uber.org/zap"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/internal/refused"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/delivery"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
)

// failureLogInterval is the least time between two warnings about refused metrics.
const failureLogInterval = time.Minute

// warnings are what was logged about the pools.
type poolWarnings struct {
	tooMany, notFound bool
	// failures counts those since the last warning, which was at logged.
	failures int
	logged   time.Time
}

// tick sends the metrics of the pools. It holds no lock while it sends, and waits for
// the consumer for one interval.
func (s *Pools) tick(ctx context.Context) {
	call := &delivery.Call{}
	metrics := s.Collect(ctx, call)
	if metrics.MetricCount() == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, s.interval)
	defer cancel()
	points := metrics.DataPointCount()
	err := s.Next.ConsumeMetrics(ctx, metrics)
	s.Telemetry.DroppedEnds(call.Done(err, refused.Share(1)))
	if err == nil || errors.Is(ctx.Err(), context.Canceled) {
		return
	}
	s.Telemetry.ProcessorVllmPoolLostPoints.Add(ctx, int64(points))
	s.warnings.failures++
	now := s.Now()
	if now.Sub(s.warnings.logged) < failureLogInterval {
		return
	}
	s.Logger.Warn("the next component did not take the metrics of the pools",
		zap.Error(err), zap.Int("failures_since_last_message", s.warnings.failures))
	s.warnings.logged, s.warnings.failures = now, 0
}

// Collect computes the metrics of the pools for a call of the next consumer.
func (s *Pools) Collect(ctx context.Context, call *delivery.Call) pmetric.Metrics {
	now := s.Now()
	out := delivery.NewOutput(now.UnixNano(), 0)
	s.mu.Lock()
	sums, leftOut := s.totals.Evaluate(int64(now.Sub(s.began)))
	out.Append(&s.series, sums, now.UnixNano())
	notFound := s.totals.NotFound()
	s.mu.Unlock()
	if s.diagnosis != nil {
		// Both numbers are about the same servers.
		leftOut = max(leftOut, s.diagnose(ctx, now, out))
	}
	s.warn(ctx, leftOut, notFound)

	metrics := pmetric.NewMetrics()
	rm := metrics.ResourceMetrics().AppendEmpty()
	s.resource.CopyTo(rm.Resource())
	rm.SetSchemaUrl(catalog.SchemaURL)
	values, ends := s.history.Put(out, call, metrics, &input.Batch{Ends: -1}, s.BuildInfo.Version)
	s.Telemetry.Derived(ctx, values, ends)
	return metrics
}

// diagnose appends the condition of the pools, and returns how many servers were left out
// because there are too many pools. A server that does not answer any more counts, other
// than for the sums, until no batch at all has arrived about it for max_staleness.
func (s *Pools) diagnose(ctx context.Context, now time.Time, out *delivery.Output) (leftOut int) {
	live := func(visit func(server *Server)) {
		s.Each(func(server *Server) {
			if now.Sub(server.Arrived) <= s.MaxStaleness {
				visit(server)
			}
		})
	}
	return s.diagnosis.Append(ctx, now, s.resource.Attributes(), out, live, s.poolOf)
}

// poolOf returns the attributes of the pool that an engine belongs to: its own, or
// those of its server.
func (s *Pools) poolOf(engine []input.Attribute, server *Server) []input.Attribute {
	of := make([]input.Attribute, 0, len(s.groupBy))
	for _, name := range s.groupBy {
		value := (&input.Group{Attributes: engine}).Value(name)
		if known, has := server.Attributes.Get(name); value == "" && has {
			value = known.AsString()
		}
		if value != "" {
			of = append(of, input.Attribute{Name: name, Value: value})
		}
	}
	return of
}

// warn logs once what a user can correct.
func (s *Pools) warn(ctx context.Context, leftOut int, notFound []string) {
	if leftOut > 0 {
		s.Telemetry.ProcessorVllmPoolLeftOut.Add(ctx, int64(leftOut))
		if !s.warnings.tooMany {
			s.warnings.tooMany = true
			s.Logger.Warn(fmt.Sprintf("there are more than %d pools, and the servers of the others are left out; "+
				"write attributes in pool::group_by that many servers share", MaxPools))
		}
	}
	if len(notFound) > 0 && !s.warnings.notFound {
		s.warnings.notFound = true
		s.Logger.Warn(fmt.Sprintf("no server has an attribute %s, which pool::group_by names, and servers are grouped without it; "+
			"write an attribute of their points or of their resource", strings.Join(notFound, " or ")))
	}
}
