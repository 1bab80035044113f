//go:build e2e

package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/lab/test/collector"
)

const restartConfig = `
receivers:
  vllm:
    collection_interval: 1s
    timeout: 1s
    targets: [{endpoint: 'http://%[1]s'}, {endpoint: 'http://%[2]s'}, {endpoint: 'http://%[3]s'}]
exporters:
  prometheus: {endpoint: %[4]s}
  file: {path: %[5]s}
service:
  pipelines:
    metrics: {receivers: [vllm], exporters: [prometheus, file]}
`

// server answers with one body, and with another one after a restart.
type server struct {
	bodies [2][]byte
	// life is the index of the body; asked counts its requests in each.
	life  atomic.Int64
	asked [2]atomic.Int64
	http  *httptest.Server
	addr  string
}

func serve(t *testing.T, before, after []byte) *server {
	t.Helper()
	s := &server{bodies: [2][]byte{before, after}}
	s.http = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/metrics" {
			http.NotFound(w, r)
			return
		}
		life := s.life.Load()
		w.Header().Set("Content-Type", text)
		_, _ = w.Write(s.bodies[life])
		s.asked[life].Add(1)
	}))
	t.Cleanup(s.http.Close)
	s.addr = strings.TrimPrefix(s.http.URL, "http://")
	return s
}

// A body of a server that reports when its counter was created. Two of its engines
// are there only in the first life, and the counter grows past its old number.
const (
	createdFormat = `# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="m"} %[1]d
%[3]s# TYPE vllm:prompt_tokens_total counter
vllm:prompt_tokens_total{engine="0",model_name="m"} %[1]d0
# TYPE vllm:prompt_tokens_created gauge
vllm:prompt_tokens_created{engine="0",model_name="m"} %[2]d.0
`
	moreEngines = `vllm:num_requests_running{engine="1",model_name="m"} 2
vllm:num_requests_running{engine="2",model_name="m"} 1
`
)

func TestARestartAndATargetThatGoesAway(t *testing.T) {
	t.Parallel()
	own := filepath.Join(root, "testdata", "v1-multiproc-0.10.2")
	older, newer := read(t, filepath.Join(own, "metrics.txt")), read(t, filepath.Join(own, "metrics-2.txt"))
	// The body that is older has the lower counters.
	restarted := serve(t, newer, older)
	vanishing := serve(t, newer, newer)
	firstLife, secondLife := time.Now().Add(-time.Hour).Unix(), time.Now().Add(-time.Minute).Unix()
	created := serve(t,
		fmt.Appendf(nil, createdFormat, 3, firstLife, moreEngines),
		fmt.Appendf(nil, createdFormat, 4, secondLife, ""))

	addr, file := collector.FreeAddr(t), filepath.Join(t.TempDir(), "metrics.json")
	c := collector.RunWith(t, fmt.Sprintf(restartConfig, restarted.addr, vanishing.addr, created.addr, addr, file))
	c.WaitFor(t, "three scrapes of all", func() bool {
		return restarted.asked[0].Load() > 2 && vanishing.asked[0].Load() > 2 && created.asked[0].Load() > 2
	})
	page := collector.Get(t, "http://"+addr+"/metrics")
	up := labels.FromStrings(model.MetricNameLabel, "vllm_up").String()
	for _, s := range []*server{restarted, vanishing, created} {
		assert.Equal(t, 1.0, parsePage(t, page, of(s.addr))[up], "all are up")
	}
	assert.Greater(t, len(parsePage(t, page, of(vanishing.addr))), 100)
	running := func(engine string) string {
		return labels.FromStrings(model.MetricNameLabel, "vllm_num_requests_running", "engine", engine, "model_name", "m").String()
	}
	for _, engine := range []string{"0", "1", "2"} {
		assert.Contains(t, parsePage(t, page, of(created.addr)), running(engine))
	}

	restarted.life.Store(1)
	created.life.Store(1)
	vanishing.http.CloseClientConnections()
	vanishing.http.Close()
	c.WaitFor(t, "three scrapes of the second lives, and the end of the vanished one", func() bool {
		page = collector.Get(t, "http://"+addr+"/metrics")
		return restarted.asked[1].Load() > 2 && created.asked[1].Load() > 2 &&
			parsePage(t, page, of(vanishing.addr))[up] == 0
	})
	c.Stop(t)
	assert.Empty(t, c.Errors())

	t.Run("the vanished target's series end in Prometheus", func(t *testing.T) {
		left := parsePage(t, page, of(vanishing.addr))
		delete(left, labels.FromStrings(model.MetricNameLabel, "of another target").String())
		assert.Contains(t, left, up)
		delete(left, up)
		for series := range left {
			assert.Regexp(t, `__name__="(vllm_scrape_(duration_seconds|samples|failure)|target_info)"`, series)
		}
		assert.Equal(t, 1, strings.Count(c.Log(), "connection refused"), "and the log says so once")
	})
	t.Run("vanished series of a living target end in Prometheus", func(t *testing.T) {
		left := parsePage(t, page, of(created.addr))
		assert.Equal(t, 4.0, left[running("0")])
		assert.NotContains(t, left, running("1"))
		assert.NotContains(t, left, running("2"))
	})
	t.Run("the numbers after the restart reach Prometheus", func(t *testing.T) {
		want := parsePage(t, older, bare)
		found := parsePage(t, page, of(restarted.addr))
		for series, value := range want {
			if strings.Contains(metricName(series), "tokens_total") && !strings.Contains(metricName(series), "iteration") {
				equal(t, found, colonRule(series), value, "after the restart")
			}
		}
	})

	all := scrapes(t, file)
	t.Run("every series of the vanished target ends once", func(t *testing.T) { ends(t, all[vanishing.addr]) })
	t.Run("a restart starts all counters anew at the last scrape before it", func(t *testing.T) {
		resets(t, all[restarted.addr])
	})
	t.Run("a newer created time is the new start", func(t *testing.T) {
		starts := map[pcommon.Timestamp]bool{}
		for _, rm := range all[created.addr] {
			for key, p := range counters(rm) {
				if strings.HasPrefix(key, "vllm.prompt_tokens ") {
					starts[p.start] = true
				}
			}
		}
		assert.Equal(t, map[pcommon.Timestamp]bool{
			pcommon.Timestamp(firstLife * 1e9): true, pcommon.Timestamp(secondLife * 1e9): true,
		}, starts)
	})
}

