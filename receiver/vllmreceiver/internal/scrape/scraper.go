package scrape

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/configcompression"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.uber.org/zap"

	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/emit"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/exposition"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/fetch"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/normalize"
)

// Target is one server that is scraped: fetch, read, normalize, emit. It has the clock, the
// log and the counters; the packages of the steps return only data and reasons.
type Target struct {
	shared   *Group
	identity targetIdentity
	// client has the settings of the client until Start, which drops them: they are large.
	client *confighttp.ClientConfig
	logger *zap.Logger

	// stopped is canceled when the target stops; this also cancels a fetch.
	stopped context.Context
	cancel  context.CancelFunc

	origin Origin
	// recorder records the requests; nil in a collector.
	recorder *fetch.Recorder
	// joined is its server while it uses the shared transport; empty otherwise.
	joined  string
	reader  *exposition.Reader
	emitter *emit.Target

	timeout time.Duration
	// exemplars is true where the target is asked for them: its last body was that of a gateway.
	// textOnly is true for one whose OpenMetrics was worse than its text in this run.
	exemplars, textOnly bool

	// version is the answer of GET /version in this run of the server process.
	version string
	// resourceFixed is true once the resource of this run is set, for a server of this kind. It does
	// not change until the process restarts or becomes another kind.
	resourceFixed bool
	kind          normalize.ServerKind
	// unconfirmed is true while the version is that of before an outage or a restart, and
	// the server has not confirmed it.
	unconfirmed bool
	// load asks how many requests the server works on.
	load loadCheck
	// canary sends small requests to the server; nil without one.
	canary *canary
	// failures logs when scrapes begin to fail and succeed again.
	failures failureLog
	// pod is what Kubernetes reports about the target's pod; nil for others.
	pod atomic.Pointer[emit.Pod]
	// limited is true while the series limit drops points; limits restricts the log lines
	// about it.
	limited bool
	limits  lineBudget
	// judged is what the known defects were last looked up for.
	judged judgedServer
	// warned has the messages that were logged, each once for the target.
	warned map[string]bool
	// now is the clock.
	now func() time.Time
}

// Start opens nothing yet. It reads certificates and finds the authenticator of the host.
func (s *Target) Start(ctx context.Context, host component.Host) error {
	if s.origin != nil {
		return nil
	}
	settings := s.shared.settings
	// The HTTP instrumentation would wrap the transport, and Close could not close its
	// connections. The receiver traces the scrape.
	settings.TracerProvider, settings.MeterProvider = nil, nil
	if auth := s.client.Auth.Get(); auth != nil {
		if _, runs := host.GetExtensions()[auth.AuthenticatorID]; !runs {
			return fmt.Errorf("auth::authenticator: the extension %q does not run; configure it under extensions and list it under service::extensions",
				auth.AuthenticatorID)
		}
	}
	headers := s.client.Headers
	httpClient, err := s.httpClient(func() (*http.Client, error) { return newHTTPClient(ctx, *s.client, host, settings) })
	var urlError *url.Error
	if errors.As(err, &urlError) {
		// The full error contains the address of the proxy with its secrets.
		return fmt.Errorf("proxy_url: %w", urlError.Err)
	}
	if err != nil {
		return err
	}
	credentials := hasCredentials(s.client, s.identity.address)
	if credentials {
		s.warnIfPlain()
	}
	s.origin = fetch.New(fetch.Settings{
		HTTP: httpClient, Headers: headers, URL: *s.identity.address,
		Credentials: credentials,
		Timeout:     s.client.Timeout, Limit: int64(s.shared.Config.Limits.BodySize),
		Gzip: s.client.Compression == configcompression.TypeGzip, Places: s.shared.places, Recorder: s.recorder,
	})
	s.client = nil
	return nil
}

