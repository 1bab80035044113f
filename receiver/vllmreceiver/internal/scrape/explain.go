package scrape

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"weak"

	"go.uber.org/zap"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/internal/defectlog"
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
			Message: "the body was dropped: its series and those of the other targets exceed limits::memory; " +
				"raise limits::memory and the memory of the collector, or let the server expose fewer series",
		}
	case snapshot.Samples > 0:
		return nil
	case cut:
		return &fetch.Error{Outcome: fetch.OutcomeReset, Message: "the connection was closed before the first sample had arrived; look for a proxy that cuts answers"}
	case len(snapshot.Problems) > 0:
		return &fetch.Error{
			Outcome: fetch.OutcomeNotPrometheus,
			Message: "the body is not Prometheus text: not one line could be read; is this the right port and path?",
		}
	case len(snapshot.Layout.Families) == 0:
		return &fetch.Error{Outcome: fetch.OutcomeEmpty, Message: "the body has no metrics: the server may run with --disable-log-stats"}
	}
	return nil
}

// explain logs what is wrong with a body, once for each kind of problem.
func (s *Target) explain(at time.Time, body *Body) {
	snapshot, plan, report, limits := body.Snapshot, body.Plan, &body.Report, &s.shared.Config.Limits
	if body.Cut && s.first("cut") {
		s.logger.Warn("The answer ended within a line; " +
			"this line was dropped, because its number may be incomplete. If this happens again, look for a proxy that cuts answers")
	}
	for _, problem := range snapshot.Problems {
		if s.first("line " + problem.Reason.String()) {
			words := cmp.Or(lineWords[problem.Reason], "A line of the body could not be read; all others were delivered")
			s.logger.Warn(words, zap.Stringer("reason", problem.Reason), zap.Int("line", problem.Line))
		}
	}
	if snapshot.Duplicates > 0 && s.first("duplicates") {
		s.logger.Warn("The body has the same series more than once; the first sample of each counts and the others are dropped. "+
			"If a proxy joins the answers of several servers, list the servers themselves as targets", zap.Int("dropped", snapshot.Duplicates))
	}
	if report.Foreign {
		if s.first("replicas") {
			s.logger.Warn("Several server processes answer at this address, as behind a load balancer or a Service. " +
				"Only the metrics of one of them are emitted; those of the others are dropped. " +
				"List each replica as a target, or let discovery find their pods")
		}
		return
	}
	if report.Balanced && s.first("balanced") {
		s.logger.Warn("The counters of this address fall again and again: it seems to be a load balancer in front of several replicas. " +
			"Their metrics are mixed up. List each replica as a target")
	}
	dropped := report.Dropped[normalize.ReasonSeriesLimit]
	switch limited := dropped > 0; {
	case limited && !s.limited:
		s.limits.log(s.logger, at, zap.WarnLevel, "The target has more series than limits::series; the first ones are kept and the others are dropped",
			zap.Int("limit", limits.Series), zap.Int("dropped", dropped))
	case !limited && s.limited:
		s.limits.log(s.logger, at, zap.InfoLevel, "The target is within limits::series again")
	}
	s.limited = dropped > 0
	if n := plan.Dropped[normalize.ReasonDeviceLimit]; n > 0 && s.first("devices") {
		s.logger.Warn("The exporter has more GPUs than limits::devices, or more containers that use GPUs; the series of the later ones are dropped",
			zap.Int("limit", limits.Devices), zap.Int("dropped", n))
	}
	for _, reason := range faults {
		if n := report.Dropped[reason] + plan.Dropped[reason]; n > 0 && s.first("drop "+reason.String()) {
			s.logger.Warn("Series with contradictory numbers, such as decreasing buckets, were dropped", zap.Stringer("reason", reason), zap.Int("series", n))
		}
	}
	if snapshot.Samples > 0 && !hasVLLM(plan) && s.first("no vllm") {
		s.logger.Warn(s.withoutVLLM(snapshot.Layout))
	}
}

// withoutVLLM returns the message for a body without metrics of vLLM.
func (s *Target) withoutVLLM(layout *exposition.Layout) (message string, source zap.Field) {
	for i := range layout.Families {
		if other := catalog.OtherProgram(layout.Families[i].Name); other != "" {
			return "The target is " + other + ", and has no metrics of vLLM; write the addresses of the vLLM servers", zap.Skip()
		}
	}
	if source := s.shared.Config.Source; source != normalize.SourceAuto {
		return "The body has no metrics of the program that the setting source names: write another source, or leave it out, " +
			"and the body decides; a vLLM server may also run with --disable-log-stats", zap.String("source", string(source))
	}
	return "The body has neither vLLM metrics nor those of an inference gateway or of an exporter of GPUs: " +
		"a gateway may have had no request yet, the server may run with --disable-log-stats, or the endpoint is not a vLLM server", zap.Skip()
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
func (s *Target) logDefects(at time.Time, body *Body) {
	log := s.shared.defects
	defer log.Flush(at)
	if body.Report.Foreign || s.judged.version == s.version && s.judged.plan.Value() == body.Plan {
		return
	}
	s.judged.plan, s.judged.version = weak.Make(body.Plan), s.version
	if s.judged.lines >= defectlog.MaxVersions || log.Logged(s.Name(), s.version) {
		return
	}
	server, is := body.Plan.Shown(&s.shared.plans.options, s.version, body.Dialect == exposition.DialectOpenMetrics)
	if is && log.Add(at, s.Name(), &server) {
		s.judged.lines++
	}
}

// lineWords are the messages for lines that were dropped for a special reason.
var lineWords = map[exposition.Reason]string{
	exposition.ReasonNameTooLong:       fmt.Sprintf("Lines whose metric name is longer than %d bytes were dropped; all others were delivered", exposition.MaxName),
	exposition.ReasonLabelNameTooLong:  fmt.Sprintf("Lines with a label name longer than %d bytes were dropped; all others were delivered", exposition.MaxName),
	exposition.ReasonLabelValueTooLong: fmt.Sprintf("Lines with a label value longer than %d bytes were dropped; all others were delivered", exposition.MaxLabelValue),
	exposition.ReasonTooManyLines:      restDropped,
	exposition.ReasonTooManyBadLines:   restDropped,
}

const restDropped = "The body was read up to this line, and the rest was dropped; look at what the server exposes"

// faults are the reasons that are an error in the body, and not a choice of the receiver or its
// configuration.
var faults = []normalize.Reason{
	normalize.ReasonNoInfBucket, normalize.ReasonNoCount, normalize.ReasonBucketDecrease,
	normalize.ReasonBucketNaN, normalize.ReasonCountBelowBucket, normalize.ReasonCountAboveBucket,
	normalize.ReasonBadCount, normalize.ReasonCounterNaN, normalize.ReasonCounterNegative,
}

func hasVLLM(plan *normalize.Plan) bool {
	if len(plan.Workloads) > 0 || plan.Server == normalize.KindAccelerator && len(plan.Metrics) > 0 {
		return true
	}
	return slices.ContainsFunc(plan.Metrics, func(m normalize.Metric) bool {
		return m.Engine || strings.Contains(m.Name, "vllm") || catalog.IsServers(m.Name)
	})
}

// first reports whether this is the first call with a key. There are few keys: none of them
// contains remote input.
func (s *Target) first(key string) bool {
	known := s.warned[key]
	s.warned[key] = true
	return !known
}
