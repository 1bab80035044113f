package vllmreceiver

import (
	"cmp"
	"compress/flate"
	"compress/gzip"
	"context"
	"crypto/x509"
	"errors"
	"math"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/receiver"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/emit"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/exposition"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/fetch"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/normalize"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/remote"
)

// Probe reads one target as the receiver does, without a pipeline, and reports what it found
// on the way. It is not safe for concurrent use; several probes are.
type Probe struct {
	// Name is host and port, and the path if it is not /metrics: service.instance.id.
	Name string
	// Scheme is http or https.
	Scheme string
	// Credentials is true where requests carry some. Timeout is the deadline of one request.
	Credentials bool
	Timeout     time.Duration
	// Skips is true where the certificate of the server is not verified.
	Skips bool
	// Authenticator is the extension that authenticates the requests; nil without one.
	Authenticator *component.ID

	scraper  *targetScraper
	recorder *recorder
	seen     *observation
}

// observation is what one successful scrape found.
type observation struct {
	snapshot             *exposition.Snapshot
	plan                 *normalize.Plan
	report               *emit.Report
	dialect              exposition.Dialect
	cut                  bool
	bytes                int
	serverTime, answered time.Time
}

// Reading is what a probe found in one read. Text of the server in it can have any
// characters.
type Reading struct {
	// At is when the read began, and Took how long the scrape took.
	At   time.Time
	Took time.Duration
	// Outcome is "ok" or the kind of the failure, as the attribute outcome of
	// self-telemetry. Message says what happened and what to do. Cause narrows some outcomes
	// down, as "unknown_authority" does.
	Outcome, Message, Cause string
	// Metrics is the request for the metrics; those before it were redirected. Redirects is
	// their number.
	Metrics   Exchange
	Redirects int
	// Version is what GET /version answered; empty without an answer. VersionStatus is the
	// status of that answer; 0 where there was none or it was not asked.
	Version       string
	VersionStatus int
	// Health is the status of GET /health; 0 without an answer. HealthAsked is false where
	// the fetch of the metrics failed.
	Health      int
	HealthAsked bool
	// Load is what GET /load answered: vLLM counts its requests with --enable-server-load-tracking
	// only, and answers 0 without. It is nil without an answer, and where vllm.server_load is off.
	Load *float64
	// Dialect is "text" or "openmetrics".
	Dialect string
	// Kind is the kind of the server: "" for vLLM, else "gateway", "router", "simulator" or
	// "lora_syncer". IsServer is true for a vLLM server with metrics of its engine; then Server
	// is what the body shows of it.
	Kind     string
	IsServer bool
	Server   catalog.Server
	// Bytes is the size of the body after decompression.
	Bytes    int
	Families []Family
	// Unknown are families that the catalogue does not have, Conflicts those whose TYPE
	// contradicts it.
	Unknown, Conflicts []string
	// BadLines counts the lines that could not be read, by reason, and FirstBad is the number
	// of the first of them. Cut is true where the last line was dropped because it is not
	// complete.
	BadLines map[string]int
	FirstBad int
	Cut      bool
	// Duplicates counts samples of a series that was there before.
	Duplicates int
	// Samples is the number of lines with a number, and Points that of emitted points.
	Samples, Points int
	// Dropped counts series without a point by reason.
	Dropped map[string]int
	// ProcessStart is when the server process started, by its own clock; zero if unknown.
	ProcessStart time.Time
	// Emitted is what the receiver emits.
	Emitted pmetric.Metrics
}

// Family is one metric family of a body.
type Family struct {
	// Name is the name as the text format writes it, and Source that name without the prefix
	// of a deployment, as catalog.Source.Family has it.
	Name, Source string
	// Type is the word of the TYPE line.
	Type   string
	Series int
	// Bounds are the upper bounds of the first series of a histogram, without +Inf.
	Bounds []float64
}

