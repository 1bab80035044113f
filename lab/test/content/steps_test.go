package content

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/content"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/spelling"
	"github.com/otelcol-vllm/otelcol-vllm/lab/test/history"
)

var fence = regexp.MustCompile("(?s)```promql\n(.*?)```")

// eachRunbook holds that each query of a runbook can be evaluated, and shows something in the
// incident, unless it compares with a limit or looks for what does not happen there.
func eachRunbook(t *testing.T, faulty, wired *history.History) {
	t.Helper()
	faulty.Stores[0].RulesEvery(t, faulty.Begin, faulty.End, time.Minute, ruleFile(t, spelling.Suffixed))
	wires := map[string]bool{}
	for _, group := range content.Groups() {
		for i := range group.Alerts {
			wires[group.Alerts[i].Name] = group.Set == content.Wire
		}
	}
	pages, err := filepath.Glob(filepath.Join(root, "docs", "runbooks", "*.md"))
	require.NoError(t, err)
	queries := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		name := strings.TrimSuffix(filepath.Base(page), ".md")
		h := faulty
		if wires[name] {
			h = wired
		}
		for _, match := range fence.FindAllStringSubmatch(string(text), -1) {
			queries++
			query := filled(strings.TrimSpace(match[1]), nil)
			n := values(t, name, target{Expr: query}, data{h.Stores[0], h.Begin.Add(history.IncidentFrom), h.Begin.Add(incidentSeen)})
			about := strings.Join(strings.Fields(query), " ")
			if comparison.MatchString(about) {
				continue
			}
			known := slices.ContainsFunc(silentQueries, func(part string) bool { return strings.Contains(about, part) })
			assert.Equal(t, known, n == 0, "%s: %d values of %s", name, n, about)
		}
	}
	assert.Greater(t, queries, 50)
}

// comparison finds queries that compare with a limit or with other series: often nothing is
// beyond it, or missing.
var comparison = regexp.MustCompile(` (==|>|<|>=|<=|unless) |absent\(`)

// silentQueries are parts of queries about what does not happen in the showcase, or is not
// simulated.
var silentQueries = []string{
	"vllm_nixl_xfer_time_seconds", "inference_gateway_epp_endpoint_inflight_requests",
	"inference_gateway_epp_flow_control_endpoint_stale", "vllm_hf3fs_", "vllm_kv_offload_tiering_", "vllm_mooncake_",
	"vllm_nixl_num_failed_notifications_total", "vllm_nixl_num_kv_expired_reqs_total", "vllm_drop_rate_per_second", "vllm_admission_rejections_total",
	"vllm_num_requests_kv_fetch_by_stage", "vllm_sleep_mode_operation",
	// The gateway of the showcase is an endpoint picker.
	"inference_gateway_request_error_ratio",
	// The story is shorter than the time that these look back.
	"vllm_slo:coverage:30d",
}
