package stages

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/internal/message"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/archive"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/derive"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/diagnose"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/emit"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/gpu"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/objective"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/pools"
)

// Diagnosis diagnoses the engines of servers.
type Diagnosis struct {
	// Archive has the baselines of engines, and what is known of their servers. Diagnoses has the
	// diagnoses of engines and pools.
	Archive, Diagnoses *archive.User

	settings diagnose.Settings
	gpus     *gpu.Store
	enabled  map[*derive.Row]bool
	log      changeLog
	// each visits the servers of the processor, and leave undoes join.
	each  func(visit func(server *Server))
	leave []func()

	// judging guards pools, which are saved at other times than they are judged. It is taken before
	// the locks of the servers, and before that of the archive. pools are nil without pools.
	judging sync.Mutex
	pools   *pools.Diagnosis
}

// baselines are what was learned of engines. They change slowly, so they are saved less
// often than the trackers of objectives.
var baselines = archive.Kind{
	Storage: "baselines", Key: "baselines", Interval: 5 * time.Minute, Age: diagnose.BaselineMemory, Newest: diagnose.Age,
	Unread:    "cannot read the saved baselines from the storage, so the diagnosis learns again what is usual",
	Unsaved:   "cannot save the baselines of the diagnosis; this is tried again, but a restart before then loses them",
	Damaged:   "the saved baselines are damaged; %d of them could be read, the others are learned again",
	Continued: "the diagnosis continues with the saved baselines",
}

// diagnoses are those of engines and pools. They change at once, so they are saved each minute. After a
// restart they are used for as long as a server that is silent is not forgotten.
func diagnoses(maxStaleness time.Duration) archive.Kind {
	return archive.Kind{
		Storage: "diagnoses", Key: "diagnoses", Interval: time.Minute, Age: maxStaleness, Newest: diagnose.DiagnosisAge,
		Unread:    "cannot read the saved diagnoses from the storage, so all engines are judged again from the start",
		Unsaved:   "cannot save the diagnoses of engines; this is tried again, but after a restart before then the engines are judged again from the start",
		Damaged:   "the saved diagnoses are damaged; %d of them could be read, the other engines are judged again",
		Continued: "the diagnosis of the engines continues from before the restart",
	}
}

