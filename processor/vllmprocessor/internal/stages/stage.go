// Package stages has the stages of the processor. A stage derives one part of what the processor
// emits for a server: values over the window (Derived), what its GPUs do for it (GPUs), objectives
// (Objectives), the diagnosis (Diagnosis), or what a server contributes to its pools (Pools). The
// processor has one list of stages and calls each of them in the order of the list. Each stage is in
// the files that begin with its name.
package stages

import (
	"context"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/processor"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/archive"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/emit"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/gpu"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/window"
)

// Stage derives one part of what the processor emits.
type Stage interface {
	// Start is called before the first batch, Shutdown after the last one, and also
	// without Start.
	Start(ctx context.Context, host component.Host) error
	Shutdown(ctx context.Context) error
	// Derives reports whether the stage appends a metric to the resources of servers.
	Derives(metric string) bool
	// Begin returns the state of a server that is new. The state writes to series.
	Begin(server *Server, series *emit.Memory) State
}

// State is what a stage keeps of one server. It is called with the server's lock held.
type State interface {
	// Observe takes a batch. The window has it already.
	Observe(ctx context.Context, batch *Batch)
	// Append writes what the stage derives at the time of a batch. It is called after
	// all stages have observed the batch; not for a batch that is skipped, and not where
	// another processor derives the same.
	Append(ctx context.Context, out *emit.Output)
	// Snapshot passes what shall outlive a restart, by key, to put.
	Snapshot(put func(key string, state []byte))
	// End is called when the processor forgets the server.
	End()
}

// nothingToStart is for stages that have nothing to start.
type nothingToStart struct{}

func (nothingToStart) Start(context.Context, component.Host) error { return nil }
func (nothingToStart) Shutdown(context.Context) error              { return nil }

// nothingToKeep is for states that start again after a restart, and when a server comes back.
type nothingToKeep struct{}

func (nothingToKeep) Snapshot(func(string, []byte)) {}
func (nothingToKeep) End()                          {}

// Server is what the stages know of a server. It is used with its lock held.
type Server struct {
	// Key is the identity of the server's resource.
	Key string
	// Window has the recent totals of the server's metrics.
	Window *window.Resource
	// Attributes are those of the resource in the newest batch. The map is never
	// changed.
	Attributes pcommon.Map
	// Arrived is when the last batch arrived, by the clock of the processor. It is
	// written with the processor's lock held as well, so that either lock is enough to
	// read it.
	Arrived time.Time
	// States has the state of each stage; it is empty before the first batch.
	States []State
}

// Of returns the state of a type that a server has; false where it has none.
func Of[S State](server *Server) (found S, has bool) {
	for _, state := range server.States {
		if found, has = state.(S); has {
			return found, true
		}
	}
	return found, false
}

// Batch is one batch of a server.
type Batch struct {
	*input.Batch
	// Now is the time by the clock of the processor.
	Now time.Time
	// Skipped is true where no values are derived at the time of the batch, because its
	// request has many later ones.
	Skipped bool
	// Elsewhere is true where another processor derives what the stage derives. The
	// stage observes the batch, so that it can continue when that processor is removed.
	Elsewhere bool
}

// Processor is what the stages share of their processor.
type Processor struct {
	processor.Settings
	// Next is the next consumer.
	Next consumer.Metrics
	// Window and MaxStaleness are settings of the processor.
	Window, MaxStaleness time.Duration
	Telemetry            *Telemetry
	Archive              archive.Settings
	// Now is the clock, and Every calls a function at an interval of it.
	Now   func() time.Time
	Every func(d time.Duration, f func()) (stop func())
	// Each calls visit for every server, with its lock held.
	Each func(visit func(server *Server))
	// Accelerators are the GPUs of the servers.
	Accelerators *gpu.Store
	// Enabled reports whether a metric is switched on. Emits reports whether the
	// configuration has all that it needs, too.
	Enabled, Emits func(metric string) bool
}