// NewProbes returns a probe for each target of a configuration, which must be valid.
// Discovered targets are not among them; see Discover. Like the targets of a collector, they
// share the limits of memory.
func NewProbes(cfg *Config, telemetry component.TelemetrySettings) ([]*Probe, error) {
	// A probe asks /health itself, after the metrics.
	own := *cfg
	own.HealthCheck = false
	r, err := newReceiver(&own, receiver.Settings{ID: component.NewID(NewFactory().Type()), TelemetrySettings: telemetry}, nil)
	if err != nil {
		return nil, err
	}
	var out []*Probe
	for _, t := range configuredTargets(&own) {
		out = append(out, r.newProbe(t))
	}
	return out, nil
}

func (r *vllmReceiver) newProbe(t target) *Probe {
	s := r.newScraper(t)
	p := &Probe{
		Name: instanceID(t.address), Scheme: t.address.Scheme, Timeout: t.client.Timeout,
		Credentials: t.client.Auth.HasValue() || hasCredentials(t.client.Headers) || t.address.User != nil,
		Skips:       t.client.TLS.InsecureSkipVerify, scraper: s, recorder: &recorder{},
	}
	if auth := t.client.Auth.Get(); auth != nil {
		p.Authenticator = &auth.AuthenticatorID
	}
	s.wrap = p.record
	s.observe = func(o *observation) { p.seen = o }
	return p
}

// record puts the recorder around a transport.
func (p *Probe) record(next http.RoundTripper) http.RoundTripper {
	p.recorder.next = next
	return p.recorder
}

// Start opens nothing yet. It reads certificates and finds the authenticator of the host.
func (p *Probe) Start(ctx context.Context, host component.Host) error {
	return p.scraper.start(ctx, host)
}

// Close closes the connections of the probe.
func (p *Probe) Close() {
	p.scraper.cancel()
	p.scraper.shutdown()
}

// Read scrapes the target once, on a connection of its own. It takes at most three timeouts:
// one for the metrics, one for the version, and one for the health and the load together. A
// later read knows the counters of the earlier ones.
func (p *Probe) Read(ctx context.Context) *Reading {
	p.scraper.fetcher.Close()
	p.seen = nil
	r := &Reading{At: time.Now(), Outcome: fetch.OutcomeOK.String(), Emitted: pmetric.NewMetrics()}
	scraping, cancel := either(ctx, p.scraper.stopped)
	out, err := p.scraper.scrape(scraping)
	cancel()
	r.Took = time.Since(r.At)
	r.Emitted = out
	if err != nil {
		failure := fetch.AsError(err)
		r.Outcome, r.Message, r.Cause = failure.Outcome.String(), failure.Message, causeOf(failure)
	} else if p.seen == nil {
		r.Outcome, r.Message = fetch.OutcomeCanceled.String(), "the scrape was canceled"
	}
	p.finish(ctx, r)
	return r
}

// finish adds the facts of the exchanges and of the body.
func (p *Probe) finish(ctx context.Context, r *Reading) {
	// The metrics come first, with their redirects, and then the version.
	exchanges := p.recorder.take()
	ofMetrics := slices.IndexFunc(exchanges, func(e Exchange) bool { return strings.HasSuffix(e.Path, "/version") })
	if ofMetrics < 0 {
		ofMetrics = len(exchanges)
	}
	if ofMetrics > 0 {
		r.Metrics, r.Redirects = exchanges[ofMetrics-1], ofMetrics-1
	}
	if ofMetrics < len(exchanges) {
		r.VersionStatus = exchanges[len(exchanges)-1].Status
	}
	if p.seen == nil {
		return
	}
	r.read(p.seen, &p.scraper.shared.plans.options, p.scraper.version)
	if !r.IsServer {
		return
	}
	if p.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, p.Timeout)
		defer cancel()
	}
	_, _ = p.scraper.fetcher.Health(ctx) // The exchange has the status.
	r.HealthAsked = true
	if asked := p.recorder.take(); len(asked) > 0 {
		r.Health = asked[len(asked)-1].Status
	}
	if r.Health == 0 || p.scraper.shared.emission.Own[emit.MetricLoad] == nil {
		return
	}
	if load, err := p.scraper.fetcher.Load(ctx); err == nil {
		r.Load = &load
	}
	p.recorder.take()
}