// hasCredentials reports whether requests to a server carry credentials: a header may be a secret
// by its name.
func hasCredentials(client *confighttp.ClientConfig, address *url.URL) bool {
	if client.Auth.HasValue() || address.User != nil {
		return true
	}
	for name := range client.Headers.Iter {
		switch strings.ToLower(name) {
		case "authorization", "cookie", "x-api-key":
			return true
		}
	}
	return false
}

// warnIfPlain logs a warning if credentials are sent without encryption.
func (s *Target) warnIfPlain() {
	host := s.identity.address.Hostname()
	if s.identity.address.Scheme != "http" || host == "localhost" || net.ParseIP(host).IsLoopback() {
		return
	}
	if s.first("plain") {
		s.logger.Warn("Credentials go to this target over plain HTTP, where anyone on the network path can read and use them; " +
			"write https in the endpoint, or use a sidecar on the loopback address or an encrypting mesh")
	}
}

// Close closes the connections of a target that has stopped, and frees its memory.
func (s *Target) Close() {
	switch {
	case s.joined != "":
		s.shared.transport.leave(s.joined)
		s.joined = ""
	case s.origin != nil:
		s.origin.Close()
	}
	s.reader.Release()
}

// Asked is what a target has answered to a scrape. Take must follow.
type Asked struct {
	at      time.Time
	page    page
	healthy *bool
	body    *bytes.Buffer
	err     error
	// took is how long it took to get and to read the answers.
	took time.Duration
	// alone is true where Take may ask the server again, takes long, or ends all series.
	alone bool
}

// Alone reports whether Take may ask the server again, takes long, or emits the ends of all series, so that no other target
// should be taken with it.
func (a *Asked) Alone() bool { return a.alone }

// Bytes is the size of the answer.
func (a *Asked) Bytes() int { return len(a.page.text) }

// ErrAlone means that the server has restarted: Take was called for several targets, and must ask it for its version.
var ErrAlone = errors.New("the server must be asked again")

// Scrape scrapes the target once: Ask and Take.
func (s *Target) Scrape(ctx context.Context) (*Scraped, error) {
	return s.Take(ctx, s.Ask(ctx), false)
}

// Ask asks the server for its metrics and waits for the answer. ctx must end when the target stops.
func (s *Target) Ask(ctx context.Context) *Asked {
	a := &Asked{at: s.now(), body: s.shared.buffers.Get().(*bytes.Buffer)}
	s.canary.scraping()
	// At the same time as the metrics, so that both share one timeout.
	healthy, load := s.askHealth(ctx), s.askLoad(ctx, a.at)
	a.page, a.err = s.ask(ctx, a.body)
	a.healthy = <-healthy
	s.load.take(a.at, <-load)
	a.alone = a.err != nil || !s.resourceFixed || s.unconfirmed || s.failures.failure != nil || fetch.IsLarge(a.body.Len())
	a.took = s.now().Sub(a.at)
	return a
}

// Take reads an answer and emits its points. A failed scrape also has points, for example vllm.up with the
// value 0; its error is a *fetch.Error. With together, which must be false where the answer is to be taken alone,
// it returns ErrAlone in place of asking the server: then it must be called again without. Call Done after it.
func (s *Target) Take(ctx context.Context, a *Asked, together bool) (*Scraped, error) {
	out := &Scraped{At: a.at, Metrics: pmetric.NewMetrics()}
	if a.err != nil {
		s.putBuffer(a.body)
		return out, s.fail(fetch.AsError(a.err), a.at, a.healthy, out.Metrics)
	}
	err := s.take(ctx, a, together, out)
	if errors.Is(err, ErrAlone) {
		return nil, err
	}
	if out.Body != nil {
		s.explain(a.at, out.Body)
		s.logDefects(a.at, out.Body)
	}
	a.page.answer.Release()
	s.putBuffer(a.body)
	return out, err
}

// Name is host and port, and the path if it is not /metrics: service.instance.id.
func (s *Target) Name() string { return InstanceID(s.identity.address) }

// Origin is what answers the scrapes, after Start.
func (s *Target) Origin() Origin { return s.origin }

