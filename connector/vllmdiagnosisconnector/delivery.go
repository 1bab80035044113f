package vllmdiagnosisconnector

import (
	"context"
	"maps"
	"slices"
	"time"

	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.uber.org/zap"

	"github.com/otelcol-vllm/otelcol-vllm/connector/vllmdiagnosisconnector/internal/collect"
	"github.com/otelcol-vllm/otelcol-vllm/connector/vllmdiagnosisconnector/internal/emit"
	"github.com/otelcol-vllm/otelcol-vllm/connector/vllmdiagnosisconnector/internal/metadata"
	"github.com/otelcol-vllm/otelcol-vllm/connector/vllmdiagnosisconnector/internal/track"
)

// record is a log record that is on its way.
type record struct {
	resource string
	origin   emit.Origin
	log      plog.LogRecord
	severity int
	// size is what it takes while it is kept, 0 before.
	size int
}

// batch is what follows from one call.
type batch struct {
	now     time.Time
	records []record
	// kept are origins that outlive the call, by the index of their metrics.
	kept map[int]*emit.Origin
}

func (c *diagnosisConnector) newBatch() *batch {
	return &batch{now: c.now(), kept: map[int]*emit.Origin{}}
}

func (b *batch) add(key collect.Key, e *engine, origin emit.Origin, t *track.Transition) {
	b.records = append(b.records, record{
		resource: key.Resource, origin: origin, severity: t.To.Severity, log: emit.NewRecord(&key, e.attributes, t, b.now),
	})
}

// keep is an origin that outlives the call: the metrics are not ours.
func (b *batch) keep(source int, origin emit.Origin) *emit.Origin {
	if b.kept[source] == nil {
		kept := origin.Keep()
		b.kept[source] = &kept
	}
	return b.kept[source]
}

// deliver hands on the records of a call, and before them those that were refused.
// What is refused is kept for the next call, as whole records and not by the package refused:
// that drops the end of a series that lives again, and a record stays true.
func (c *diagnosisConnector) deliver(ctx context.Context, batch *batch) error {
	c.mu.Lock()
	if len(batch.records) == 0 && batch.now.Before(c.pending.again) {
		c.mu.Unlock()
		return nil
	}
	earlier := c.pending.take()
	c.mu.Unlock()
	all := slices.Concat(earlier, batch.records)
	if len(all) == 0 {
		return nil
	}
	writer := emit.NewWriter(metadata.ScopeName, c.version)
	for i := range all {
		writer.Add(all[i].resource, all[i].origin, all[i].log)
	}
	err := c.next.ConsumeLogs(ctx, writer.Logs)
	if err == nil {
		c.telemetry.deliver(ctx, all)
		c.mu.Lock()
		c.warned.refused, c.pending.wait = false, 0
		c.mu.Unlock()
		return nil
	}
	c.telemetry.fail(ctx, batch.records)
	c.refused(ctx, all, batch.now, err)
	if len(batch.records) == 0 {
		// These metrics have nothing to do with it.
		return nil
	}
	return err
}

// refused keeps records that were refused, unless they would be refused each time.
func (c *diagnosisConnector) refused(ctx context.Context, records []record, now time.Time, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if consumererror.IsPermanent(err) {
		c.telemetry.drop(ctx, records)
		c.logger.Warn("the next component refused events of the diagnosis permanently, and they are lost; the error says why",
			zap.Int("events", len(records)), zap.Error(err))
		return
	}
	if !c.warned.refused {
		c.warned.refused = true
		c.logger.Warn("events of the diagnosis were refused; they are kept and delivered with later points of any server. "+
			"This is logged again after the next success", zap.Int("events", len(records)), zap.Error(err))
	}
	c.pending.again = now.Add(c.pending.wait)
	c.pending.wait = min(max(2*c.pending.wait, firstWait), longestWait)
	if dropped := c.pending.giveBack(records); len(dropped) > 0 {
		c.telemetry.drop(ctx, dropped)
		c.warnOnce(&c.warned.pending, "no more refused events of the diagnosis can be kept: the oldest events of the servers with the most are lost; "+
			"give the exporter of the logs a sending_queue")
	}
}

// Kept records alone are not tried with each call: a component that takes its time to
// refuse them would hold up the metrics of all servers. The first try is at once; then the
// wait doubles with each refusal.
const (
	firstWait   = 5 * time.Second
	longestWait = time.Minute
)

// maxPending bounds what is kept of refused records, in bytes.
const maxPending = 4 << 20

// pending are records that were refused, the oldest first. internal/refused would not do: an event is
// kept as it was, where the end of a series is written again with a later time.
type pending struct {
	limit   int
	records []record
	// again is when kept records alone are tried the next time, and wait is how long they
	// wait where that fails.
	wait  time.Duration
	again time.Time
}

// take returns all records, which are no longer pending.
func (p *pending) take() []record {
	records := p.records
	p.records = nil
	return records
}

// giveBack keeps records before those that were refused in that time, and returns those
// for which there is no room.
func (p *pending) giveBack(records []record) (dropped []record) {
	for i := range records {
		r := &records[i]
		if r.size == 0 {
			r.origin = r.origin.Keep()
			var size plog.ProtoMarshaler
			resource := plog.NewResourceLogs()
			r.origin.Resource.CopyTo(resource.Resource())
			r.size = 512 + len(r.resource) + len(r.origin.SchemaURL) + size.ResourceLogsSize(resource) + size.LogRecordSize(r.log)
		}
	}
	p.records = slices.Concat(records, p.records)
	sizes, total := map[string]int{}, 0
	for i := range p.records {
		sizes[p.records[i].resource] += p.records[i].size
		total += p.records[i].size
	}
	if total <= p.limit {
		return nil
	}
	share := shareOf(p.limit, slices.Sorted(maps.Values(sizes)))
	p.records = slices.DeleteFunc(p.records, func(r record) bool {
		if sizes[r.resource] <= share {
			return false
		}
		sizes[r.resource] -= r.size
		dropped = append(dropped, r)
		return true
	})
	return dropped
}

// shareOf is how much each may have at most, so that all together stay within a limit.
// Who needs less leaves the rest to the others. The sizes are in ascending order.
func shareOf(limit int, sizes []int) int {
	for i, size := range sizes {
		share := limit / (len(sizes) - i)
		if size > share {
			return share
		}
		limit -= size
	}
	return limit
}
