package scrape

import (
	"fmt"
	"strings"
	"time"
	"weak"

	"go.uber.org/zap"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/internal/defectlog"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/emit"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/exposition"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/fetch"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/normalize"
)

// unreadable returns why a body without samples is a failed scrape; nil if it is not. A
// server that has just started may have families without samples.
func unreadable(snapshot *exposition.Snapshot, cut bool) *fetch.Error {
	switch {
	case snapshot.Refused:
		return &fetch.Error{
			Outcome: fetch.OutcomeTooLarge,
			Message: "the body has so many series that there is no room for them in limits::memory together with those of the other targets; " +
				"it was dropped. Raise limits::memory and the memory of the collector, or let the server expose fewer series",
		}
	case snapshot.Samples > 0:
		return nil
	case cut:
		return &fetch.Error{
			Outcome: fetch.OutcomeReset,
			Message: "the connection was closed before the first sample had arrived; look for a proxy that cuts answers",
		}
	case len(snapshot.Problems) > 0:
		return &fetch.Error{
			Outcome: fetch.OutcomeNotPrometheus,
			Message: "the body is not Prometheus text: not one line could be read; is this the right port and path?",
		}
	case len(snapshot.Layout.Families) == 0:
		return &fetch.Error{
			Outcome: fetch.OutcomeEmpty,
			Message: "the body has no metrics: the server may run with --disable-log-stats",
		}
	}
	return nil
}

// explain logs what is wrong with a body, once for each kind of problem.
func (s *Target) explain(at time.Time, snapshot *exposition.Snapshot, plan *normalize.Plan, report *emit.Report) {
	for _, problem := range snapshot.Problems {
		s.once("line "+problem.Reason.String(), func() {
			s.logger.Warn(lineWords(problem.Reason),
				zap.Stringer("reason", problem.Reason), zap.Int("line", problem.Line))
		})
	}
	if snapshot.Duplicates > 0 {
		s.once("duplicates", func() {
			s.logger.Warn("The body has the same series more than once; the first sample of each counts and the others are dropped. "+
				"If a proxy joins the answers of several servers, list the servers themselves as targets", zap.Int("dropped", snapshot.Duplicates))
		})
	}
	if s.emitter.Replicas() {
		s.logger.Warn("Several server processes answer at this address in turn, as behind a load balancer or a Service: their start times differ. " +
			"The numbers of one of them are emitted and those of the others are dropped, because together they would show increases " +
			"that did not happen. List the replicas themselves as targets, or let discovery find their pods")
	}
	if report.Dropped[normalize.ReasonOtherProcess] > 0 {
		return
	}
	if s.emitter.Balanced() {
		s.logger.Warn("The counters fall again and again while the address stays the same: this seems to be a load balancer " +
			"in front of several replicas. List the replicas themselves as targets, or their numbers will be mixed up")
	}
	dropped := report.Dropped[normalize.ReasonSeriesLimit]
	if dropped > 0 != s.limited {
		s.limited = dropped > 0
		if s.limited {
			s.limits.log(s.logger, at, zap.WarnLevel, "The target has more series than limits::series; those that were there first are kept, the others are dropped",
				zap.Int("limit", s.shared.Config.Limits.Series), zap.Int("dropped", dropped))
		} else {
			s.limits.log(s.logger, at, zap.InfoLevel, "The target is within limits::series again")
		}
	}
	if n := plan.Dropped[normalize.ReasonDeviceLimit]; n > 0 {
		s.once("devices", func() {
			s.logger.Warn("The exporter has more GPUs than limits::devices, or more containers that use them; the series of those that came later are dropped",
				zap.Int("limit", s.shared.Config.Limits.Devices), zap.Int("dropped", n))
		})
	}
	for reason := range report.Dropped {
		if n := report.Dropped[reason] + plan.Dropped[reason]; n > 0 && isFault(normalize.Reason(reason)) {
			s.once("drop "+normalize.Reason(reason).String(), func() {
				s.logger.Warn("Series of the body were dropped because their numbers do not add up",
					zap.Stringer("reason", normalize.Reason(reason)), zap.Int("series", n))
			})
		}
	}
	if snapshot.Samples > 0 && !hasVLLM(plan) {
		s.once("no vllm", func() {
			if source := s.shared.Config.Source; source != SourceAuto {
				s.logger.Warn("The body has no metrics of the program that the setting source names: write another source, or leave it out, "+
					"and the body decides; a vLLM server may also run with --disable-log-stats", zap.String("source", string(source)))
				return
			}
			for i := range snapshot.Layout.Families {
				if other := catalog.OtherProgram(snapshot.Layout.Families[i].Name); other != "" {
					s.logger.Warn("The target is " + other + ", and has no metrics of vLLM; write the addresses of the vLLM servers")
					return
				}
			}
			s.logger.Warn("The body has neither vLLM metrics nor those of an inference gateway or of an exporter of GPUs: " +
				"the server may run with --disable-log-stats, or the endpoint is not a vLLM server")
		})
	}
}

