package check_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
	"go.uber.org/zap"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/check"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/configfile"
	"github.com/otelcol-vllm/otelcol-vllm/lab/test/network"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/probe"
)

// FuzzJudge lets a server answer two scrapes and its version with anything. Whatever it is, the
// result is complete, printable and of a bounded size.
func FuzzJudge(f *testing.F) {
	for _, s := range vllmsim.Scenarios() {
		files, err := s.Files()
		require.NoError(f, err)
		f.Add(begin(files["metrics.txt"]), begin(files["metrics-2.txt"]), strings.TrimSpace(string(files["content-type"])), "0.20.0")
	}
	f.Add("vllm:num_requests_running{model_name=\"\x1b[2J\"} NaN\n", "\xff\xfe", "text/plain", "\x00")
	f.Add("# TYPE vllm:time_to_first_token_seconds histogram\nvllm:time_to_first_token_seconds_bucket{le=\"+Inf\"} 1e300\n", "a 1", "application/openmetrics-text", "0.1.dev1")
	f.Add("process_start_time_seconds 1e308\nvllm:num_requests_running -1\n", "process_start_time_seconds -Inf\nvllm:num_requests_running 1\n", "", "999.999.999")
	f.Fuzz(func(t *testing.T, first, second, contentType, version string) {
		if len(first)+len(second) > 4*seedBytes {
			t.Skip("long bodies take long, and the tests have whole ones")
		}
		n := 0
		net := network.New()
		net.Put("vllm-0:8000", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/metrics" {
				_ = json.NewEncoder(w).Encode(map[string]string{"version": version})
				return
			}
			n++
			if n > 1 {
				first = second
			}
			w.Header()["Content-Type"] = []string{contentType}
			_, _ = io.WriteString(w, first)
		}))
		receiver := vllmreceiver.NewFactory().CreateDefaultConfig().(*vllmreceiver.Config)
		require.NoError(t, confmap.NewFromStringMap(map[string]any{
			"endpoint": "http://vllm-0:8000", "middlewares": []any{map[string]any{"id": network.ID.String()}},
		}).Unmarshal(receiver))
		processor := vllmprocessor.NewFactory().CreateDefaultConfig().(*vllmprocessor.Config)
		require.NoError(t, confmap.NewFromStringMap(map[string]any{"objectives": []any{
			map[string]any{"name": "o", "metric": "vllm.time_to_first_token", "threshold": "2s", "target": 0.9},
		}}).Unmarshal(processor))
		probes, err := probe.New(receiver, configfile.Telemetry(zap.NewNop()))
		require.NoError(t, err)
		seen := check.Look(t.Context(), []check.Job{{Probe: probes[0], Config: receiver, Processor: processor, Host: net}}, time.Nanosecond, func(int, *check.Seen) {})
		target := check.Judge(&seen[0])
		require.NotEmpty(t, target.Kind)
		for _, finding := range target.Findings {
			require.NotEmpty(t, finding.Severity)
			for _, words := range append(finding.Details, finding.What, finding.Do) {
				require.LessOrEqual(t, len(words), 5000)
				for _, r := range words {
					require.True(t, unicode.IsPrint(r), "%q", words)
				}
			}
		}
		_, err = json.Marshal(target)
		require.NoError(t, err)
	})
}

// seedBytes is how long the body of a seed is: whole ones would make a run ten times slower.
const seedBytes = 6 << 10

// begin is the begin of a body, in whole lines.
func begin(body []byte) string {
	text := string(body[:min(len(body), seedBytes)])
	return text[:strings.LastIndexByte(text, '\n')+1]
}
