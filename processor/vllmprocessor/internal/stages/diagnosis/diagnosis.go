// Package diagnosis is the stage that reports in which condition engines and pools are,
// and why.
package diagnosis

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/archive"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/derive"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/diagnose"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/emit"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/gpu"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/objective"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/stages"
)

// Stage diagnoses the engines of servers.
type Stage struct {
	// Archive has the baselines of engines, and what is known of their servers. Diagnoses has the
	// diagnoses of engines and pools.
	Archive, Diagnoses *archive.User

	settings diagnose.Settings
	gpus     *gpu.Store
	enabled  map[*derive.Row]bool
	// pools are nil without pools.
	pools *Pools

	// logging guards log.
	logging sync.Mutex
	log     changeLog
}

// baselines are what was learned of engines. They change slowly, so they are saved less
// often than the trackers of objectives.
var baselines = archive.Kind{
	Storage: "baselines", Key: "baselines", Interval: 5 * time.Minute, Age: diagnose.BaselineMemory, Newest: diagnose.Age,
	Unread:    "the baselines that were saved cannot be read from the storage, so the diagnosis learns anew what is usual",
	Unsaved:   "the baselines of the diagnosis could not be saved; they continue and are saved with the next attempt, but a restart before that would lose them",
	Damaged:   "what the storage has of baselines is damaged; %d of them could be read and continue, the others are learned again",
	Continued: "the diagnosis continues with the baselines that were saved",
}

// diagnoses are those of engines and pools. They change at once, so they are saved each minute. After a
// restart they are used for as long as a server that is silent is not forgotten.
func diagnoses(maxStaleness time.Duration) archive.Kind {
	return archive.Kind{
		Storage: "diagnoses", Key: "diagnoses", Interval: time.Minute, Age: maxStaleness, Newest: diagnose.DiagnosisAge,
		Unread:    "the diagnoses that were saved cannot be read from the storage, so what was degraded before is judged anew",
		Unsaved:   "the diagnoses of engines could not be saved; they continue and are saved with the next attempt, but after a restart before that the engines are judged anew",
		Damaged:   "what the storage has of diagnoses is damaged; %d of them could be read and continue, the other engines are judged again",
		Continued: "the diagnosis of the engines continues from before the restart",
	}
}

// New returns the stage. objectives are thresholds that the diagnosis compares latencies
// with.
func New(config *Config, objectives []objective.Objective, p *stages.Processor) *Stage {
	s := &Stage{
		settings: diagnose.Settings{
			Window: p.Window, MaxStaleness: p.MaxStaleness, Hold: config.Hold, RelearnAfter: config.RelearnAfter,
			StartTimeout: config.StartTimeout, SpeculationBreakEven: config.SpeculationBreakEven, Without: config.Without,
		},
		gpus:    p.Accelerators,
		enabled: map[*derive.Row]bool{},
		log:     changeLog{logger: withoutStacks(p.Logger), relearnAfter: config.RelearnAfter, telemetry: p.Telemetry, emits: p.Emits},
	}
	s.Archive = stages.NewArchive[*state](p, baselines, func(put func(key string, state []byte)) {
		if s.pools != nil {
			s.pools.snapshot(put)
		}
	})
	s.Diagnoses = archive.NewUser(diagnoses(p.MaxStaleness), p.Archive, func(put func(key string, state []byte)) {
		p.Each(func(server *stages.Server) {
			if one, has := stages.Of[*state](server); has {
				one.snapshotDiagnoses(put)
			}
		})
		if s.pools != nil {
			s.pools.snapshotDiagnoses(put)
		}
	})
	for _, row := range diagnose.Rows() {
		s.enabled[row] = p.Enabled(row.Metric)
	}
	for i := range objectives {
		o := &objectives[i]
		if in, known := input.ByName(o.Metric); known {
			s.settings.Objectives = append(s.settings.Objectives, diagnose.Objective{
				Name: o.Name, Input: in, Threshold: o.Threshold.Seconds(), Target: o.Target, Matches: o.Matches,
			})
		}
	}
	return s
}

// Start opens the storage.
func (s *Stage) Start(ctx context.Context, host component.Host) error {
	if err := s.Archive.Start(ctx, host); err != nil {
		return err
	}
	return s.Diagnoses.Start(ctx, host)
}

// Shutdown saves the baselines and the diagnoses, and closes the storage.
func (s *Stage) Shutdown(ctx context.Context) error {
	return errors.Join(s.Diagnoses.Shutdown(ctx), s.Archive.Shutdown(ctx))
}

// Derives reports whether a metric is about the diagnosis of engines.
func (*Stage) Derives(metric string) bool { return strings.HasPrefix(metric, "vllm.diagnosis.") }

// Begin returns the state of a new server.
func (s *Stage) Begin(server *stages.Server, series *emit.Memory) stages.State {
	started := &state{Stage: s, server: server, series: series}
	started.engines.Keeper = &keeper{s.Archive, s.Diagnoses, server.Key}
	started.engines.GPUs = func(visit func(*gpu.Joined)) { s.gpus.Of(server.Key, visit) }
	return started
}

// logChanges logs the changes of a server or of the pools.
func (s *Stage) logChanges(ctx context.Context, changes []diagnose.Transition, resource pcommon.Map, now time.Time) {
	s.logging.Lock()
	defer s.logging.Unlock()
	s.log.write(ctx, changes, resource, now)
}
