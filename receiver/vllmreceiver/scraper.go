package vllmreceiver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/config/configopaque"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.uber.org/zap"

	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/emit"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/exposition"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/fetch"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/normalize"
)

// targetScraper scrapes one target: fetch, read, normalize, emit. It is the
// layer that has the clock, the log and the counters; the packages below return
// plain data and reasons.
type targetScraper struct {
	shared   *shared
	identity identity
	client   confighttp.ClientConfig
	logger   *zap.Logger

	// stopped ends, by cancel, when the target is scraped no more; what is being
	// fetched is then given up.
	stopped context.Context
	cancel  context.CancelFunc

	fetcher *fetch.Client
	reader  *exposition.Reader
	emitter *emit.Target

	// version is what GET /version answered in this life of the process.
	version string
	// settled is true once the resource of this life is frozen.
	settled bool
	// doubtful is true while the version is believed and not known: after an
	// outage, or a restart after which the server did not tell it.
	doubtful bool
	// failures logs when scrapes begin to fail and succeed again.
	failures failureLog
	// metrics is how many metrics the last successful scrape had.
	metrics int
	// pod is what Kubernetes reports about the target's pod; nil for others.
	pod atomic.Pointer[emit.Pod]
	// limited is true while the series limit drops points; limits bounds what is
	// logged about it.
	limited bool
	limits  lineBudget
	// warned has what was logged once in the target's life.
	warned map[string]bool
	// now is the clock, which tests turn.
	now func() time.Time
}

// maxHeaderBytes bounds the headers of an answer.
const maxHeaderBytes = 256 << 10

func (s *targetScraper) start(ctx context.Context, host component.Host) error {
	settings := s.shared.settings.TelemetrySettings
	// The HTTP instrumentation would wrap the transport and hide its connections
	// from Close; the scrape itself is traced by the scrape helper.
	settings.TracerProvider, settings.MeterProvider = nil, nil
	if auth := s.client.Auth.Get(); auth != nil {
		if _, runs := host.GetExtensions()[auth.AuthenticatorID]; !runs {
			return fmt.Errorf("auth::authenticator: the extension %q does not run; configure it under extensions and list it under service::extensions",
				auth.AuthenticatorID)
		}
	}
	config := s.client
	headers := config.Headers
	config.Headers = nil
	httpClient, err := config.ToClient(ctx, host.GetExtensions(), settings)
	var urlError *url.Error
	if errors.As(err, &urlError) {
		// It would repeat the address of the proxy with its secrets.
		return fmt.Errorf("proxy_url: %w", urlError.Err)
	}
	if err != nil {
		return err
	}
	if transport, ok := httpClient.Transport.(*http.Transport); ok {
		// An authenticator hides the transport; Go's own limit of 10 MiB holds then.
		transport.MaxResponseHeaderBytes = maxHeaderBytes
	}
	credentials := s.client.Auth.HasValue() || hasCredentials(headers) || s.identity.address.User != nil
	if credentials {
		s.warnOfPlainToken()
	}
	s.fetcher = fetch.New(fetch.Settings{
		HTTP: httpClient, Headers: headers, URL: *s.identity.address,
		Credentials: credentials,
		Timeout:     s.client.Timeout, Limit: int64(s.shared.config.Limits.BodySize),
		Places: s.shared.places,
	})
	return nil
}

// hasCredentials tells whether one of the headers is a secret by its name.
func hasCredentials(headers configopaque.MapList) bool {
	for name := range headers.Iter {
		switch strings.ToLower(name) {
		case "authorization", "cookie", "x-api-key":
			return true
		}
	}
	return false
}

// warnOfPlainToken says once that credentials go over the network in the clear.
func (s *targetScraper) warnOfPlainToken() {
	host := s.identity.address.Hostname()
	if s.identity.address.Scheme != "http" || host == "localhost" || net.ParseIP(host).IsLoopback() {
		return
	}
	s.logger.Warn("Credentials go to this target over plain HTTP, where anyone on the way can read and use them; " +
		"write https in the endpoint, or keep the way short: a sidecar on the loopback address, or an encrypting mesh")
}

func (s *targetScraper) shutdown(context.Context) error {
	if s.fetcher != nil {
		s.fetcher.Close()
	}
	s.reader.Release()
	return nil
}