// Context ends when the target stops.
func (s *Target) Context() context.Context { return s.stopped }

// Stop cancels what runs; Close may follow when it has ended.
func (s *Target) Stop() { s.cancel() }

// SetPod sets what Kubernetes reports about the pod of the target.
func (s *Target) SetPod(pod *emit.Pod) { s.pod.Store(pod) }

// End appends the ends of all series, and returns their time.
func (s *Target) End(out pmetric.Metrics) time.Time {
	now := s.now()
	s.emitter.End(now, out)
	return now
}

// Left is what is remembered of a target that was removed.
type Left struct {
	at         time.Time
	attributes map[string]string
	emitter    *emit.Target
}

// leftFor is how long the series of a removed target are remembered, so that their start times do
// not go back where discovery finds it again.
const leftFor = time.Hour

// Leave returns what is to be remembered of a target that is removed.
func (s *Target) Leave() Left { return Left{s.now(), s.identity.discovered, s.emitter} }

// Old reports whether what is remembered is not needed any more.
func (l Left) Old(now time.Time) bool { return now.Sub(l.at) > leftFor }

// Continue gives a target the series that it had before it was removed, if it is the same one.
func (s *Target) Continue(l Left) {
	if l.emitter != nil && !l.Old(s.now()) && maps.Equal(l.attributes, s.identity.discovered) {
		s.emitter = l.emitter
	}
}

// Done frees what the last scrape found in the body.
func (s *Target) Done() { s.reader.Done() }

// take reads and emits a body. Its error is that of Take.
func (s *Target) take(ctx context.Context, a *Asked, together bool, out *Scraped) error {
	page := &a.page
	if page.snapshot == nil {
		s.read(page)
		a.took += page.parsing
	}
	began, at, snapshot, cut := s.now(), a.at, page.snapshot, page.cut
	if snapshot.Refused {
		// Free the memory of the target's series as well.
		defer s.emitter.Forget()
	}
	if problem := unreadable(snapshot, cut); problem != nil {
		return s.fail(problem, at, a.healthy, out.Metrics)
	}
	s.recovered(at)
	scrape, err := s.plan(ctx, emit.Scrape{
		Time: at, Snapshot: snapshot, Open: page.open, ServerTime: page.answer.Time, Answered: page.arrived,
	}, together, out.Metrics)
	if err != nil {
		if errors.Is(err, ErrAlone) {
			return err
		}
		return nil
	}
	own := emit.Own{
		Up: true, Samples: snapshot.Samples, Healthy: a.healthy, Load: s.load.value(at), Duration: a.took, Pod: s.pod.Load(),
		Canary: s.canary.scraped(scrape),
	}
	report := s.emitter.Emit(scrape, own, out.Metrics)
	s.shared.telemetry.scraped(fetch.OutcomeOK)
	s.shared.telemetry.read(ctx, snapshot, scrape.Plan, &report, a.body.Len(), page.parsing+s.now().Sub(began))
	out.Body = &Body{Snapshot: snapshot, Plan: scrape.Plan, Report: report, Dialect: page.dialect, Cut: cut, Bytes: a.body.Len(), Version: s.version}
	return nil
}

// putBuffer returns a buffer to the pool, unless it is larger than small bodies need.
func (s *Target) putBuffer(buffer *bytes.Buffer) {
	if buffer.Cap() <= 1<<20 {
		s.shared.buffers.Put(buffer)
	}
}

