package vllmprocessor

import (
	"context"

	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.uber.org/zap"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/collect"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/gpu"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/stages"
)

// gpuReadings are the readings of GPUs in a request.
type gpuReadings struct {
	*collect.Accelerators
	// matched is true for those of servers here.
	matched []bool
}

// observeGPUs takes the readings of GPUs. It is called before the servers of the request are
// judged, and again after it for those that belong to no server, because a server is known
// with its first batch only.
func (p *vllmProcessor) observeGPUs(ctx context.Context, found *gpuReadings, metrics pmetric.Metrics, now int64, last bool) {
	report := p.accelerators.Observe(found.Batches, now, found.matched)
	if !last {
		report[gpu.Unmatched], report[gpu.SeveralServers] = 0, 0
	}
	report[gpu.DeviceLimit] += found.Excess
	found.Excess = 0
	p.telemetry.Devices(ctx, &report)
	for _, w := range gpuWarnings {
		if report[w.outcome] > 0 && p.warned.first(w.about) {
			p.logger.Warn(w.warning, gpuFields(found, metrics, w.outcome, now)...)
		}
	}
}

// gpuWarnings are what the log says of readings that are not used.
var gpuWarnings = []struct {
	about   topic
	outcome gpu.Outcome
	warning string
}{
	{aboutSharedGPUs, gpu.SharedDevice, "several workloads share a GPU, or it is partitioned (MIG), so its metrics cover all of them; " +
		"the diagnosis ignores such GPUs, and power, utilization and energy per token are missing for their servers"},
	{aboutHostGPUs, gpu.SeveralServers, "an exporter of GPU metrics reports no pods, and several vLLM servers run on its host, so GPUs cannot be assigned to servers; " +
		"the diagnosis ignores these GPUs; in Kubernetes let the exporter report pods (DCGM_EXPORTER_KUBERNETES=true)"},
	{aboutGPULimit, gpu.DeviceLimit, "there are more GPUs than the limits: 128 for one server, from at most 16 exporters and containers, and 10000 in all; nothing is derived from the others; " +
		"divide the servers among several collectors, or find out who sends the metrics of so many GPUs"},
	{aboutGPUsAhead, gpu.FutureTime, "readings of GPUs are more than 30 s ahead of this machine's clock, and nothing is derived from them; " +
		"set the clock here, or of the machine whose collector reads the exporter"},
}

// gpuFields name the first resource with GPUs of one kind.
func gpuFields(found *gpuReadings, metrics pmetric.Metrics, outcome gpu.Outcome, now int64) []zap.Field {
	for i := range found.Batches {
		b := &found.Batches[i]
		shared := false
		for j := range b.Readings {
			shared = shared || b.Readings[j].Sharing == gpu.Shared || b.Readings[j].Sharing == gpu.Partitioned
		}
		switch {
		case found.matched[i] == (outcome == gpu.SeveralServers), outcome == gpu.SharedDevice && !shared,
			outcome == gpu.FutureTime && !gpu.IsAhead(b.Time, now):
			continue
		}
		return stages.ServerFields(metrics.ResourceMetrics().At(b.Source).Resource().Attributes())
	}
	return nil
}

// dropUnmatched removes the GPUs that belong to no server here, where the configuration asks
// for it. Where nothing is left, nothing is sent.
func (p *vllmProcessor) dropUnmatched(found *gpuReadings, metrics pmetric.Metrics) {
	if p.config.Accelerators.Unmatched != stages.Drop {
		return
	}
	keep := map[int]bool{}
	for i := range found.Batches {
		keep[found.Batches[i].Source] = keep[found.Batches[i].Source] || found.matched[i]
	}
	drop := map[int]bool{}
	for _, source := range found.Sources {
		drop[source] = !keep[source]
	}
	at := -1
	metrics.ResourceMetrics().RemoveIf(func(pmetric.ResourceMetrics) bool {
		at++
		return drop[at]
	})
}
