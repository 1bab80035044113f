package diagnosis

import (
	"context"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/archive"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/diagnose"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/emit"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/stages"
)

// state is the diagnosis of one server.
type state struct {
	*Stage
	server  *stages.Server
	series  *emit.Memory
	engines diagnose.State
}

// Observe diagnoses the engines at the time of a batch, and logs what has changed.
func (s *state) Observe(ctx context.Context, batch *stages.Batch) {
	if batch.Skipped {
		return
	}
	changes := s.engines.Observe(&s.settings, s.server.Window)
	if !batch.Elsewhere {
		if upgrade := s.engines.Upgraded(); upgrade != nil {
			s.log.upgraded(upgrade, s.server.Attributes)
		}
		s.logChanges(ctx, changes, s.server.Attributes, batch.Now)
	}
}

// Append writes the diagnosis of the engines.
func (s *state) Append(_ context.Context, out *emit.Output) {
	out.Append(s.series, s.engines.Values(s.server.Window, s.enabled), s.server.Window.Time())
}

// Snapshot passes what is stored as baselines to put: those of all engines, and what is known of
// their server.
func (s *state) Snapshot(put func(key string, state []byte)) {
	for attributes, baseline := range s.engines.Baselines() {
		put(archive.KeyOf(s.server.Key, attributes, baselineName), baseline)
	}
	if server := s.engines.Server(); server != nil {
		put(archive.KeyOf(s.server.Key, nil, serverName), server)
	}
}

// snapshotDiagnoses passes the diagnoses of all engines to put.
func (s *state) snapshotDiagnoses(put func(key string, state []byte)) {
	for attributes, diagnosis := range s.engines.Diagnoses() {
		put(archive.KeyOf(s.server.Key, attributes, diagnosisName), diagnosis)
	}
}

// End keeps the baselines, in case the server comes back.
func (s *state) End() { s.engines.End() }

// keeper gives the diagnosis of a server what an archive has of it.
type keeper struct {
	archive, diagnoses *archive.User
	server             string
}

// The names of the kinds of keys.
const (
	baselineName  = "baseline"
	serverName    = "server"
	diagnosisName = "diagnosis"
)

// Begin returns what was learned of an engine before.
func (k *keeper) Begin(attributes []input.Attribute) []byte {
	saved, _ := k.archive.Begin(archive.KeyOf(k.server, attributes, baselineName), k.server)
	return saved
}

// End keeps what was learned of an engine.
func (k *keeper) End(attributes []input.Attribute, baseline []byte) {
	k.archive.End(archive.KeyOf(k.server, attributes, baselineName), baseline)
}

// BeginDiagnosis returns the diagnosis of an engine before the collector restarted.
func (k *keeper) BeginDiagnosis(attributes []input.Attribute) []byte {
	saved, _ := k.diagnoses.Begin(archive.KeyOf(k.server, attributes, diagnosisName), k.server)
	return saved
}

// EndDiagnosis forgets the diagnosis of an engine.
func (k *keeper) EndDiagnosis(attributes []input.Attribute) {
	k.diagnoses.Forget(archive.KeyOf(k.server, attributes, diagnosisName))
}

// BeginServer returns what was known of the server before.
func (k *keeper) BeginServer() []byte {
	saved, _ := k.archive.Begin(archive.KeyOf(k.server, nil, serverName), k.server)
	return saved
}

// EndServer keeps what is known of the server.
func (k *keeper) EndServer(server []byte) {
	k.archive.End(archive.KeyOf(k.server, nil, serverName), server)
}
