package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
)

// checkout is a program that makes metrics in each way that llm-d-router does.
func checkout(more string) fstest.MapFS {
	of := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	const client = `import "github.com/prometheus/client_golang/prometheus"` + "\n"
	return fstest.MapFS{
		"go.mod": of("module example.com/picker\n\ngo 1.26\n"),
		"names/names.go": of(`package names
const Subsystem = "pick_" + last
const last = "er"
var Model = []string{"model", "target"}
`),
		"plain/plain.go": of("package plain\n" + client + `import other "example.com/picker/names"
const local = other.Subsystem
var labels = append(append([]string{}, other.Model...), "tenant")
var (
	requests = prometheus.NewCounterVec(prometheus.CounterOpts{Subsystem: local, Name: "requests_total"}, labels)
	seconds  = prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: "n", Subsystem: other.Subsystem, Name: "seconds"}, append(labels, "code"))
	depth    = prometheus.NewGauge(prometheus.GaugeOpts{Name: string(other.Subsystem) + "_depth", ConstLabels: prometheus.Labels{"zone": "a"}})
)
`),
		"twice/twice.go": of("package twice\n" + client + `
func both(old, name string) (prometheus.Counter, prometheus.Counter) {
	return prometheus.NewCounter(prometheus.CounterOpts{Namespace: "old", Subsystem: old, Name: name}),
		prometheus.NewCounter(prometheus.CounterOpts{Subsystem: "new", Name: name})
}
var a, b = both("index", "hits_total")
var c, d = both("events", "lost_total")
`),
		"collector/collector.go": of("package collector\n" + client + `import "example.com/picker/names"
var ready = prometheus.NewDesc(prometheus.BuildFQName("", names.Subsystem, "ready"), "help", []string{"pool"}, nil)
func Collect(ch chan<- prometheus.Metric) {
	ch <- prometheus.MustNewConstMetric(ready, prometheus.GaugeValue, 1, "p")
}
`),
		"more/more.go":          of("package more\n" + client + more),
		"plain/plain_test.go":   of("package plain\n" + client + `var x = prometheus.NewGauge(prometheus.GaugeOpts{Name: "of_a_test"})`),
		"test/server/server.go": of("package server\n" + client + `var x = prometheus.NewGauge(prometheus.GaugeOpts{Name: "of_a_test"})`),
	}
}

func TestTheFamiliesOfAGoProgramAreRead(t *testing.T) {
	s, err := readSource(checkout(""))
	require.NoError(t, err)
	assert.Equal(t, []found{
		{"n_pick_er_seconds", "histogram", []string{"code", "model", "target", "tenant"}},
		{"new_hits_total", "counter", nil},
		{"new_lost_total", "counter", nil},
		{"old_events_lost_total", "counter", nil},
		{"old_index_hits_total", "counter", nil},
		{"pick_er_depth", "gauge", []string{"zone"}},
		{"pick_er_ready", "gauge", []string{"pool"}},
		{"pick_er_requests_total", "counter", []string{"model", "target", "tenant"}},
	}, s.families())
	assert.Empty(t, s.complaints)
}

// What only the running program knows is said, and not left out in silence.
func TestWhatTheSourceDoesNotSayIsReported(t *testing.T) {
	for more, want := range map[string]string{
		`var x = prometheus.NewGauge(prometheus.GaugeOpts{Name: name()})`:                             "more/more.go:3:9: the Name of a gauge",
		`var x = prometheus.NewGauge(options())`:                                                      "more/more.go:3:9: the options of a gauge",
		`var x = prometheus.NewDesc("a_b", "help", nil, nil)`:                                         "more/more.go:3:9: the type of a_b",
		`func f(name string) { prometheus.NewCounter(prometheus.CounterOpts{Name: name}) }`:           "more/more.go:3:23: the Name of a counter",
		`var x = prometheus.NewGauge(prometheus.GaugeOpts{Name: "a", ConstLabels: constantLabels()})`: "more/more.go:3:9: the constant labels of a gauge",
	} {
		s, err := readSource(checkout(more))
		require.NoError(t, err)
		assert.Len(t, s.families(), 8, more)
		assert.Equal(t, []string{want}, s.complaints, more)
	}
	s, err := readSource(checkout(`var x = prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "a"}, labels())`))
	require.NoError(t, err)
	assert.Contains(t, s.families(), found{"a", "gauge", []string{"?"}})
	_, err = readSource(fstest.MapFS{})
	require.ErrorContains(t, err, "go.mod")
	bad := checkout("func")
	_, err = readSource(bad)
	assert.ErrorContains(t, err, "more/more.go")
}

