package main

import (
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// checkout is a program that makes metrics in each way that llm-d-router does.
func checkout(more string) fstest.MapFS {
	of := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	const client = "\n" + `import "github.com/prometheus/client_golang/prometheus"` + "\n"
	const onlyTests = "package plain" + client + `var x = prometheus.NewGauge(prometheus.GaugeOpts{Name: "of_a_test"})`
	return fstest.MapFS{
		"go.mod": of("module example.com/picker\n\ngo 1.26\n"),
		"names/names.go": of(`package names
const Subsystem = "pick_" + last
const last = "er"
var Model = []string{"model", "target"}
`),
		"plain/plain.go": of("package plain" + client + `import other "example.com/picker/names"
const local = other.Subsystem
var labels = append(append([]string{}, other.Model...), "tenant")
var (
	requests = prometheus.NewCounterVec(prometheus.CounterOpts{Subsystem: local, Name: "requests_total"}, labels)
	seconds  = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Namespace: "n", Subsystem: other.Subsystem, Name: "seconds"}, append(labels, "code"))
)
`),
		"twice/twice.go": of("package twice" + client + `
func both(old, name string) (prometheus.Counter, prometheus.Counter) {
	return prometheus.NewCounter(prometheus.CounterOpts{Namespace: "old", Subsystem: old, Name: name}),
		prometheus.NewCounter(prometheus.CounterOpts{Subsystem: "new", Name: name})
}
var a, b = both("index", "hits_total")
var c, d = both("events", "lost_total")
`),
		"collector/collector.go": of("package collector" + client + `
var Ready = prometheus.NewDesc("pick_ready", "help", []string{"pool"}, nil)
`),
		"use/use.go": of("package use" + client + `import "example.com/picker/collector"
func Collect(ch chan<- prometheus.Metric) {
	ch <- prometheus.MustNewConstMetric(collector.Ready, prometheus.GaugeValue, 1, "p")
}
`),
		"more/more.go":          of("package more" + client + more),
		"plain/plain_test.go":   of(onlyTests),
		"test/server/server.go": of(onlyTests),
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
		{"pick_er_requests_total", "counter", []string{"model", "target", "tenant"}},
		{"pick_ready", "gauge", []string{"pool"}},
	}, s.families())
	assert.Empty(t, s.complaints)
}

// What only the running program knows is said, and not left out in silence.
func TestWhatTheSourceDoesNotSayIsReported(t *testing.T) {
	for more, want := range map[string]string{
		`var x = prometheus.NewGauge(prometheus.GaugeOpts{Name: name()})`:                   "more/more.go:3:9: the Name of a gauge",
		`var x = prometheus.NewGauge(options())`:                                            "more/more.go:3:9: the options of a gauge",
		`var x = prometheus.NewDesc("a_b", "help", nil, nil)`:                               "more/more.go:3:9: the type of a_b",
		`func f(name string) { prometheus.NewCounter(prometheus.CounterOpts{Name: name}) }`: "more/more.go:3:23: the Name of a counter",
		`var x = prometheus.NewGauge(prometheus.GaugeOpts{ConstLabels: labels()})`:          "more/more.go:3:9: the ConstLabels of a gauge",
	} {
		s, err := readSource(checkout(more))
		require.NoError(t, err)
		assert.Len(t, s.families(), 7, more)
		assert.Equal(t, []string{want}, s.complaints, more)
	}
	s, err := readSource(checkout(`var x = prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "a"}, append(labels(), "b"))`))
	require.NoError(t, err)
	assert.Contains(t, s.families(), found{"a", "gauge", []string{"?", "b"}})
	_, err = readSource(checkout("func"))
	assert.ErrorContains(t, err, "more/more.go")
}

// head is the newest commit in the table.
const head = "main-20260822-ebab687"

func TestWhatDiffersFromTheRouterIsFound(t *testing.T) {
	const release = "main-20990101-abcdef0"
	for want, f := range map[string]found{
		"llm_d_epp_new_total is unknown to the catalogue: a counter by kind, from llm-d-router " + release + " on":         {"llm_d_epp_new_total", "counter", []string{"kind"}},
		"llm_d_epp_ready_endpoints is a counter or gauge in the source, and a gauge in the catalogue":                      {"llm_d_epp_ready_endpoints", "counter", nil},
		"llm_d_epp_ready_endpoints has the label zone in the source, and not in the catalogue":                             {"llm_d_epp_ready_endpoints", "gauge", []string{"name", "zone"}},
		"llm_d_epp_config_reload_total is in the source: take it out of the families that were not read":                   {"llm_d_epp_config_reload_total", "counter", nil},
		"inference_gateway.pool.endpoint.ready has no family in llm-d-router " + release + ": the last one was in " + head: {"llm_d_epp_info", "gauge", nil},
	} {
		read := tableOf(t, routers)
		read.merge(release, f)
		assert.Contains(t, compare(read), want)
	}
	read := tableOf(t, routers)
	delete(read.families, "moriio_dns_reresolve_total")
	read.families["llm_d_epp_inflight_tokens"].labels = []string{"endpoint_name", "fairness_id", "priority", "producer_name"}
	assert.Equal(t, []string{
		"inference_gateway.epp.endpoint.inflight_tokens has the attribute endpoint_namespace, which its families do not have in the source",
		"moriio_dns_reresolve_total is in no source that was read, and the catalogue has it",
	}, compare(read))
}

// A commit is newer than every release.
func TestASourceIsMergedIntoTheTable(t *testing.T) {
	folder := t.TempDir()
	file, source := filepath.Join(folder, "router.tsv"), filepath.Join(folder, "source")
	content, err := os.ReadFile(routers)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, content, 0o600))
	require.NoError(t, os.CopyFS(source, checkout("")))
	findings, err := work(file, "", source, "0.11.0")
	require.NoError(t, err)
	assert.Contains(t, findings, "pick_ready is unknown to the catalogue: a gauge by pool, from llm-d-router 0.11.0 on")
	merged, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Contains(t, string(merged), "\npick_ready\tgauge\tpool\t0.11.0\t0.11.0\n")
	assert.Contains(t, string(merged), " 0.10.0 0.11.0 "+head+"\n")
	_, err = work(file, "", folder, "0.11.0")
	assert.ErrorContains(t, err, "go.mod")
}