// plan returns the scrape with its plan. Before the first point of a run of the server process, it sets the resource.
// It returns an error, and changes nothing, if the target was stopped in that time, or with together if it has to ask.
func (s *Target) plan(ctx context.Context, scrape emit.Scrape, together bool, out pmetric.Metrics) (emit.Scrape, error) {
	if s.resourceFixed {
		// The answer of another process must not change the version of this one.
		scrape.Plan = s.shared.plans.get(scrape.Snapshot.Layout, s.version)
		if s.emitter.Foreign(scrape) {
			return scrape, ctx.Err()
		}
	}
	version, fixed := s.version, s.resourceFixed
	if (!fixed || s.unconfirmed) && !s.shared.Config.Source.IsExporter() {
		version = s.askVersion(ctx)
		// A late answer is the assumed release or another one.
		if fixed && version != s.version {
			fixed = false
			s.emitter.Restart()
			s.canary.restarted(scrape.Time)
		}
	}
	if scrape.Plan == nil || version != s.version {
		scrape.Plan = s.shared.plans.get(scrape.Snapshot.Layout, version)
	}
	restarted := fixed && s.emitter.Restarted(scrape)
	// Some gateways have no metric before their first request.
	again := restarted || fixed && s.kind != scrape.Plan.Server
	if again && together {
		return scrape, ErrAlone
	}
	if restarted {
		s.shared.telemetry.ReceiverVllmResets.Add(ctx, 1)
		s.canary.restarted(scrape.Time)
	}
	if again {
		version, fixed = s.askVersion(ctx), false
		scrape.Plan = s.shared.plans.get(scrape.Snapshot.Layout, version)
	}
	if err := ctx.Err(); err != nil {
		return scrape, err
	}
	if !fixed || scrape.Plan.Server == normalize.KindAccelerator {
		// The driver of GPUs can become another one while their exporter runs.
		s.emitter.SetResource(s.identity.resource(version, scrape.Plan.Resource), scrape.Time, out)
	}
	s.textOnly = s.textOnly && fixed
	s.exemplars = scrape.Plan.Server == normalize.KindGateway && !s.textOnly
	s.version, s.kind, s.resourceFixed = version, scrape.Plan.Server, true
	return scrape, nil
}

// askVersion asks the server for its version. It is empty if the server has no such path.
// If the server has answered before and does not answer now, the version is taken to be
// the same until it answers: most restarts do not change the release, and one lost answer
// must not rename a metric.
func (s *Target) askVersion(ctx context.Context) string {
	version, err := s.origin.Version(ctx)
	s.unconfirmed = err != nil && s.version != ""
	if err != nil {
		s.logger.Debug("The server did not report its version", zap.String("cause", fetch.AsError(err).Message))
		return s.version
	}
	return version
}

// askHealth asks /health if that is configured. The result is nil if it is not, and false
// if there is no answer.
func (s *Target) askHealth(ctx context.Context) <-chan *bool {
	answer := make(chan *bool, 1)
	if !s.shared.Config.HealthCheck {
		answer <- nil
		return answer
	}
	go func() {
		healthy, err := s.origin.Health(ctx)
		healthy = healthy && err == nil
		answer <- &healthy
	}()
	return answer
}

// fail ends the series of the target and reports that it is down. It returns nil if the
// target was stopped in that time, because this is not a failure.
func (s *Target) fail(cause *fetch.Error, at time.Time, healthy *bool, out pmetric.Metrics) error {
	if cause.Outcome == fetch.OutcomeCanceled {
		return nil
	}
	own := emit.Own{
		Healthy: healthy, Duration: s.now().Sub(at), Failure: cause.Outcome.String(), Pod: s.pod.Load(),
		Canary: s.canary.failed(at),
	}
	if !s.resourceFixed && !s.emitter.Known() {
		s.emitter.SetResource(s.identity.resource("", nil), at, out)
	}
	s.emitter.Fail(at, own, out)
	s.shared.telemetry.scraped(cause.Outcome)
	s.failures.failed(at, cause, s.Draining())
	return cause
}

// Draining reports whether the target's pod is being deleted.
func (s *Target) Draining() bool {
	pod := s.pod.Load()
	return pod != nil && pod.Terminating
}

// recovered logs the end of a failure. The version is then asked again, because the
// server may be another release.
func (s *Target) recovered(at time.Time) {
	if s.failures.succeeded(at) {
		// If the version was not known before, learning it now would start each series
		// again under another resource.
		s.unconfirmed = s.resourceFixed && s.version != ""
	}
}
