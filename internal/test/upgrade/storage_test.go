package upgrade

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/extension/storage/filestorage"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/extension/extensiontest"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/processortest"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor"
)

// hostWith is a host with one storage.
type hostWith struct{ extension component.Component }

var storageID = component.MustNewID("file_storage")

func (h hostWith) GetExtensions() map[component.ID]component.Component {
	return map[component.ID]component.Component{storageID: h.extension}
}

// disk opens file_storage in a folder, as a collector does.
func disk(t *testing.T, dir string) hostWith {
	t.Helper()
	factory := filestorage.NewFactory()
	config := factory.CreateDefaultConfig().(*filestorage.Config)
	config.Directory = dir
	settings := extensiontest.NewNopSettings(factory.Type())
	settings.ID = storageID
	extension, err := factory.Create(context.Background(), settings, config)
	require.NoError(t, err)
	require.NoError(t, extension.Start(context.Background(), componenttest.NewNopHost()))
	t.Cleanup(func() { assert.NoError(t, extension.Shutdown(context.Background())) })
	return hostWith{extension}
}

// inProcess is the processor of this tree, with the settings that the last release had, at a time
// soon after the fixture was written: budgets and baselines become too old.
type inProcess struct {
	t     *testing.T
	clock *vllmprocessor.ManualClock
	sink  *consumertest.MetricsSink
	logs  *observer.ObservedLogs
	next  processor.Metrics
}

func newInProcess(t *testing.T, host component.Host, at time.Time) *inProcess {
	t.Helper()
	p := &inProcess{t: t, clock: vllmprocessor.NewManualClock(at), sink: &consumertest.MetricsSink{}}
	factory := vllmprocessor.NewFactoryWithClock(p.clock)
	config := factory.CreateDefaultConfig()
	require.NoError(t, confmap.NewFromStringMap(map[string]any{
		"window":        "4s",
		"objectives":    []any{map[string]any{"name": "ttft", "metric": "vllm.time_to_first_token", "threshold": "2.5s", "target": target}},
		"budget_window": "30d", "burn_windows": []any{"1h"}, "pool": map[string]any{"interval": "1s"}, "storage": "file_storage",
		"metrics": map[string]any{"vllm.diagnosis.signal_ratio": map[string]any{"enabled": true}},
	}).Unmarshal(config))
	core, logs := observer.New(zapcore.InfoLevel)
	p.logs = logs
	settings := processortest.NewNopSettings(factory.Type())
	settings.ID = component.MustNewID("vllm")
	settings.Logger = zap.New(core)
	var err error
	p.next, err = factory.CreateMetrics(t.Context(), settings, config, p.sink)
	require.NoError(t, err)
	require.NoError(t, p.next.Start(t.Context(), host))
	return p
}

func (p *inProcess) end() {
	p.t.Helper()
	require.NoError(p.t, p.next.Shutdown(context.Background()))
}

// warnings are the sentences of the log above info.
func (p *inProcess) warnings() (all []string) {
	for _, entry := range p.logs.FilterLevelExact(zapcore.WarnLevel).All() {
		all = append(all, entry.Message)
	}
	return all
}

// batches are the last ones of the last release's receiver, later by so much.
func batches(t *testing.T, later time.Duration) (all []pmetric.Metrics) {
	t.Helper()
	content, err := os.ReadFile(fixture("batches.json.gz"))
	require.NoError(t, err)
	packed, err := gzip.NewReader(bytes.NewReader(content))
	require.NoError(t, err)
	text, err := io.ReadAll(packed)
	require.NoError(t, err)
	for line := range bytes.Lines(text) {
		metrics, err := (&pmetric.JSONUnmarshaler{}).UnmarshalMetrics(line)
		require.NoError(t, err)
		shift(metrics, pcommon.Timestamp(later))
		all = append(all, metrics)
	}
	return all
}

func shift(metrics pmetric.Metrics, by pcommon.Timestamp) {
	for _, rm := range metrics.ResourceMetrics().All() {
		for _, scope := range rm.ScopeMetrics().All() {
			for _, m := range scope.Metrics().All() {
				switch m.Type() {
				case pmetric.MetricTypeGauge:
					for _, p := range m.Gauge().DataPoints().All() {
						p.SetTimestamp(p.Timestamp() + by)
					}
				case pmetric.MetricTypeSum:
					for _, p := range m.Sum().DataPoints().All() {
						p.SetTimestamp(p.Timestamp() + by)
					}
				case pmetric.MetricTypeHistogram:
					for _, p := range m.Histogram().DataPoints().All() {
						p.SetTimestamp(p.Timestamp() + by)
					}
				}
			}
		}
	}
}

// play gives the processor the batches and returns all that it emitted for them.
func (p *inProcess) play(all []pmetric.Metrics) []pmetric.Metrics {
	p.t.Helper()
	for _, metrics := range all {
		for _, name := range []string{"sim-1:8000", counterName} {
			if up := series([]pmetric.Metrics{metrics}, name, "vllm.up", nil); len(up) > 0 && up[0].at.AsTime().After(p.clock.Now()) {
				p.clock.Advance(up[0].at.AsTime())
			}
		}
		require.NoError(p.t, p.next.ConsumeMetrics(p.t.Context(), metrics))
	}
	return p.sink.AllMetrics()
}

