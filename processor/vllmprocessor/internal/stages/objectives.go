package stages

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.uber.org/zap"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/archive"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/emit"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/objective"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/quota"
)

// maxTrackers bounds how many trackers a processor has.
const maxTrackers = 10_000

// Objectives counts objectives.
type Objectives struct {
	// Trackers is shared among the servers.
	Trackers *quota.Quota
	// Archive has the states of trackers.
	Archive *archive.User

	plan       *objective.Plan
	objectives []objective.Objective
	logger     *zap.Logger
	telemetry  *Telemetry
	// evaluators are for reuse. Without them a batch of one server with two objectives takes 1.1
	// times the processor time and allocates 1.3 times the bytes; without objectives they make
	// no difference.
	evaluators sync.Pool

	// mu guards what follows. It is taken after a server's lock.
	mu       sync.Mutex
	patterns *objective.PatternWatch
	// warned has the topics of the warnings that were logged.
	warned map[string]bool
}

// NewObjectives returns the stage, with budgets of one time and burn rates over some. It fails where an
// objective is on a metric that cannot be counted.
func NewObjectives(all []objective.Objective, budget objective.Duration, burn []objective.Duration, p *Processor) (*Objectives, error) {
	plan, err := objective.NewPlan(all, budget, burn, p.Enabled)
	if err != nil {
		return nil, err
	}
	s := &Objectives{
		plan: plan, objectives: all, logger: p.Logger, telemetry: p.Telemetry,
		Trackers: quota.New(maxTrackers), patterns: objective.WatchPatterns(all), warned: map[string]bool{},
	}
	s.Archive = archive.NewUser(budgets(time.Duration(budget)), p.Archive, func(put func(key string, state []byte)) {
		p.Each(func(server *Server) {
			if one, has := Of[*objectivesState](server); has {
				one.Snapshot(put)
			}
		})
	})
	s.evaluators.New = func() any { return &objective.Evaluator{} }
	return s, nil
}

// budgets are the states of trackers. They are saved each minute. The state of a month's
// budget is useful for a month.
func budgets(window time.Duration) archive.Kind {
	return archive.Kind{
		Key: "objectives", Interval: time.Minute, Age: window, Newest: objective.StateAge, Thin: objective.Thin,
		Unread:    "cannot read the saved objectives from the storage, so budgets and burn rates start again",
		Unsaved:   "cannot save the objectives; this is tried again, but a restart before then loses their budgets",
		Damaged:   "the saved objectives are damaged; %d of their states could be read, the others start again",
		Continued: "objectives continue where they were saved",
	}
}

// Steps are the distributions of which the window must keep steps.
func (s *Objectives) Steps() [input.NumMetrics]bool { return s.plan.Steps() }

// Start opens the storage and logs once what can be said about objectives in advance.
func (s *Objectives) Start(ctx context.Context, host component.Host) error {
	if err := s.telemetry.ObserveTrackers(func() int { return s.Trackers.Used() }); err != nil {
		return err
	}
	if err := s.Archive.Start(ctx, host); err != nil {
		return err
	}
	for i := range s.objectives {
		if note := s.objectives[i].Note(); note != "" {
			s.warned[note] = true
			s.logger.Info(note)
		}
		if sentence := s.objectives[i].Unreachable(); sentence != "" {
			s.warn(sentence, sentence)
		}
	}
	return nil
}

// Shutdown saves the states and closes the storage.
func (s *Objectives) Shutdown(ctx context.Context) error { return s.Archive.Shutdown(ctx) }

// Derives reports whether a metric is about objectives.
func (*Objectives) Derives(metric string) bool { return strings.HasPrefix(metric, "vllm.slo.") }

// Begin returns the state of a new server.
func (s *Objectives) Begin(server *Server, series *emit.Memory) State {
	return &objectivesState{Objectives: s, server: server, series: series, share: s.Trackers.Open()}
}

// watchPatterns logs patterns that match no model.
func (s *Objectives) watchPatterns(batch *Batch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range batch.Samples {
		sample := &batch.Samples[i]
		// A gateway reports whatever clients ask for.
		if i > 0 && sample.Group == batch.Samples[i-1].Group || sample.Input.OfGateway() {
			continue
		}
		if model := batch.Groups[sample.Group].Value("model_name"); model != "" {
			s.patterns.See(model, batch.Now.UnixNano())
		}
	}
	for _, warning := range s.patterns.Warnings(batch.Now.UnixNano()) {
		s.logger.Warn(warning)
	}
}

