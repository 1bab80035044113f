//go:build linux

// Package live runs the built collector beside a story, and returns the log records of its
// connector: what an operator would have read.
package live

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllm/run"
)

const config = `
receivers:
  vllm: {endpoint: "%s", collection_interval: %s}
processors:
  vllm:
connectors:
  vllm_diagnosis:
exporters:
  file: {path: "%s", flush_interval: 1s}
service:
  pipelines:
    metrics: {receivers: [vllm], processors: [vllm], exporters: [vllm_diagnosis]}
    logs: {receivers: [vllm_diagnosis], exporters: [file]}
  telemetry: {metrics: {level: none}}
`

// endLimit is how long the collector may take to end.
const endLimit = 20 * time.Second

// Start starts the collector with default settings on a server. Its log and its records are
// in a folder. The function that it returns ends it and returns the records, with their times
// since began.
func Start(program, url, folder string, began time.Time) (end func() ([]run.Record, error), err error) {
	records := filepath.Join(folder, "records.json")
	if err := os.Remove(records); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	stop, err := Run(program, fmt.Sprintf(config, url, run.Every, records), filepath.Join(folder, "collector"))
	if err != nil {
		return nil, err
	}
	return func() ([]run.Record, error) {
		if err := stop(); err != nil {
			return nil, err
		}
		return read(records, began)
	}, nil
}

// Run starts a collector. Its configuration is the file with this name and .yaml, its log that with
// .log. The function that it returns ends it.
func Run(program, config, name string) (stop func() error, err error) {
	if err := os.WriteFile(name+".yaml", []byte(config), 0o600); err != nil {
		return nil, err
	}
	log, err := os.Create(name + ".log")
	if err != nil {
		return nil, err
	}
	defer log.Close()
	c := exec.Command(program, "--config", name+".yaml") //nolint:gosec // The program that the user named.
	c.Stdout, c.Stderr = log, log
	if err := c.Start(); err != nil {
		return nil, err
	}
	return func() error {
		kill := time.AfterFunc(endLimit, func() { _ = c.Process.Kill() })
		defer kill.Stop()
		if err := c.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return err
		}
		if err := c.Wait(); err != nil {
			return fmt.Errorf("the collector did not end in order: %w; its log is %s", err, log.Name())
		}
		return nil
	}, nil
}

func read(path string, began time.Time) (out []run.Record, err error) {
	raw, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(bytes.NewReader(raw))
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		logs, err := (&plog.JSONUnmarshaler{}).UnmarshalLogs(lines.Bytes())
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		out = append(out, run.Records(logs, began)...)
	}
	return out, lines.Err()
}
