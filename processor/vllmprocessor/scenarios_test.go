package vllmprocessor

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/golden"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/internal/message"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/metadata"
)

var update = flag.Bool("update", false, "write the golden files instead of comparing with them")

// Each folder of testdata is a story. What the processor adds must be its truth,
// which is worked out by hand, point by point: no value more, none less. The
// files input-N.yaml and output.yaml show the same as OTLP. There is no diagnosis
// unless the configuration of the story names it, so that each story is about one
// thing.
func TestStories(t *testing.T) {
	stories, err := filepath.Glob("testdata/*/story.txt")
	require.NoError(t, err)
	require.NotEmpty(t, stories)
	for _, path := range stories {
		folder := filepath.Dir(path)
		t.Run(filepath.Base(folder), func(t *testing.T) { runStory(t, folder) })
	}
}

func runStory(t *testing.T, folder string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, "story.txt"))
	require.NoError(t, err)
	story := readStory(t, string(text))
	config, err := os.ReadFile(filepath.Join(folder, "config.yaml"))
	if !os.IsNotExist(err) {
		require.NoError(t, err)
	}
	chosen := configured(t, string(config))
	// Many stories show windows by means that are off by default.
	for _, m := range catalog.All() {
		if on := true; strings.HasSuffix(m.Name, "_mean") && m.Derived() && !m.In(catalog.Standard) && chosen.lacks(m.Name) == "" {
			if chosen.Metrics == nil {
				chosen.Metrics = map[string]MetricConfig{}
			}
			chosen.Metrics[m.Name] = MetricConfig{Enabled: &on}
		}
	}
	if !strings.Contains(string(config), "diagnosis:") {
		chosen.Diagnosis.Enabled = false
	}
	p := create(t, chosen, processortest.NewNopSettings(metadata.Type))
	output := pmetric.NewMetrics()
	var inputs []string
	for i := range story.calls {
		call := &story.calls[i]
		inputs = append(inputs, fmt.Sprintf("input-%d.yaml", i+1))
		compareGolden(t, filepath.Join(folder, inputs[i]), call.input)
		p.now = func() time.Time { return call.at }
		passed := pmetric.NewMetrics()
		call.input.CopyTo(passed)
		passed, err := p.process(t.Context(), passed)
		require.NoError(t, err)
		added := takeAdded(passed)
		assert.Equal(t, call.input, passed, "what passes through is not changed")
		checkTruth(t, fmt.Sprintf("%s, batch %d", folder, i+1), call.truth, points(t, added))
		added.ResourceMetrics().MoveAndAppendTo(output.ResourceMetrics())
	}
	compareGolden(t, filepath.Join(folder, "output.yaml"), output)
	kept, err := filepath.Glob(filepath.Join(folder, "input-*.yaml"))
	require.NoError(t, err)
	assert.Len(t, kept, len(inputs), "files of batches that the story does not have")
}

// takeAdded moves what the processor added out of metrics.
func takeAdded(metrics pmetric.Metrics) pmetric.Metrics {
	added := pmetric.NewMetrics()
	for _, rm := range metrics.ResourceMetrics().All() {
		rm.ScopeMetrics().RemoveIf(func(sm pmetric.ScopeMetrics) bool {
			if sm.Scope().Name() != metadata.ScopeName {
				return false
			}
			to := added.ResourceMetrics().AppendEmpty()
			rm.Resource().CopyTo(to.Resource())
			sm.MoveTo(to.ScopeMetrics().AppendEmpty())
			return true
		})
	}
	return added
}

func checkTruth(t *testing.T, when string, truth, emitted map[string]float64) {
	t.Helper()
	for _, key := range slices.Sorted(maps.Keys(truth)) {
		want := truth[key]
		got, there := emitted[key]
		switch {
		case !there:
			assert.Fail(t, "missing", "%s: %s %g", when, key, want)
		case math.IsNaN(want) != math.IsNaN(got):
			assert.Fail(t, "an end is not a value", "%s: %s is %g, not %g", when, key, got, want)
		case !math.IsNaN(want):
			assert.InDelta(t, want, got, 1e-9*math.Abs(want), "%s: %s", when, key)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(emitted)) {
		assert.Contains(t, truth, key, "%s: %g", when, emitted[key])
	}
}

func compareGolden(t *testing.T, path string, metrics pmetric.Metrics) {
	t.Helper()
	for _, rm := range metrics.ResourceMetrics().All() {
		for _, scope := range rm.ScopeMetrics().All() {
			for _, metric := range scope.Metrics().All() {
				metric.Metadata().Remove(message.Key) // Words have tests of their own.
			}
		}
	}
	got, err := golden.MarshalMetricsYAML(metrics)
	require.NoError(t, err)
	if *update {
		require.NoError(t, os.WriteFile(path, got, 0o644))
		return
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "write it with go test -update, after the truth holds")
	if !bytes.Equal(want, got) {
		t.Errorf("%s differs:\n%s", path, cmp.Diff(strings.Split(string(want), "\n"), strings.Split(string(got), "\n")))
	}
}