// judgedServer is what the known defects of a target were last looked up for.
type judgedServer struct {
	plan    weak.Pointer[normalize.Plan]
	version string
	// lines is for how many versions they were logged.
	lines int
}

// logDefects logs which known defects of vLLM's metrics matter for the server. The body of
// another process behind the same address does not count.
func (s *Target) logDefects(at time.Time, plan *normalize.Plan, report *emit.Report, dialect exposition.Dialect) {
	log := s.shared.defects
	defer log.Flush(at)
	if report.Dropped[normalize.ReasonOtherProcess] > 0 || s.judged.version == s.version && s.judged.plan.Value() == plan {
		return
	}
	s.judged.plan, s.judged.version = weak.Make(plan), s.version
	target := InstanceID(s.identity.address)
	if s.judged.lines >= defectlog.MaxVersions || log.Logged(target, s.version) {
		return
	}
	server, is := plan.Shown(&s.shared.plans.options, s.version, dialect == exposition.DialectOpenMetrics)
	if is && log.Add(at, target, &server) {
		s.judged.lines++
	}
}

// lineWords returns the message for lines that were dropped.
func lineWords(reason exposition.Reason) string {
	switch reason {
	case exposition.ReasonNameTooLong:
		return fmt.Sprintf("Lines whose metric name is longer than %d bytes were dropped; all others were delivered", exposition.MaxName)
	case exposition.ReasonLabelNameTooLong:
		return fmt.Sprintf("Lines with a label name longer than %d bytes were dropped; all others were delivered", exposition.MaxName)
	case exposition.ReasonLabelValueTooLong:
		return fmt.Sprintf("Lines with a label value longer than %d bytes were dropped; all others were delivered", exposition.MaxLabelValue)
	case exposition.ReasonTooManyLines, exposition.ReasonTooManyBadLines:
		return "The body was read up to this line, and the rest was dropped; look at what the server exposes"
	}
	return "A line of the body could not be read; all others were delivered"
}

// isFault reports whether a reason is an error in the body, and not a choice of the
// receiver or its configuration.
func isFault(reason normalize.Reason) bool {
	switch reason {
	case normalize.ReasonNoInfBucket, normalize.ReasonNoCount, normalize.ReasonBucketDecrease,
		normalize.ReasonBucketNaN, normalize.ReasonCountBelowBucket, normalize.ReasonCountAboveBucket,
		normalize.ReasonBadCount, normalize.ReasonCounterNaN, normalize.ReasonCounterNegative:
		return true
	}
	return false
}

func hasVLLM(plan *normalize.Plan) bool {
	if len(plan.Workloads) > 0 || plan.Server == normalize.KindAccelerator && len(plan.Metrics) > 0 {
		return true
	}
	for i := range plan.Metrics {
		if name := plan.Metrics[i].Name; strings.Contains(name, "vllm") || strings.HasPrefix(name, "inference_gateway.") {
			return true
		}
	}
	return false
}

// once calls do the first time it is called with this key. There are few keys: none of
// them contains remote input.
func (s *Target) once(key string, do func()) {
	if s.warned[key] {
		return
	}
	s.warned[key] = true
	do()
}