func TestWhatDiffersFromTheRouterIsFound(t *testing.T) {
	const release = "main-20990101-abcdef0"
	for want, f := range map[string]found{
		"llm_d_epp_new_total is unknown to the catalogue: a counter by kind, from llm-d-router main-20990101-abcdef0 on":                       {"llm_d_epp_new_total", "counter", []string{"kind"}},
		"llm_d_epp_ready_endpoints is a counter or gauge in the source, and a gauge in the catalogue":                                          {"llm_d_epp_ready_endpoints", "counter", []string{"name"}},
		"llm_d_epp_ready_endpoints has the label zone in the source, and not in the catalogue":                                                 {"llm_d_epp_ready_endpoints", "gauge", []string{"name", "zone"}},
		"llm_d_epp_config_reload_total is in the source: take it out of the families that were not read":                                       {"llm_d_epp_config_reload_total", "counter", []string{"result"}},
		"inference_gateway.pool.endpoint.ready has no family in llm-d-router main-20990101-abcdef0: the newest source that has one is " + head: {"llm_d_epp_info", "gauge", nil},
	} {
		read := tableOf(t, routers)
		read.merge(release, f)
		assert.Contains(t, compare(read), want)
	}
}

// head is the newest commit in the table.
const head = "main-20260822-ebab687"

// A family of the catalogue that no source has can never match.
func TestAFamilyThatNoSourceHasIsFound(t *testing.T) {
	read := tableOf(t, routers)
	delete(read.families, "moriio_dns_reresolve_total")
	assert.Equal(t, []string{"moriio_dns_reresolve_total is in no source that was read, and the catalogue has it"}, compare(read))
}

// An attribute of the catalogue is a label of the source, under its own name.
func TestLabelsOfTheRouterAreComparedAsAttributes(t *testing.T) {
	read := tableOf(t, routers)
	assert.Equal(t, []string{"model_server_endpoint", "name"}, read.families["llm_d_epp_per_endpoint_queue_size"].labels)
	metric := catalog.BySource("llm_d_epp_inflight_tokens")[0].Metric
	assert.True(t, slices.Contains(metric.Attributes, "endpoint_namespace"))
	read.families["llm_d_epp_inflight_tokens"].labels = []string{"endpoint_name", "fairness_id", "priority", "producer_name"}
	assert.Equal(t, []string{metric.Name + " has the attribute endpoint_namespace, which its families do not have in the source"}, compare(read))
}

func TestACommitIsNewerThanEveryRelease(t *testing.T) {
	releases := []string{"main-20260901-b", "0.9.0", "main-20260822-a", "0.10.0"}
	slices.SortFunc(releases, older)
	assert.Equal(t, []string{"0.9.0", "0.10.0", "main-20260822-a", "main-20260901-b"}, releases)
}

func TestASourceIsMergedIntoTheTable(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "router.tsv")
	content, err := os.ReadFile(routers)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, content, 0o600))
	source := filepath.Join(folder, "source")
	require.NoError(t, os.CopyFS(source, checkout("")))
	findings, err := work(file, "", source, "0.11.0")
	require.NoError(t, err)
	assert.Contains(t, findings, "pick_er_ready is unknown to the catalogue: a gauge by pool, from llm-d-router 0.11.0 on")
	merged, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Contains(t, string(merged), "\npick_er_ready\tgauge\tpool\t0.11.0\t0.11.0\n")
	assert.Contains(t, string(merged), " 0.10.0 0.11.0 "+head+"\n")
	_, err = work(file, "", t.TempDir(), "0.11.0")
	assert.ErrorContains(t, err, "go.mod")
}
