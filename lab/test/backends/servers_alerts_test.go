//go:build e2e

package backends

import (
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/otlptranslator"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/spelling"
	"github.com/otelcol-vllm/otelcol-vllm/lab/content/shipped"
	"github.com/otelcol-vllm/otelcol-vllm/lab/test/collector"
)

// shippedIn are the spellings that content is shipped in.
var shippedIn = map[otlptranslator.TranslationStrategyOption]spelling.Spelling{
	otlptranslator.UnderscoreEscapingWithSuffixes: spelling.Suffixed, otlptranslator.UnderscoreEscapingWithoutSuffixes: spelling.Unsuffixed,
	otlptranslator.NoTranslation: spelling.Dotted,
}

// One of two servers dies: each real server, whatever its names, reports it by the shipped rules to a real Alertmanager
// of the newest version, and can evaluate all of them.
func TestRealServersReportTheServerThatDied(t *testing.T) {
	t.Parallel()
	inbox := &receiver{alerts: map[string]map[string]string{}, texts: map[string]string{}}
	hook := httptest.NewServer(inbox)
	t.Cleanup(hook.Close)
	manager, managed := startAlertmanager(t, collector.Server(t, "prometheus-alertmanager"), strings.TrimPrefix(hook.URL, "http://"))
	dir := t.TempDir()
	require.NoError(t, shipped.WriteIn(dir, spelling.All()...))
	exporters, stored, rulers := "", []string{}, map[string]string{}
	for _, w := range ways {
		to, known := shippedIn[w.strategy]
		if !known || strings.HasPrefix(w.name, "victoria_otlp") {
			// It has neither job nor instance.
			continue
		}
		file := filepath.Join(dir, w.name+".yaml")
		rules, err := os.ReadFile(filepath.Join(dir, "rules", string(to), "vllm.yaml"))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(file, waits.ReplaceAll(rules, []byte("${1}${2}: 1s")), 0o600))
		addr, exporter := w.start(t, fmt.Sprintf("global: {evaluation_interval: 500ms, external_labels: {way: %s}}\n"+
			"rule_files: [%q]\nalerting: {alertmanagers: [{static_configs: [{targets: [%q]}]}]}\n", w.name, file, managed))
		exporters += exporter
		stored = append(stored, addr)
		if w.victoria != nil {
			addr = collector.VMAlert(t, addr, file, "-notifier.url=http://"+managed, "-external.label=way="+w.name)
		}
		rulers[w.name] = addr
	}

	healthy, dying := serve(t, "127.0.0.1:0"), serve(t, "127.0.0.1:0")
	c := sending(t, fmt.Sprintf("receivers:\n  vllm: {collection_interval: 500ms, timeout: 400ms, targets: [{endpoint: %q}, {endpoint: %q}]}\n"+
		"processors: {vllm: {window: 1600ms}}", healthy.URL, dying.URL), exporters, "vllm")
	reported := func(server *httptest.Server) (by []string) {
		inbox.mu.Lock()
		defer inbox.mu.Unlock()
		for _, labels := range inbox.labels {
			if labels["alertname"] == "VLLMServerNotServing" && labels["instance"] == strings.TrimPrefix(server.URL, "http://") && labels["severity"] == "page" {
				by = append(by, labels["way"])
			}
		}
		slices.Sort(by)
		return slices.Compact(by)
	}
	for _, addr := range stored {
		c.WaitFor(t, "both servers", func() bool {
			now := time.Now()
			return len(ask(t, addr, `{__name__=~"vllm[._]diagnosis[._]severity"} < 3`, now, now)) == 2
		})
	}
	dying.CloseClientConnections()
	dying.Close()
	manager.WaitFor(t, "the report of each", func() bool { return len(reported(dying)) == len(rulers) })
	assert.Empty(t, reported(healthy))
	for name, addr := range rulers {
		assert.Empty(t, broken(t, addr), name)
	}
	c.Stop(t)
	manager.Stop(t)
}