// ends checks that each series of a target has one last point without a value
// after its last one with a value.
func ends(t *testing.T, all []pmetric.ResourceMetrics) {
	t.Helper()
	live, ended := map[string]bool{}, map[string]int{}
	for _, rm := range all {
		for key, p := range everyPoint(rm) {
			switch {
			case strings.HasPrefix(key, "vllm.up ") || strings.HasPrefix(key, "vllm.scrape."):
			case p.ends:
				ended[key]++
				assert.True(t, live[key], "%s had a value", key)
			default:
				live[key] = true
				assert.Zero(t, ended[key], "%s is back", key)
			}
		}
	}
	assert.Greater(t, len(live), 20)
	for key := range live {
		assert.Equal(t, 1, ended[key], "%s ends once", key)
	}
}

// resets finds the one restart in the scrapes of a target.
func resets(t *testing.T, all []pmetric.ResourceMetrics) {
	t.Helper()
	var last map[string]onePoint
	seen := 0
	for _, rm := range all {
		now := counters(rm)
		const key = `vllm.prompt_tokens {"engine":"0","model_name":`
		fell := false
		for k, p := range now {
			if strings.HasPrefix(k, key) && last != nil {
				fell = p.value < last[k].value
			}
		}
		for k, p := range now {
			before, known := last[k]
			switch {
			case fell:
				require.True(t, known, k)
				assert.Equal(t, before.time, p.start, "%s starts where it was last seen", k)
			case known:
				assert.Equal(t, before.start, p.start, "%s starts as before", k)
			default:
				assert.Equal(t, p.time, p.start, "%s starts with its first point, for want of something better", k)
			}
		}
		if fell {
			seen++
			assert.Greater(t, len(now), 15)
		}
		last = now
	}
	assert.Equal(t, 1, seen, "the counters fell once")
}

// onePoint has what these tests read of a point.
type onePoint struct {
	start, time pcommon.Timestamp
	value       float64
	ends        bool
	cumulative  bool
}

// counters returns the cumulative points of a scrape that have a value.
func counters(rm pmetric.ResourceMetrics) map[string]onePoint {
	all := everyPoint(rm)
	for key, p := range all {
		if !p.cumulative || p.ends {
			delete(all, key)
		}
	}
	return all
}

// everyPoint returns the points of a scrape by name and attributes.
func everyPoint(rm pmetric.ResourceMetrics) map[string]onePoint {
	all := map[string]onePoint{}
	add := func(m pmetric.Metric, attributes pcommon.Map, p onePoint) {
		all[fmt.Sprintf("%s %s", m.Name(), attributesText(attributes))] = p
	}
	for _, scope := range rm.ScopeMetrics().All() {
		for _, m := range scope.Metrics().All() {
			switch m.Type() {
			case pmetric.MetricTypeGauge:
				for _, p := range m.Gauge().DataPoints().All() {
					add(m, p.Attributes(), onePoint{p.StartTimestamp(), p.Timestamp(), p.DoubleValue(), p.Flags().NoRecordedValue(), false})
				}
			case pmetric.MetricTypeSum:
				for _, p := range m.Sum().DataPoints().All() {
					add(m, p.Attributes(), onePoint{p.StartTimestamp(), p.Timestamp(), p.DoubleValue(), p.Flags().NoRecordedValue(), true})
				}
			case pmetric.MetricTypeHistogram:
				for _, p := range m.Histogram().DataPoints().All() {
					add(m, p.Attributes(), onePoint{p.StartTimestamp(), p.Timestamp(), float64(p.Count()), p.Flags().NoRecordedValue(), true})
				}
			case pmetric.MetricTypeSummary:
				for _, p := range m.Summary().DataPoints().All() {
					add(m, p.Attributes(), onePoint{p.StartTimestamp(), p.Timestamp(), float64(p.Count()), p.Flags().NoRecordedValue(), true})
				}
			}
		}
	}
	return all
}

// attributesText writes attributes as JSON, which sorts them.
func attributesText(attributes pcommon.Map) string {
	value := pcommon.NewValueMap()
	attributes.CopyTo(value.Map())
	return value.AsString()
}
