//go:build linux

package conform

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllm/serve"
)

// Programs are those that compare samples.
type Programs struct{ Collector, Prometheus string }

const prometheusConfig = `
global: {scrape_interval: 1s, scrape_timeout: 1s}
scrape_configs:
  - {job_name: server, static_configs: [{targets: ["%s"]}]}
  - {job_name: collector, static_configs: [{targets: ["%s"]}]}
`

// naming: wire keeps vLLM's own names, so that series can be compared one by one.
const collectorConfig = `
receivers:
  vllm: {endpoint: "%s", collection_interval: 1s, naming: wire}
exporters:
  prometheus: {endpoint: "%s"}
service:
  pipelines:
    metrics: {receivers: [vllm], exporters: [prometheus]}
  telemetry: {metrics: {level: none}}
`

// settle is how long a server and both programs are left alone before samples are compared.
const settle = 12 * time.Second

// CompareSamples lets a real Prometheus scrape a server that nobody uses and the collector
// that scrapes it, and compares what it has of both. Logs go to a folder.
func CompareSamples(ctx context.Context, server, folder string, programs Programs) (s *Samples, err error) {
	var addresses [2]string
	for i := range addresses {
		port, err := serve.FreePort()
		if err != nil {
			return nil, err
		}
		addresses[i] = fmt.Sprintf("127.0.0.1:%d", port)
	}
	address, api := addresses[0], addresses[1]
	target := strings.TrimPrefix(server, "http://")
	folder = filepath.Join(folder, "samples")
	if err := errors.Join(os.RemoveAll(folder), os.MkdirAll(folder, 0o755)); err != nil {
		return nil, err
	}
	for _, file := range []struct{ name, content string }{
		{"prometheus.yml", fmt.Sprintf(prometheusConfig, target, address)},
		{"collector.yaml", fmt.Sprintf(collectorConfig, server, address)},
	} {
		if err := os.WriteFile(filepath.Join(folder, file.name), []byte(file.content), 0o600); err != nil {
			return nil, err
		}
	}
	var ends []func()
	defer func() {
		for _, end := range ends {
			end()
		}
	}()
	for name, args := range map[string][]string{
		"collector": {programs.Collector, "--config", filepath.Join(folder, "collector.yaml")},
		"prometheus": {
			programs.Prometheus, "--config.file", filepath.Join(folder, "prometheus.yml"),
			"--storage.tsdb.path", filepath.Join(folder, "data"), "--web.listen-address", api,
		},
	} {
		end, err := start(filepath.Join(folder, name+".log"), args)
		if err != nil {
			return nil, err
		}
		ends = append(ends, end)
	}
	select {
	case <-time.After(settle):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	wants, err := query(ctx, api, `{job="server"}`)
	if err != nil {
		return nil, err
	}
	has, err := query(ctx, api, `{job="collector"}`)
	if err != nil {
		return nil, err
	}
	return difference(wants, has), nil
}

func difference(wants, has map[string]float64) *Samples {
	s := &Samples{}
	for series, want := range wants {
		got, there := has[series]
		switch {
		case !there:
			s.Missing = append(s.Missing, series)
		case got != want && !(math.IsNaN(got) && math.IsNaN(want)):
			s.Different = append(s.Different, fmt.Sprintf("%s: %v, not %v", series, got, want))
		default:
			s.Equal++
		}
	}
	for series := range has {
		if _, there := wants[series]; !there {
			s.Extra = append(s.Extra, series)
		}
	}
	sort.Strings(s.Missing)
	sort.Strings(s.Different)
	sort.Strings(s.Extra)
	return s
}

// start starts a program; the function that it returns ends it.
func start(log string, args []string) (end func(), err error) {
	file, err := os.Create(log)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	c := exec.Command(args[0], args[1:]...) //nolint:gosec // The programs that the user named.
	c.Stdout, c.Stderr = file, file
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := c.Start(); err != nil {
		return nil, err
	}
	return func() {
		_ = c.Process.Kill()
		_ = c.Wait() // It was killed.
	}, nil
}

// query returns the series of a selector as Prometheus has them now.
func query(ctx context.Context, api, selector string) (map[string]float64, error) {
	at := "http://" + api + "/api/v1/query?query=" + url.QueryEscape(selector)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at, http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	var answer struct {
		Data struct {
			Result []struct {
				Metric map[string]string `json:"metric"`
				Value  [2]any            `json:"value"`
			} `json:"result"`
		} `json:"data"`
	}
	if err := json.Unmarshal(raw, &answer); err != nil {
		return nil, fmt.Errorf("the answer of Prometheus is %s: %w", response.Status, err)
	}
	out := map[string]float64{}
	for _, r := range answer.Data.Result {
		text, is := r.Value[1].(string)
		if !is || skipped(r.Metric["__name__"]) {
			continue
		}
		v, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return nil, err
		}
		out[key(r.Metric)] = v
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("there are no series %s in Prometheus", selector)
	}
	return out, nil
}

// skipped are samples of the scrape itself, of the process, which change in that time, and the
// times at which series were made, which are start times with us.
func skipped(name string) bool {
	for _, prefix := range []string{"scrape_", "process_", "python_", "up", "target_info", "otel_scope_info"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return strings.HasSuffix(name, "_created")
}

// key is a series without the labels that Prometheus and the exporter add.
func key(labels map[string]string) string {
	var parts []string
	for name, v := range labels {
		switch {
		case name == "job", name == "instance", strings.HasPrefix(name, "exported_"), strings.HasPrefix(name, "otel_scope_"):
			continue
		case name == "le":
			if bound, err := strconv.ParseFloat(v, 64); err == nil {
				v = strconv.FormatFloat(bound, 'g', -1, 64)
			}
		}
		parts = append(parts, name+"="+strconv.Quote(v))
	}
	slices.Sort(parts)
	return strings.Join(parts, ",")
}