// scrape returns the points of one scrape. A failed scrape has points, too, among
// them the one that says that the target is down; its error is a *fetch.Error.
func (s *targetScraper) scrape(ctx context.Context) (pmetric.Metrics, error) {
	out := pmetric.NewMetrics()
	ctx, cancel := either(ctx, s.stopped)
	defer cancel()
	body := s.shared.buffers.Get().(*bytes.Buffer)
	defer s.putBuffer(body)
	at := s.now()
	// Beside the metrics, so that both together take no longer than one of them.
	healthy := s.askHealth(ctx)
	answer, err := s.fetcher.Metrics(ctx, body)
	health := <-healthy
	if err != nil {
		return out, s.fail(ctx, fetch.AsError(err), at, health, out)
	}
	defer answer.Release()
	parsed := s.now()
	dialect, text, open := exposition.DialectOf(answer.ContentType), body.Bytes(), answer.Open
	if open {
		whole, complete := exposition.WholeLines(text, dialect)
		text, open = whole, !complete
	}
	snapshot, cut := s.read(text, dialect), len(text) < body.Len()
	if snapshot.Refused {
		// What was remembered of the target goes, too.
		defer s.emitter.Forget()
	}
	if problem := unreadable(snapshot, cut); problem != nil {
		return out, s.fail(ctx, problem, at, health, out)
	}
	s.recovered(at)
	if cut {
		s.once("cut", func() {
			s.logger.Warn("The connection was closed within a line, and the server had not declared the length of its answer; " +
				"the last line was dropped, since its number may lack digits. If this goes on, look for a proxy that cuts answers")
		})
	}
	scrape, ok := s.settle(ctx, emit.Scrape{
		Time: at, Snapshot: snapshot, Open: open, ServerTime: answer.Time, Answered: parsed,
	}, out)
	if !ok {
		return out, nil
	}
	own := emit.Own{Up: true, Samples: snapshot.Samples, Healthy: health, Duration: s.now().Sub(at), Pod: s.pod.Load()}
	report := s.emitter.Emit(scrape, own, out)
	s.shared.telemetry.scraped(ctx, fetch.OutcomeOK)
	s.shared.telemetry.read(ctx, snapshot, scrape.Plan, &report, body.Len(), s.now().Sub(parsed))
	s.explain(at, snapshot, scrape.Plan, &report)
	s.metrics = out.MetricCount()
	return out, nil
}

// read reads a body, a large one alone.
func (s *targetScraper) read(body []byte, d exposition.Dialect) *exposition.Snapshot {
	if fetch.IsLarge(len(body)) {
		s.shared.reading.Lock()
		defer s.shared.reading.Unlock()
	}
	return s.reader.Read(body, d)
}

// putBuffer gives a buffer back, unless it is so large that it should not be
// kept for the small bodies of others.
func (s *targetScraper) putBuffer(buffer *bytes.Buffer) {
	if buffer.Cap() <= 1<<20 {
		s.shared.buffers.Put(buffer)
	}
}