// of returns the batches of one server.
func of(server string, all ...[]pmetric.Metrics) (its []pmetric.Metrics) {
	for _, metrics := range slices.Concat(all...) {
		if len(series([]pmetric.Metrics{metrics}, server, "vllm.up", nil)) > 0 {
			its = append(its, metrics)
		}
	}
	return its
}

const aMinute = time.Minute

func TestTheBudgetsOfTheLastReleaseContinue(t *testing.T) {
	f := known(t)
	assert.InDelta(t, 1-f.Slow/f.Requests/(1-target), f.Left, 1e-12, "the fixture itself")
	p := newInProcess(t, disk(t, unpack(t)), f.Last.AsTime().Add(aMinute))
	// No request came since. What is left is emitted from the second scrape on.
	again := of(counterName, batches(t, 2*aMinute), batches(t, 2*aMinute+time.Second))
	left := series(p.play(again), counterName, "vllm.slo.error_budget_remaining", map[string]string{"bound": "lower"})
	require.Len(t, left, 1)
	assert.InDelta(t, f.Left, left[0].number, 1e-12)
	assert.Equal(t, int64(4), p.logs.FilterMessage("objectives continue where they were saved").All()[0].ContextMap()["states"])
	p.end()
}

func TestTheBaselinesOfTheLastReleaseAreUsed(t *testing.T) {
	f := known(t)
	for name, test := range map[string]struct {
		dir  func(*testing.T) string
		want bool
	}{
		"its storage": {unpack, true},
		"no storage":  {(*testing.T).TempDir, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := newInProcess(t, disk(t, test.dir(t)), f.Last.AsTime().Add(aMinute))
			ratios := series(p.play(batches(t, 2*aMinute)), "sim-1:8000", "vllm.diagnosis.signal_ratio", nil)
			assert.Equal(t, test.want, len(ratios) > 0, "ten seconds are enough to compare, and not to learn")
			for _, warning := range p.warnings() {
				assert.NotContains(t, warning, "damaged")
			}
			p.end()
		})
	}
}

// stored reads a value of a storage of the processor.
func stored(t *testing.T, host hostWith, part string) storage.Client {
	t.Helper()
	client, err := host.extension.(storage.Extension).GetClient(t.Context(), component.KindProcessor, component.MustNewID("vllm"), part)
	require.NoError(t, err)
	return client
}

// A collector goes back from a version that does not exist yet, whose storage this one cannot read,
// and forward again: what that version wrote must still be there.
func TestAStorageOfALaterVersionIsNotDestroyed(t *testing.T) {
	f := known(t)
	at := f.Last.AsTime().Add(aMinute)
	// The letter of the form and an entry without a key, whose state is the form's number 3 and what
	// a later version may put there: see internal/archive of the processor.
	later := map[string][]byte{
		"objectives": []byte("A\x01\x00\x06\x03zzzz!and what it stores"),
		"baselines":  []byte("A\x01\x00\x06\x03zzzz!and what it learned"),
	}
	parts := map[string]string{"objectives": "", "baselines": "baselines"}
	dir := unpack(t)
	before := disk(t, dir)
	for key, value := range later {
		client := stored(t, before, parts[key])
		require.NoError(t, client.Set(t.Context(), key, value))
		require.NoError(t, client.Close(t.Context()))
	}
	p := newInProcess(t, before, at)
	p.play(batches(t, 2*aMinute))
	require.Len(t, p.warnings(), 3, "one for each kind, and one on the objective")
	assert.Contains(t, p.warnings()[1]+p.warnings()[2], "was written by another version; 0 of")
	p.end()
	for key, value := range later {
		client := stored(t, before, parts[key])
		kept, err := client.Get(t.Context(), key+".unread")
		require.NoError(t, err)
		assert.Equal(t, string(value), string(kept), "%s for the version that wrote it", key)
		now, err := client.Get(t.Context(), key)
		require.NoError(t, err)
		assert.NotEqual(t, string(value), string(now), "%s of this version", key)
		require.NoError(t, client.Close(t.Context()))
	}
}

// What was set aside and can be read now continues, unless something newer is there.
func TestWhatWasSetAsideContinuesWhereItCanBeRead(t *testing.T) {
	f := known(t)
	host := disk(t, unpack(t))
	client := stored(t, host, "")
	value, err := client.Get(t.Context(), "objectives")
	require.NoError(t, err)
	require.NoError(t, client.Set(t.Context(), "objectives.unread", value))
	require.NoError(t, client.Delete(t.Context(), "objectives"))
	require.NoError(t, client.Close(t.Context()))

	p := newInProcess(t, host, f.Last.AsTime().Add(aMinute))
	again := of(counterName, batches(t, 2*aMinute), batches(t, 2*aMinute+time.Second))
	left := series(p.play(again), counterName, "vllm.slo.error_budget_remaining", map[string]string{"bound": "lower"})
	require.Len(t, left, 1)
	assert.InDelta(t, f.Left, left[0].number, 1e-12)
	p.end()
	client = stored(t, host, "")
	value, err = client.Get(t.Context(), "objectives.unread")
	require.NoError(t, err)
	assert.Nil(t, value, "it was taken back")
	require.NoError(t, client.Close(t.Context()))
}
