package judge

import (
	"context"

	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor"
)

// reports gives the processor, or a method in its place, what the servers show, and keeps what it reports: the lines of
// a story without what is true, and the alarms.
type reports struct {
	name string
	// diagnosis is nil where there is a method.
	diagnosis *diagnosis
	method    Method
	// now has what was reported last, by server.
	now []report
	// paging is which alarm is the newest page of a server.
	paging []int
	out    *Played
}

func newReports(ctx context.Context, name string, servers int, config *vllmprocessor.Config, out *Played) (*reports, error) {
	d, err := newDiagnosis(ctx, config, begin)
	if err != nil {
		return nil, err
	}
	r := reportsOf(name, servers, out, nil)
	r.diagnosis = d
	return r, nil
}

func reportsOf(name string, servers int, out *Played, method Method) *reports {
	r := &reports{name: name, method: method, now: make([]report, servers), paging: make([]int, servers), out: out}
	out.Said = make([][]Said, servers)
	for i := range r.now {
		r.now[i].severity = -1
	}
	return r
}

func (r *reports) close(ctx context.Context) error {
	if r.diagnosis == nil {
		return nil
	}
	return r.diagnosis.processor.Shutdown(context.WithoutCancel(ctx))
}

func (r *reports) advance(to float64) {
	if r.diagnosis != nil {
		r.diagnosis.advance(to)
	}
}

// observe gives a scrape to whoever judges, and returns what is reported about the server.
func (r *reports) observe(ctx context.Context, server int, at float64, metrics pmetric.Metrics) (report, error) {
	if r.method == nil {
		return r.diagnosis.observe(ctx, metrics)
	}
	said, err := r.method.Scraped(ctx, server, at, metrics)
	return said.report(), err
}

// From warning on there is an alarm, and from page on one that wakes somebody after pagesAfter seconds: the
// "for" of the alert VLLMServerNotServing.
const warning, page, pagesAfter = 2, 3, 60.0

func (r *reports) scraped(ctx context.Context, server int, at float64, metrics pmetric.Metrics) error {
	reported, err := r.observe(ctx, server, at, metrics)
	if err != nil {
		return err
	}
	r.alarm(server, at, &reported)
	if r.now[server].differs(&reported) {
		r.out.Said[server] = append(r.out.Said[server], reported.said(at))
	}
	r.now[server] = reported
	return nil
}

// alarm adds an alarm where the severity has risen. A page is one that the shipped alert sends, which is once
// it has lasted for pagesAfter: what is over before was a warning.
func (r *reports) alarm(server int, at float64, reported *report) {
	was := r.now[server].severity
	if was >= page && reported.severity < page {
		i := r.paging[server]
		if a := &r.out.Alarms[i]; at-a.At < pagesAfter {
			a.Severity = warning
		}
	}
	if reported.severity > was && reported.severity >= warning {
		if reported.severity >= page {
			r.paging[server] = len(r.out.Alarms)
		}
		r.out.Alarms = append(r.out.Alarms, Alarm{
			Server: server, At: at, Severity: reported.severity, Condition: reported.condition, Cause: reported.primary(),
		})
	}
}

func (r *reports) minute(n int) {
	for i := range r.now {
		one := &r.now[i]
		line := Line{Scenario: r.name, Minute: n, Server: i, Condition: one.condition, Severity: one.severity, Causes: withoutNil(one.causes)}
		if d := r.diagnosis; d != nil && d.pool != nil {
			pool := d.pool
			line.Pool = &Pool{pool.condition, pool.severity, withoutNil(pool.causes)}
		}
		r.out.Lines = append(r.out.Lines, line)
	}
}

func withoutNil(causes []Cause) []Cause {
	if causes == nil {
		return []Cause{}
	}
	return causes
}