// NewDiagnosis returns the stage. objectives are thresholds that the diagnosis compares latencies
// with.
func NewDiagnosis(config *DiagnosisConfig, objectives []objective.Objective, p *Processor) *Diagnosis {
	s := &Diagnosis{
		settings: diagnose.Settings{
			Window: p.Window, MaxStaleness: p.MaxStaleness, Hold: config.Hold, RelearnAfter: config.RelearnAfter,
			StartTimeout: config.StartTimeout, SpeculationBreakEven: config.SpeculationBreakEven,
			BatchModels: config.BatchModels,
		},
		gpus:    p.Accelerators,
		enabled: map[*derive.Row]bool{},
		each:    p.Each,
		log:     changeLog{id: p.ID.String(), logger: withoutStacks(p.Logger), relearnAfter: config.RelearnAfter, telemetry: p.Telemetry, emits: p.Emits, runbooks: config.Runbooks, boards: config.Boards},
	}
	s.Archive = s.archive(p, baselines, (*diagnose.State).Learned, (*pools.Diagnosis).References)
	s.Diagnoses = s.archive(p, diagnoses(p.MaxStaleness), (*diagnose.State).Diagnoses, (*pools.Diagnosis).Diagnoses)
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

// archive returns an archive of what servers and pools pass.
func (s *Diagnosis) archive(
	p *Processor, kind archive.Kind, ofServer func(*diagnose.State, diagnose.Put), ofPools func(*pools.Diagnosis, diagnose.Put),
) *archive.User {
	return archive.NewUser(kind, p.Archive, func(put func(key string, state []byte)) {
		p.Each(func(server *Server) {
			if one, has := Of[*diagnosisState](server); has {
				ofServer(&one.engines, one.keeper.put(put))
			}
		})
		if s.pools != nil {
			s.judging.Lock()
			defer s.judging.Unlock()
			ofPools(s.pools, keeper{stage: s}.put(put))
		}
	})
}

// Start opens the storage, and joins the extensions that ask.
func (s *Diagnosis) Start(ctx context.Context, host component.Host) error {
	if err := s.Archive.Start(ctx, host); err != nil {
		return err
	}
	if err := s.Diagnoses.Start(ctx, host); err != nil {
		return err
	}
	s.join(host)
	return nil
}

// Shutdown saves the baselines and the diagnoses, and closes the storage.
func (s *Diagnosis) Shutdown(ctx context.Context) error {
	for _, leave := range s.leave {
		leave()
	}
	return errors.Join(s.Diagnoses.Shutdown(ctx), s.Archive.Shutdown(ctx))
}

// Derives reports whether a metric is about the diagnosis of engines.
func (*Diagnosis) Derives(metric string) bool { return strings.HasPrefix(metric, "vllm.diagnosis.") }

// Begin returns the state of a new server.
func (s *Diagnosis) Begin(server *Server, series *emit.Memory) State {
	started := &diagnosisState{Diagnosis: s, server: server, series: series, keeper: keeper{s, server.Key}}
	started.engines.Keeper = started.keeper
	started.engines.GPUs = func(visit func(*gpu.Joined)) { s.gpus.Of(server.Key, visit) }
	return started
}

// diagnosisState is the diagnosis of one server.
type diagnosisState struct {
	*Diagnosis
	server  *Server
	series  *emit.Memory
	engines diagnose.State
	keeper  keeper
	// said is about the changes of the newest batch.
	said []message.Message
}

// Observe diagnoses the engines at the time of a batch, and logs what has changed.
func (s *diagnosisState) Observe(ctx context.Context, batch *Batch) {
	if batch.Skipped {
		return
	}
	changes := s.engines.Observe(&s.settings, s.server.Window)
	s.said = nil
	if !batch.Elsewhere {
		if upgrade := s.engines.Upgraded(); upgrade != nil {
			s.log.upgraded(upgrade, s.server.Attributes)
		}
		s.said = s.log.write(ctx, changes, s.server.Key, s.server.Attributes, batch.Now)
	}
}

// Append writes the diagnosis of the engines.
func (s *diagnosisState) Append(_ context.Context, out *emit.Output) {
	out.Append(s.series, s.engines.Values(s.server.Window, s.enabled), s.server.Window.Time())
	out.Say("vllm.diagnosis.severity", s.said)
}

// Snapshot passes what is stored as baselines to put.
func (s *diagnosisState) Snapshot(put func(key string, state []byte)) {
	s.engines.Learned(s.keeper.put(put))
}

// End keeps the baselines, in case the server comes back.
func (s *diagnosisState) End() { s.engines.End() }

// keeper gives the diagnosis of a server or, without one, of pools what the archives have of it.
type keeper struct {
	stage  *Diagnosis
	server string
}

// Begin implements diagnose.Keeper.
func (k keeper) Begin(kind diagnose.Kept, attributes []input.Attribute) []byte {
	key := archive.KeyOf(k.server, attributes, string(kind))
	from := k.stage.Archive
	if kind == diagnose.Diagnosis || kind == diagnose.PoolDiagnosis {
		from = k.stage.Diagnoses
	}
	saved, _ := from.Begin(key, cmp.Or(k.server, key))
	return saved
}

// End implements diagnose.Keeper.
func (k keeper) End(kind diagnose.Kept, attributes []input.Attribute, data []byte) {
	key := archive.KeyOf(k.server, attributes, string(kind))
	if kind == diagnose.Diagnosis || kind == diagnose.PoolDiagnosis {
		k.stage.Diagnoses.Forget(key)
		return
	}
	k.stage.Archive.End(key, data)
}

// put passes what is kept to the put of an archive.
func (k keeper) put(put func(key string, state []byte)) diagnose.Put {
	return func(kind diagnose.Kept, attributes []input.Attribute, data []byte) {
		put(archive.KeyOf(k.server, attributes, string(kind)), data)
	}
}

// DiagnosisConfig is the configuration of the diagnosis.
type DiagnosisConfig struct {
	// Enabled is true unless the diagnosis is switched off.
	Enabled bool `mapstructure:"enabled"`
	// Hold is the least number of windows of great harm until it is reported; small harm
	// takes longer. Errors and dropped requests are reported after, and end after, so many
	// windows.
	Hold int `mapstructure:"hold"`
	// RelearnAfter is how long latencies have to stay beyond what was usual, and be
	// stable, until they are taken as usual.
	RelearnAfter time.Duration `mapstructure:"relearn_after"`
	// StartTimeout is how long a server that refuses connections, or answers that it is
	// not ready, counts as starting before its first successful scrape.
	StartTimeout time.Duration `mapstructure:"start_timeout"`
	// SpeculationBreakEven is the number of tokens that a step of speculative
	// decoding has to give to be worth its drafts; 0 where it is not known.
	SpeculationBreakEven float64 `mapstructure:"speculation_break_even"`
	// BatchModels are patterns of the models whose users do not wait for each answer: a late first token is
	// no harm, and slow tokens are a warning and page nobody.
	BatchModels []string `mapstructure:"batch_models"`
	// Runbooks is the address that the pages of runbooks are below, as they are in docs/runbooks, Boards
	// that of Grafana; empty where there is none.
	Runbooks string `mapstructure:"runbooks"`
	Boards   string `mapstructure:"boards"`

	_ struct{}
}

// DefaultDiagnosisConfig returns the default configuration.
func DefaultDiagnosisConfig() DiagnosisConfig {
	return DiagnosisConfig{Enabled: true, Hold: 2, RelearnAfter: time.Hour, StartTimeout: 30 * time.Minute, Runbooks: catalog.RunbookBase}
}

// Check reports all invalid values. window is that of the processor.
func (c *DiagnosisConfig) Check(window time.Duration, invalid Invalid) {
	if c.Hold < 1 || c.Hold > maxHold {
		invalid("diagnosis::hold", "must be from 1 to %d windows, not %d; the default is 2", maxHold, c.Hold)
	}
	const relearn = "diagnosis::relearn_after"
	switch {
	case c.RelearnAfter <= 0:
		invalid(relearn, "must be more than 0; write for example 1h")
	case invalid.LacksUnit(relearn, c.RelearnAfter):
	case c.Hold >= 1 && c.Hold <= maxHold && c.RelearnAfter < c.LeastRelearnAfter(window):
		invalid(relearn, "%s is too short: harm would be taken as usual as soon as it is reported; write at least %s, five times hold times window",
			c.RelearnAfter, c.LeastRelearnAfter(window))
	}
	const start = "diagnosis::start_timeout"
	switch {
	case c.StartTimeout < 0:
		invalid(start, "must not be negative; write for example 10m, or 0s to report a server that does not answer at once")
	case invalid.LacksUnit(start, c.StartTimeout):
	case c.StartTimeout > maxStartTimeout:
		invalid(start, "%s is too long: a server that never starts would not be reported; write at most %s", c.StartTimeout, Spell(maxStartTimeout))
	}
	if slices.Contains(c.BatchModels, "") {
		invalid("diagnosis::batch_models", "has an empty pattern; write the name of a model, or a pattern such as batch-*")
	}
	if c.SpeculationBreakEven != 0 && !(c.SpeculationBreakEven >= 1 && c.SpeculationBreakEven <= 100) {
		invalid("diagnosis::speculation_break_even", "%g is not a number of tokens per step; write for example 1.5, or leave it out", c.SpeculationBreakEven)
	}
	checkAddress(invalid, "diagnosis::runbooks", c.Runbooks, "https://wiki.example.com/vllm/runbooks")
	if c.Boards != "" {
		checkAddress(invalid, "diagnosis::boards", c.Boards, "https://grafana.example.com")
	}
}

// LeastRelearnAfter is five times as long as it takes to report great harm.
func (c *DiagnosisConfig) LeastRelearnAfter(window time.Duration) time.Duration {
	return 5 * time.Duration(min(max(c.Hold, 1), maxHold)) * window
}

const (
	// maxStartTimeout is the longest start timeout. The largest models load in less.
	maxStartTimeout = 24 * time.Hour
	// maxHold is the longest hold in windows.
	maxHold = 60
)
