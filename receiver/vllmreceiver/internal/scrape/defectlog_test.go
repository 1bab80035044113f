package scrape

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/internal/defectlog"
)

// aServer is the body of a server that has been started at a time.
func aServer(started int, families ...string) string {
	body := fmt.Sprintf("# TYPE process_start_time_seconds gauge\nprocess_start_time_seconds %d\n", started)
	for _, family := range append(families, `vllm:num_requests_running{engine="0",model_name="m"}`) {
		name, _, _ := strings.Cut(family, "{")
		body += "# TYPE " + name + " gauge\n" + family + " 1\n"
	}
	return body
}

// defectLines are the lines about known defects.
func defectLines(logs *observer.ObservedLogs) []observer.LoggedEntry {
	return logs.Filter(func(e observer.LoggedEntry) bool { return strings.Contains(e.Message, catalog.DefectsPage) }).All()
}

// loggingRig is a rig whose line about defects waits as in operation.
func loggingRig(t *testing.T) *rig {
	t.Helper()
	r := newRig(t)
	r.group.defects = defectlog.New(r.group.settings.Logger, r.group.Config.Controller.CollectionInterval)
	return r
}

// restart scrapes a server twice that has been started since the last scrape.
func (r *rig) restart() {
	started := int(r.now.Unix()) - 5
	r.scrape(aServer(started))
	r.scrape(aServer(started))
}

func TestTheDefectsOfAServerAreLoggedOnceForAVersion(t *testing.T) {
	r := loggingRig(t)
	r.version = "0.10.1"
	body := aServer(1000)
	r.scrape(body)
	assert.Empty(t, defectLines(r.logs), "the line waits for other servers")
	r.scrape(body)
	lines := defectLines(r.logs)
	require.Len(t, lines, 1)
	fields := lines[0].ContextMap()
	assert.Equal(t, []any{"vllm-0:8000"}, fields["targets"])
	assert.Equal(t, "0.10.1", fields["version"])
	assert.Contains(t, fields["defects"], "gauges-freeze-on-abort")
	assert.NotContains(t, fields["defects"], "negative-durations", "the server does not send the time in the queue")
	assert.NotContains(t, fields["defects"], "only-last-engine", "it ended before this version")
	assert.Contains(t, lines[0].Message, fmt.Sprintf("vLLM 0.10.1 has %d known defects in metrics that this server sends", len(fields["defects"].([]any))))
	assert.Equal(t, zap.InfoLevel, lines[0].Level)

	for range 4 {
		r.restart()
	}
	assert.Len(t, defectLines(r.logs), 1, "a restart with the same version is not logged")

	r.mu.Lock()
	r.version = "0.10.2"
	r.mu.Unlock()
	r.restart()
	lines = defectLines(r.logs)
	require.Len(t, lines, 2)
	assert.NotContains(t, lines[1].ContextMap()["defects"], "gauges-freeze-on-abort", "the new version does not have it")
}

func TestTheDefectsOfAnUnknownVersionArePossible(t *testing.T) {
	r := loggingRig(t)
	r.scrape(aServer(1000))
	r.scrape(aServer(1000))
	lines := defectLines(r.logs)
	require.Len(t, lines, 1)
	assert.Contains(t, lines[0].Message, "vLLM of an unknown version can have ")
	assert.Contains(t, lines[0].ContextMap()["defects"], "gauges-freeze-on-abort")
}

// A hostile server can report what it likes, at each restart.
func TestOneServerDoesNotFillTheLogWithVersions(t *testing.T) {
	r := loggingRig(t)
	for i := range 20 {
		r.mu.Lock()
		r.version = fmt.Sprintf("0.10.%d-forged", i)
		r.mu.Unlock()
		r.restart()
	}
	r.group.defects.Close()
	assert.Len(t, defectLines(r.logs), defectlog.MaxVersions)
}

func TestOtherProgramsHaveNoDefectsOfVLLM(t *testing.T) {
	for name, body := range map[string]string{
		"router":          aServer(1000, `vllm:current_qps{server="a"}`),
		"simulator":       aServer(1000, `vllm:cache_config_info{block_size="16",num_gpu_blocks="5"}`),
		"imitator":        aServer(1000, `vllm:request_success_total{finish_reason="stop"}`),
		"gateway":         "# TYPE inference_extension_flow_control_queue_size gauge\ninference_extension_flow_control_queue_size 1\n",
		"without metrics": "# TYPE python_info gauge\npython_info 1\n",
	} {
		r := loggingRig(t)
		r.version = "0.10.1"
		r.scrape(body)
		r.scrape(body)
		r.group.defects.Close()
		assert.Empty(t, defectLines(r.logs), name)
	}
}

// What is lowered by a setting to the names of the wire is still found.
func TestTheDefectsAreTheSameUnderTheNamesOfTheWire(t *testing.T) {
	var ids [2][]any
	for i, naming := range []Naming{NamingCanonical, NamingWire} {
		r := newRig(t, func(c *Config) { c.Naming = naming })
		r.version = "0.10.1"
		r.scrape(aServer(1000, `vllm:kv_cache_usage_perc{engine="1",pid="7"}`, `vllm:cache_config_info{block_size="16",cache_dtype="auto",num_gpu_blocks="5"}`))
		r.group.defects.Close()
		lines := defectLines(r.logs)
		require.Len(t, lines, 1)
		ids[i] = slices.Concat(lines[0].ContextMap()["defects"].([]any), lines[0].ContextMap()["possible_defects"].([]any))
	}
	assert.Equal(t, ids[0], ids[1])
	for _, id := range []string{"usage-per-process", "blocks-summed-over-engines", "block-size-of-hybrid-models"} {
		assert.Contains(t, ids[0], id)
	}
}

// Some KV connectors have no families of their own, so each server can have one.
func TestAConnectorCanBeThereWithoutItsFamilies(t *testing.T) {
	for family, field := range map[string]string{"vllm:nixl_num_failed_transfers_total": "defects", "vllm:external_prefix_cache_hits_total": "possible_defects"} {
		r := newRig(t)
		r.version = "0.15.1"
		body := aServer(1000)
		for _, name := range []string{"vllm:external_prefix_cache_queries_total", family} {
			body += "# TYPE " + name + " counter\n" + name + "{engine=\"0\"} 0\n"
		}
		r.scrape(body)
		r.group.defects.Close()
		lines := defectLines(r.logs)
		require.Len(t, lines, 1)
		assert.Contains(t, lines[0].ContextMap()[field], "external-hits-wrong", family)
	}
}
