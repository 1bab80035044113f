//go:build e2e

package conformance

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/lab/test/collector"
)

const prometheusConfig = `
global: {scrape_interval: 500ms, scrape_timeout: 500ms}
scrape_configs: [{job_name: program, static_configs: [{targets: [%q]}]}]
`

// evaluate compares the derived values with those of each Prometheus that is there: Debian's, and the newest.
func (r *Report) evaluate(t *testing.T, version string, families map[string]bool, scrapes []scrape, values []pmetric.ResourceMetrics, times []time.Time) {
	t.Helper()
	r.Derived = map[string][]Derived{}
	for name, run := range map[string]func(*testing.T, string, ...string) (*collector.Process, string){
		"prometheus": collector.Prometheus, "newest prometheus": collector.Newest,
	} {
		t.Run(name, func(t *testing.T) {
			h := &history{}
			for n := range times {
				h.pages = append(h.pages, stamped(scrapes[n].page, times[n]))
			}
			pages := httptest.NewServer(h)
			defer pages.Close()
			p, addr := run(t, fmt.Sprintf(prometheusConfig, strings.TrimPrefix(pages.URL, "http://")))
			defer p.Stop(t)
			p.WaitFor(t, "all pages in Prometheus", h.done)
			e := evaluation{report: r, addr: addr, version: version, families: families, found: map[string]*Derived{}, answers: map[string]map[string]float64{}}
			stored := e.query(t, "count_over_time("+counted+"[1h])", times[len(times)-1])
			require.Equal(t, map[string]float64{"": float64(len(times))}, stored, "Prometheus lacks pages")
			for n, at := range times {
				from := slices.IndexFunc(times, func(t time.Time) bool { return t.After(at.Add(-window)) }) - 1
				if from >= 0 {
					e.compare(t, values[n], at, at.Sub(times[from]))
				}
			}
			var all []Derived
			for _, name := range slices.Sorted(maps.Keys(e.found)) {
				all = append(all, *e.found[name])
			}
			r.Derived[versionOf(t, addr)] = all
		})
	}
}

// versionOf is what a Prometheus says of itself, as with --version.
func versionOf(t *testing.T, addr string) string {
	t.Helper()
	var build struct{ Data struct{ Version string } }
	require.NoError(t, json.Unmarshal(collector.Get(t, "http://"+addr+"/api/v1/status/buildinfo"), &build))
	require.NotEmpty(t, build.Data.Version, "run make servers")
	return build.Data.Version
}

// evaluation is that of one Prometheus.
type evaluation struct {
	report   *Report
	addr     string
	version  string
	families map[string]bool
	found    map[string]*Derived
	answers  map[string]map[string]float64
}

// compare compares the derived values of one scrape.
func (e *evaluation) compare(t *testing.T, rm pmetric.ResourceMetrics, at time.Time, elapsed time.Duration) {
	t.Helper()
	for _, sm := range rm.ScopeMetrics().All() {
		if !strings.HasSuffix(sm.Scope().Name(), "/processor/vllmprocessor") {
			continue
		}
		for _, m := range sm.Metrics().All() {
			promql := formula(m.Name(), e.version, e.families)
			if promql == "" || m.Type() != pmetric.MetricTypeGauge {
				add(&e.report.Uncompared, m.Name())
				continue
			}
			promql = strings.NewReplacer("WINDOW", window.String(), " E", fmt.Sprintf(" %.9f", elapsed.Seconds())).Replace(promql)
			for _, p := range m.Gauge().DataPoints().All() {
				if !p.Flags().NoRecordedValue() {
					e.point(t, m.Name(), promql, at, p)
				}
			}
		}
	}
}

func (e *evaluation) point(t *testing.T, metric, promql string, at time.Time, p pmetric.NumberDataPoint) {
	t.Helper()
	labels := map[string]string{}
	for name, value := range p.Attributes().All() {
		labels[name] = value.AsString()
	}
	promql = strings.NewReplacer("(Q,", "("+labels["quantile"]+",", "STATUS", labels["status_class"]).Replace(promql)
	key := rename(labels)
	want, has := e.ask(t, metric, promql, at)[key]
	got := number(p)
	where := fmt.Sprintf("{%s} is %.12g, not %.12g", key, got, want)
	if q := labels["quantile"]; q != "" {
		where = "quantile " + q + " " + where
	}
	if !has || math.IsNaN(want) {
		add(&e.report.Violations, metric+"{"+key+"}: there is a value, and Prometheus has none")
		return
	}
	d := e.found[metric]
	if d == nil {
		d = &Derived{Metric: metric}
		e.found[metric] = d
	}
	d.Compared++
	off := math.Abs(got-want) / max(math.Abs(want), 1e-6)
	if got == want {
		off = 0
	}
	if off > d.Largest {
		d.Largest = off
		if off > tolerance {
			d.At = where
		}
	}
}

// number is a point's number: of the two, the one that it does not have is 0.
func number(p pmetric.NumberDataPoint) float64 { return p.DoubleValue() + float64(p.IntValue()) }

// ask returns the values of a formula at a time, by attributes.
func (e *evaluation) ask(t *testing.T, metric, promql string, at time.Time) map[string]float64 {
	t.Helper()
	key := promql + at.String()
	if known, has := e.answers[key]; has {
		return known
	}
	out := map[string]float64{}
	for _, by := range groupingsOf(metric) {
		maps.Copy(out, e.query(t, strings.ReplaceAll(promql, "BY", by), at))
	}
	e.answers[key] = out
	return out
}

// query returns the values of a query at a time, by attributes.
func (e *evaluation) query(t *testing.T, promql string, at time.Time) map[string]float64 {
	t.Helper()
	parameters := url.Values{"query": {promql}, "time": {fmt.Sprintf("%.3f", float64(at.UnixMilli())/1e3)}}
	body := collector.Get(t, "http://"+e.addr+"/api/v1/query?"+parameters.Encode())
	require.NotEmpty(t, body, "Prometheus refuses %s", promql)
	var decoded struct {
		Data struct {
			Result []struct {
				Metric map[string]string
				Value  [2]any
			}
		}
	}
	require.NoError(t, json.Unmarshal(body, &decoded))
	out := map[string]float64{}
	for _, series := range decoded.Data.Result {
		value, err := strconv.ParseFloat(series.Value[1].(string), 64)
		require.NoError(t, err)
		out[rename(series.Metric)] = value
	}
	return out
}