// unreadable tells why a body without a single sample is a failed scrape. A
// server that has only just started may have families without samples.
func unreadable(snapshot *exposition.Snapshot, cut bool) *fetch.Error {
	switch {
	case snapshot.Refused:
		return &fetch.Error{
			Outcome: fetch.OutcomeTooLarge,
			Message: "the body has so many series that there is no room for them in limits::memory beside those of the other targets; " +
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

// settle returns the scrape with its plan, after it has settled the resource
// for this life of the process: before the first point, and again after a
// restart. It returns false where the target was stopped meanwhile; then nothing
// has changed.
func (s *targetScraper) settle(ctx context.Context, scrape emit.Scrape, out pmetric.Metrics) (emit.Scrape, bool) {
	if s.settled {
		// The answer of another process says nothing about this one's version.
		scrape.Plan = s.shared.plans.get(scrape.Snapshot.Layout, s.version)
		if s.emitter.Foreign(scrape) {
			return scrape, ctx.Err() == nil
		}
	}
	version, settled := s.version, s.settled
	if !settled || s.doubtful {
		version = s.askVersion(ctx)
		// An answer that comes late is another release, or what was believed.
		if settled && version != s.version {
			settled = false
			s.emitter.Restart()
		}
	}
	scrape.Plan = s.shared.plans.get(scrape.Snapshot.Layout, version)
	if settled && s.emitter.Restarted(scrape) {
		s.shared.telemetry.resets(ctx)
		version, settled = s.askVersion(ctx), false
		scrape.Plan = s.shared.plans.get(scrape.Snapshot.Layout, version)
	}
	if ctx.Err() != nil {
		return scrape, false
	}
	if !settled {
		s.emitter.SetResource(s.identity.resource(version, scrape.Plan.Resource), scrape.Time, out)
	}
	s.version, s.settled = version, true
	return scrape, true
}

// askVersion asks the server for its version. Its absence is tolerated: an old
// server or a proxy may not have the path. Where the server did tell it before,
// it is taken to be the same until the server answers again: a restart is mostly
// one of the same release, and one lost answer must not rename a metric.
func (s *targetScraper) askVersion(ctx context.Context) string {
	version, err := s.fetcher.Version(ctx)
	s.doubtful = err != nil && s.version != ""
	if err != nil {
		s.logger.Debug("The server did not tell its version", zap.String("cause", fetch.AsError(err).Message))
		return s.version
	}
	return version
}

// askHealth asks /health if that is configured; no answer is not healthy.
func (s *targetScraper) askHealth(ctx context.Context) <-chan *bool {
	answer := make(chan *bool, 1)
	if !s.shared.config.HealthCheck {
		answer <- nil
		return answer
	}
	go func() {
		healthy, err := s.fetcher.Health(ctx)
		healthy = healthy && err == nil
		answer <- &healthy
	}()
	return answer
}

// fail ends the target's series and says that it is down. It returns nil where
// the target was stopped meanwhile; this is not a failure.
func (s *targetScraper) fail(
	ctx context.Context, cause *fetch.Error, at time.Time, healthy *bool, out pmetric.Metrics,
) error {
	if cause.Outcome == fetch.OutcomeCanceled {
		return nil
	}
	own := emit.Own{
		Healthy: healthy, Duration: s.now().Sub(at), Failure: cause.Outcome.String(), Pod: s.pod.Load(),
	}
	if !s.settled && !s.emitter.Known() {
		s.emitter.SetResource(s.identity.resource("", nil), at, out)
	}
	s.emitter.Fail(at, own, out)
	s.shared.telemetry.scraped(ctx, cause.Outcome)
	s.failures.failed(at, cause, s.draining())
	return cause
}

// draining reports whether the target's pod is being deleted.
func (s *targetScraper) draining() bool {
	pod := s.pod.Load()
	return pod != nil && pod.Terminating
}

// recovered notes the end of a failure. Whether the server that is back is another
// release is then asked.
func (s *targetScraper) recovered(at time.Time) {
	if s.failures.succeeded(at) {
		// A version that was not known before is no sign of another release, and
		// would make a second stream of each series.
		s.doubtful = s.settled && s.version != ""
	}
}

// explain logs what an operator should know of a body, once for each kind.
func (s *targetScraper) explain(at time.Time, snapshot *exposition.Snapshot, plan *normalize.Plan, report *emit.Report) {
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
				zap.Int("limit", s.shared.config.Limits.Series), zap.Int("dropped", dropped))
		} else {
			s.limits.log(s.logger, at, zap.InfoLevel, "The target is within limits::series again")
		}
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
			s.logger.Warn("The body has neither vLLM metrics nor those of an inference gateway: " +
				"the server may run with --disable-log-stats, or the endpoint is not a vLLM server")
		})
	}
}

// lineWords says what became of lines of a body.
func lineWords(reason exposition.Reason) string {
	switch reason {
	case exposition.ReasonNameTooLong:
		return "Lines whose metric name is longer than limits::name_length were dropped; all others were delivered"
	case exposition.ReasonLabelNameTooLong:
		return "Lines with a label name longer than limits::label_name_length were dropped; all others were delivered"
	case exposition.ReasonLabelValueTooLong:
		return "Lines with a label value longer than limits::label_value_length were dropped; all others were delivered"
	case exposition.ReasonTooManyLines, exposition.ReasonTooManyBadLines:
		return "The body was read up to this line, and the rest was dropped; look at what the server exposes"
	}
	return "A line of the body could not be read; all others were delivered"
}

// isFault tells whether a reason is a fault of the body, and not a decision of
// ours or of the user.
func isFault(reason normalize.Reason) bool {
	switch reason {
	case normalize.ReasonNoInfBucket, normalize.ReasonNoCount, normalize.ReasonBucketDecrease,
		normalize.ReasonBucketNaN, normalize.ReasonCountBelowBucket, normalize.ReasonCountAboveBucket,
		normalize.ReasonBadCount, normalize.ReasonCounterNaN:
		return true
	}
	return false
}

func hasVLLM(plan *normalize.Plan) bool {
	for i := range plan.Metrics {
		if name := plan.Metrics[i].Name; strings.Contains(name, "vllm") || strings.HasPrefix(name, "inference_gateway.") {
			return true
		}
	}
	return false
}

// once does something the first time that it is asked for this key. The keys
// are our own enums, so there are few.
func (s *targetScraper) once(key string, do func()) {
	if s.warned[key] {
		return
	}
	s.warned[key] = true
	do()
}
