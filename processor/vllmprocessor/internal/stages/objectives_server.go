package stages

import (
	"context"
	"fmt"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/archive"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/delivery"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/emit"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/objective"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/quota"
)

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
func (s *objectivesState) Append(ctx context.Context, out *delivery.Output) {
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
		k.warn("trackers", fmt.Sprintf("there are more than %d objectives on models of resources, and nothing is reported about the others; "+
			"the resources with most of them give way to the others; split the servers among several collectors, or write fewer objectives or narrower models",
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
		k.warn("clock", "the times of a resource went back by more than the shortest burn window; what its objectives had counted after them was forgotten")
	case objective.Added:
	}
}
