// Package probe reads servers as the receiver reads them, without a pipeline, for programs that
// explain what the receiver would see:
//
//	New, Discover  a Probe for each server that a configuration lists, or that its discovery finds.
//	               Read asks the server once, and reports the exchange, the body and the points
//	NewReplays     turns bodies that were recorded into what the receiver would have emitted
//
// Both take the way of the receiver itself. What is read is the text of another machine: Printable
// makes it fit for a terminal.
package probe

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/receiver"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/emit"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/exposition"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/fetch"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/normalize"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/remote"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/scrape"
)

// Probe reads one server from its URL, and reports what it found on the way. It is not safe for concurrent use; several probes are.
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

	group    *scrape.Group
	target   *scrape.Target
	recorder *fetch.Recorder
}

// Exchange is one request of a probe and its answer.
type Exchange = fetch.Exchange

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

// New returns a probe for each target of a configuration, which must be valid. Discovered
// targets are not among them; see Discover. Like the targets of a collector, they share the limits
// of memory.
func New(cfg *vllmreceiver.Config, telemetry component.TelemetrySettings) ([]*Probe, error) {
	group, err := newGroup(cfg, telemetry)
	if err != nil {
		return nil, err
	}
	var out []*Probe
	for _, server := range scrape.Configured(cfg) {
		out = append(out, newProbe(group, server))
	}
	return out, nil
}

// newGroup returns the group of the targets that are read. They ask /health themselves, or not at all.
func newGroup(cfg *vllmreceiver.Config, telemetry component.TelemetrySettings) (*scrape.Group, error) {
	own := *cfg
	own.HealthCheck = false
	return scrape.NewGroup(&own, receiver.Settings{ID: component.NewID(vllmreceiver.NewFactory().Type()), TelemetrySettings: telemetry})
}

func newProbe(group *scrape.Group, server scrape.Server) *Probe {
	p := &Probe{
		Name: scrape.InstanceID(server.Address), Scheme: server.Address.Scheme, Timeout: server.Client.Timeout,
		Credentials: server.Credentials(), Skips: server.Client.TLS.InsecureSkipVerify, group: group, recorder: new(fetch.Recorder),
	}
	if auth := server.Client.Auth.Get(); auth != nil {
		p.Authenticator = &auth.AuthenticatorID
	}
	server.Recorder = p.recorder
	p.target = group.NewTarget(server)
	return p
}

// Start opens nothing yet. It reads certificates and finds the authenticator of the host.
func (p *Probe) Start(ctx context.Context, host component.Host) error {
	return p.target.Start(ctx, host)
}

// Close closes the connections of the probe.
func (p *Probe) Close() {
	p.target.Stop()
	p.target.Close()
}

// Read scrapes the target once, on a connection of its own. It takes at most three timeouts:
// one for the metrics, one for the version, and one for the health and the load together. A
// later read knows the counters of the earlier ones.
func (p *Probe) Read(ctx context.Context) *Reading {
	origin := p.target.Origin()
	origin.Close()
	r := &Reading{At: time.Now(), Outcome: fetch.OutcomeOK.String()}
	scraping, cancel := context.WithCancel(ctx)
	detach := context.AfterFunc(p.target.Context(), cancel)
	found, err := p.target.Scrape(scraping)
	detach()
	cancel()
	r.Took, r.Emitted = time.Since(r.At), found.Metrics
	if err != nil {
		failure := fetch.AsError(err)
		r.Outcome, r.Message, r.Cause = failure.Outcome.String(), failure.Message, failure.Detail
	} else if found.Body == nil {
		r.Outcome, r.Message = fetch.OutcomeCanceled.String(), "the scrape was canceled"
	}
	if found.Body != nil {
		r.read(found.Body, p.group.Options())
	}
	p.target.Done()
	p.finish(ctx, r)
	return r
}

// finish adds the facts of the exchanges, and of the paths that a scrape does not ask.
func (p *Probe) finish(ctx context.Context, r *Reading) {
	// The metrics come first, with their redirects, and then the version.
	exchanges := p.recorder.Take()
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
	if !r.IsServer {
		return
	}
	if p.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, p.Timeout)
		defer cancel()
	}
	_, _ = p.target.Origin().Health(ctx) // The exchange has the status.
	r.HealthAsked = true
	if asked := p.recorder.Take(); len(asked) > 0 {
		r.Health = asked[len(asked)-1].Status
	}
	if r.Health == 0 || !p.group.Emits(emit.MetricLoad) {
		return
	}
	if load, err := p.target.Origin().Load(ctx); err == nil {
		r.Load = &load
	}
	p.recorder.Take()
}

// read adds the facts of a body.
func (r *Reading) read(body *scrape.Body, options *normalize.Options) {
	plan, snapshot := body.Plan, body.Snapshot
	r.Version, r.Dialect, r.Bytes, r.Cut = body.Version, body.Dialect.String(), body.Bytes, body.Cut
	r.Kind = string(plan.Server)
	r.Server, r.IsServer = plan.Shown(options, body.Version, body.Dialect == exposition.DialectOpenMetrics)
	r.Unknown, r.Conflicts = slices.Clone(plan.Unknown), slices.Clone(plan.Conflicts)
	r.Samples, r.Points, r.Duplicates = snapshot.Samples, body.Report.Points, snapshot.Duplicates
	for i := range snapshot.Layout.Families {
		r.Families = append(r.Families, familyOf(&snapshot.Layout.Families[i], options))
	}
	r.BadLines, r.Dropped = map[string]int{}, map[string]int{}
	for _, problem := range snapshot.Problems {
		r.BadLines[problem.Reason.String()]++
		r.FirstBad = cmp.Or(r.FirstBad, problem.Line)
	}
	for reason := range plan.Dropped {
		if n := plan.Dropped[reason] + body.Report.Dropped[reason]; n > 0 {
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

// Printable returns a text of another machine as one printable line of at most 300
// characters, without credentials or queries of addresses.
func Printable(text string) string { return remote.Text(text) }