// read adds the facts of a body.
func (r *Reading) read(o *observation, options *normalize.Options, version string) {
	plan, snapshot := o.plan, o.snapshot
	r.Version, r.Dialect, r.Bytes, r.Cut = version, o.dialect.String(), o.bytes, o.cut
	r.Kind = string(plan.Server)
	r.Server, r.IsServer = plan.Shown(options, version, o.dialect == exposition.DialectOpenMetrics)
	r.Unknown, r.Conflicts = slices.Clone(plan.Unknown), slices.Clone(plan.Conflicts)
	r.Samples, r.Points, r.Duplicates = snapshot.Samples, o.report.Points, snapshot.Duplicates
	for i := range snapshot.Layout.Families {
		r.Families = append(r.Families, familyOf(&snapshot.Layout.Families[i], options))
	}
	r.BadLines, r.Dropped = map[string]int{}, map[string]int{}
	for _, problem := range snapshot.Problems {
		r.BadLines[problem.Reason.String()]++
		r.FirstBad = cmp.Or(r.FirstBad, problem.Line)
	}
	for reason := range plan.Dropped {
		if n := plan.Dropped[reason] + o.report.Dropped[reason]; n > 0 {
			r.Dropped[normalize.Reason(reason).String()] = n
		}
	}
	if plan.ProcessStart != exposition.NoSlot {
		seconds := snapshot.Values[plan.ProcessStart]
		if seconds > 0 && seconds < math.MaxInt64/1e9 {
			r.ProcessStart = time.Unix(0, int64(seconds*1e9))
		}
	}
}

func familyOf(f *exposition.Family, options *normalize.Options) Family {
	out := Family{Name: f.Name, Source: options.SourceName(f.Name), Type: f.Kind.String(), Series: len(f.Series)}
	if f.Kind == exposition.KindHistogram && len(f.Series) > 0 {
		for _, b := range f.Series[0].Buckets {
			if !math.IsInf(b.UpperBound, 0) {
				out.Bounds = append(out.Bounds, b.UpperBound)
			}
		}
	}
	return out
}

// causeOf narrows a failure down; empty where there is nothing to add.
func causeOf(failure *fetch.Error) string {
	var (
		unknownCA  x509.UnknownAuthorityError
		hostname   x509.HostnameError
		invalid    x509.CertificateInvalidError
		operation  *net.OpError
		flateError flate.CorruptInputError
		err        = errors.Unwrap(failure)
	)
	switch {
	case err == nil:
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired && invalid.Cert != nil && time.Now().Before(invalid.Cert.NotBefore):
		return "not_yet_valid"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "expired"
	case errors.As(err, &hostname):
		return "other_host"
	case errors.As(err, &unknownCA):
		return "unknown_authority"
	case errors.As(err, &operation) && operation.Op == "remote error" &&
		(strings.Contains(operation.Err.Error(), "certificate") || strings.Contains(operation.Err.Error(), "handshake failure")):
		return "client_certificate"
	case errors.Is(err, gzip.ErrHeader), errors.Is(err, gzip.ErrChecksum), errors.As(err, &flateError):
		return "gzip"
	}
	return ""
}

// Printable returns a text of another machine as one printable line of at most 300
// characters, without credentials or queries of addresses.
func Printable(text string) string { return remote.Text(text) }

// either returns a context that ends when one of two contexts ends.
func either(ctx, other context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	detach := context.AfterFunc(other, cancel)
	return ctx, func() { detach(); cancel() }
}
