package vllmreceiver

import (
	"context"
	"crypto/md5"
	"encoding/binary"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/metadatatest"
)

// discoveredBy runs a receiver with this discovery until it has counted, and returns the
// gauge by stage.
func discoveredBy(t *testing.T, discovery string) map[string]int64 {
	t.Helper()
	recorded := componenttest.NewTelemetry()
	t.Cleanup(func() { require.NoError(t, recorded.Shutdown(context.Background())) })
	cfg, err := decode(t, "collection_interval: 1h\n"+discovery)
	require.NoError(t, err)
	cfg.Controller.InitialDelay = time.Hour
	r, err := newReceiver(cfg, metadatatest.NewSettings(recorded), consumertest.NewNop())
	require.NoError(t, err)
	require.NoError(t, r.Start(t.Context(), componenttest.NewNopHost()))
	defer func() { require.NoError(t, r.Shutdown(context.Background())) }()
	out := map[string]int64{}
	require.Eventually(t, func() bool {
		metric, err := recorded.GetMetric("otelcol_receiver_vllm_discovered_targets")
		if err != nil {
			return false
		}
		for _, point := range metric.Data.(metricdata.Gauge[int64]).DataPoints {
			stage, _ := point.Attributes.Value("stage")
			out[stage.AsString()] = point.Value
		}
		return len(out) > 0
	}, within, 10*time.Millisecond)
	return out
}

// All receivers of a collector share its instruments: without a name, each would overwrite the
// numbers of the others.
func TestTheGaugesOfSeveralReceiversAreApart(t *testing.T) {
	t.Parallel()
	recorded := componenttest.NewTelemetry()
	t.Cleanup(func() { require.NoError(t, recorded.Shutdown(context.Background())) })
	for name, targets := range map[string]string{"servers": "[{endpoint: 'http://127.0.0.1:1'}, {endpoint: 'http://127.0.0.1:2'}]", "picker": "[{endpoint: 'http://127.0.0.1:3'}]"} {
		cfg, err := decode(t, "collection_interval: 1h\ntargets: "+targets)
		require.NoError(t, err)
		cfg.Controller.InitialDelay = time.Hour
		settings := metadatatest.NewSettings(recorded)
		settings.ID = component.NewIDWithName(settings.ID.Type(), name)
		r, err := newReceiver(cfg, settings, consumertest.NewNop())
		require.NoError(t, err)
		require.NoError(t, r.Start(t.Context(), componenttest.NewNopHost()))
		t.Cleanup(func() { require.NoError(t, r.Shutdown(context.Background())) })
	}
	metric, err := recorded.GetMetric("otelcol_receiver_vllm_targets")
	require.NoError(t, err)
	got := map[string]int64{}
	for _, point := range metric.Data.(metricdata.Gauge[int64]).DataPoints {
		receiver, _ := point.Attributes.Value("receiver")
		_, name, _ := strings.Cut(receiver.AsString(), "/")
		got[name] = point.Value
	}
	assert.Equal(t, map[string]int64{"servers": 2, "picker": 1}, got)
}

// Of ten targets a rule drops two, and three shards divide the others: kept of all shards,
// added up, is what each of them shares.
func TestTheTargetsOfAllShardsAddUp(t *testing.T) {
	t.Parallel()
	addresses, wanted := []string{}, [3]int64{}
	for i := range 10 {
		address := fmt.Sprintf("127.0.0.1:%d", 10+i)
		addresses = append(addresses, address)
		if i >= 2 {
			sum := md5.Sum([]byte(address))
			wanted[binary.BigEndian.Uint64(sum[8:])%3]++
		}
	}
	lists := "discovery:\n  static_configs: [{targets: [\"" + strings.Join(addresses, `", "`) + "\"]}]\n"
	for shard, kept := range wanted {
		got := discoveredBy(t, lists+fmt.Sprintf(`  relabel_configs:
    - {source_labels: [__address__], regex: ".*:1[01]", action: drop}
    - {source_labels: [__address__], modulus: 3, target_label: __tmp_shard, action: hashmod}
    - {source_labels: [__tmp_shard], regex: %d, action: keep}
`, shard))
		assert.Equal(t, map[string]int64{"found": 10, "shared": 8, "kept": kept}, got, "shard %d", shard)
	}
	assert.True(t, maps.Equal(map[string]int64{"found": 10, "kept": 10}, discoveredBy(t, lists)), "without shards")
}