// maxWarnings bounds how many different warnings are logged.
const maxWarnings = 100

// warn logs a sentence once for each topic.
func (s *Objectives) warn(topic, sentence string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.warned[topic] && len(s.warned) < maxWarnings {
		s.warned[topic] = true
		s.logger.Warn(sentence)
	}
}

// objectivesState is the objectives of one server.
type objectivesState struct {
	*Objectives
	server   *Server
	series   *emit.Memory
	share    *quota.Share
	trackers objective.State
}

// Observe counts the steps of a batch.
func (s *objectivesState) Observe(ctx context.Context, batch *Batch) {
	s.watchPatterns(batch)
	k := &trackerKeeper{s, ctx}
	if excess := s.share.Excess(); excess > 0 {
		s.trackers.Shrink(excess, k)
	}
	s.trackers.Observe(s.plan, s.server.Window, k)
}

// Append writes what has been counted.
func (s *objectivesState) Append(ctx context.Context, out *emit.Output) {
	e := s.evaluators.Get().(*objective.Evaluator)
	defer s.evaluators.Put(e)
	e.CountsDiffer, e.Full = false, s.Trackers.Used() >= s.Trackers.Limit()
	values := e.Evaluate(s.plan, &s.trackers, s.server.Window)
	s.telemetry.Absent(ctx, &e.Absent)
	if e.CountsDiffer {
		s.warn("joint", "vllm.slo.joint_attainment is not reported while the histograms of its objectives differ in their number of requests")
	}
	out.Append(s.series, values, s.server.Window.Time())
}

// Snapshot passes the states of all trackers to put.
func (s *objectivesState) Snapshot(put func(key string, state []byte)) {
	for key, tracker := range s.trackers.Each {
		put(key, tracker.Encode())
	}
}

// End keeps the states, in case the server comes back.
func (s *objectivesState) End() {
	s.Snapshot(s.Archive.End)
	s.share.Close()
}

// trackerKeeper answers the questions of the trackers of a server while they take a batch.
type trackerKeeper struct {
	*objectivesState
	ctx context.Context
}

// Begin continues the saved state of a tracker.
func (k *trackerKeeper) Begin(group []input.Attribute, o *objective.Objective, tracker *objective.Tracker, at int64) (string, bool) {
	if !k.share.Take() {
		k.warn("trackers", fmt.Sprintf("each objective counts once for each model of each server, and the limit of %d is reached; "+
			"some are not reported, first those of the servers with the most; split the servers among several collectors, or write fewer objectives or narrower models",
			k.Trackers.Limit()))
		return "", false
	}
	key := archive.KeyOf(k.server.Key, group, o.Name)
	if saved, has := k.Archive.Begin(key, k.server.Key); has {
		switch outcome := tracker.Restore(saved, at); outcome {
		case objective.RestoredAll, objective.RestoredNothing:
		default:
			k.warn(o.Name+outcome.String(), fmt.Sprintf("objective %q: %s", o.Name, outcome))
		}
	}
	return key, true
}

// End keeps the state of a tracker whose model is gone.
func (k *trackerKeeper) End(key string, tracker *objective.Tracker) {
	k.Archive.End(key, tracker.Encode())
	k.share.Give()
}

// Buckets warns where the buckets of a server cannot decide about an objective.
func (k *trackerKeeper) Buckets(o *objective.Objective, bounds []float64) {
	if sentence := o.Resolution(bounds); sentence != "" {
		k.warn(sentence, sentence)
	}
}

// Refused counts a step for which there is no tracker.
func (k *trackerKeeper) Refused() { k.telemetry.Uncounted(k.ctx, StepLimit) }

// Took counts a step that was not counted.
func (k *trackerKeeper) Took(outcome objective.Outcome) {
	switch outcome {
	case objective.Late:
		k.telemetry.Uncounted(k.ctx, StepLate)
	case objective.Unsound:
		k.telemetry.Uncounted(k.ctx, StepUnsound)
	case objective.ClockSetBack:
		k.warn("clock", "the timestamps of a server jumped back by more than the shortest burn window; its objectives dropped what they had counted after the new time; synchronize the clocks")
	case objective.Added:
	}
}
