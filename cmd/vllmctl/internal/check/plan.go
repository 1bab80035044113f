package check

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.uber.org/zap"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/configfile"
	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/probe"
)

// Plan is what to do for addresses of the command line.
type Plan struct {
	Request Request
	Delay   time.Duration
	Strict  bool
	// Given is true where the user chose the objectives. Otherwise those that are suggested
	// are moved to bounds of the servers before they are judged.
	Given bool
}

// shortMetrics are names of latencies for a command line.
var shortMetrics = map[string]string{
	"ttft": "vllm.time_to_first_token", "itl": "vllm.inter_token_latency",
	"tpot": "vllm.request.time_per_output_token", "e2e": "vllm.e2e_request_latency",
}

// ParsePromise reads an objective of the command line, as ttft=2s.
func ParsePromise(written string) (Promise, error) {
	name, text, found := strings.Cut(written, "=")
	threshold, err := time.ParseDuration(text)
	if !found || err != nil || threshold <= 0 {
		return Promise{}, fmt.Errorf("--objective %q: write a latency and a time, for example ttft=2.5s", written)
	}
	metric := name
	if long, short := shortMetrics[name]; short {
		metric = long
	}
	if m, known := catalog.ByName(metric); !known || m.Kind != catalog.KindHistogram || m.Unit != "s" {
		return Promise{}, fmt.Errorf("--objective %q: %q is not a latency; write ttft, itl, tpot, e2e or the name of a histogram in seconds", written, name)
	}
	return Promise{name, metric, threshold, 0.95}, nil
}

// Servers checks the addresses. An error means that nothing was asked.
func (p *Plan) Servers(ctx context.Context, host component.Host) (*Report, error) {
	began := time.Now()
	receiver, err := p.receiver()
	if err != nil {
		return nil, err
	}
	processor, err := processorOf(p.Request.Promises)
	if err != nil {
		return nil, err
	}
	probes, err := probe.New(receiver, configfile.Telemetry(zap.NewNop()))
	if err != nil {
		return nil, err
	}
	var jobs []Job
	for _, one := range probes {
		jobs = append(jobs, Job{Probe: one, Config: receiver, Processor: processor, Host: host})
	}
	seen := Look(ctx, jobs, p.Delay, func(int, *Seen) {})
	if ctx.Err() != nil {
		return nil, errors.New("interrupted before the check was complete")
	}
	out := &Report{Findings: []Finding{}}
	request := p.Request
	request.Promises = nil
	for _, promise := range p.Request.Promises {
		if exact, ok := promise.At(seen); ok && (p.Given || suits(seen, promise.Metric)) {
			request.Promises = append(request.Promises, exact)
		}
	}
	for i := range seen {
		if !p.Given {
			// What is suggested is what will be pasted, and no server is blamed for it.
			if seen[i].Processor, err = processorOf(shownBy(&seen[i], request.Promises)); err != nil {
				return nil, err
			}
		}
		out.Targets = append(out.Targets, Judge(&seen[i]))
	}
	// The probes have the order of the addresses.
	request.Endpoints = nil
	for i := range seen {
		other := slices.ContainsFunc(out.Targets[i].Findings, func(x Finding) bool { return x.Code == CodeNotVLLM })
		if seen[i].First != nil && seen[i].First.Outcome == "ok" && !other {
			request.Endpoints = append(request.Endpoints, p.Request.Endpoints[i])
		}
	}
	if out.pasted = len(request.Endpoints); out.pasted > 0 {
		if out.Paste, err = request.Paste(); err != nil {
			return nil, err
		}
	}
	out.finish(p.Strict)
	out.Seconds = time.Since(began).Seconds()
	return out, nil
}

// suits reports whether an objective about a histogram can ever be judged: a server shows it, or is a vLLM that will do so
// with its first request. An endpoint picker, a router or LMCache has no latencies of an engine.
func suits(seen []Seen, metric string) bool {
	return slices.ContainsFunc(seen, func(s Seen) bool {
		return s.First != nil && s.First.Outcome == "ok" && hasEngine(s.First) && newHave(&s).comes(metric)
	})
}

// shownBy returns the objectives whose histogram a target shows.
func shownBy(s *Seen, promises []Promise) []Promise {
	return slices.DeleteFunc(slices.Clone(promises), func(p Promise) bool {
		if s.First == nil {
			return true
		}
		_, there := boundsOf(s.First, p.Metric)
		return !there
	})
}

// receiver returns the configuration of the receiver, as the collector would read it.
func (p *Plan) receiver() (*vllmreceiver.Config, error) {
	section := map[string]any{"collection_interval": p.Request.Interval.String()}
	maps.Copy(section, p.Request.Client)
	var targets []any
	for _, e := range p.Request.Endpoints {
		targets = append(targets, map[string]any{"endpoint": e})
	}
	section["targets"] = targets
	cfg := vllmreceiver.NewFactory().CreateDefaultConfig().(*vllmreceiver.Config)
	if err := confmap.NewFromStringMap(section).Unmarshal(cfg); err != nil {
		return nil, err
	}
	if err := confmap.Validate(cfg); err != nil {
		return nil, errors.New(p.named(err.Error()))
	}
	return cfg, nil
}

var keyOfTarget = regexp.MustCompile(`targets::(\d+)(::endpoint)?`)

// named puts the addresses of the command line in the place of the settings that the
// receiver's messages name.
func (p *Plan) named(message string) string {
	return keyOfTarget.ReplaceAllStringFunc(message, func(key string) string {
		n, err := strconv.Atoi(keyOfTarget.FindStringSubmatch(key)[1])
		if err != nil || n >= len(p.Request.Endpoints) {
			return key
		}
		return probe.Printable(p.Request.Endpoints[n])
	})
}

// processorOf returns the default configuration of the processor with objectives.
func processorOf(promises []Promise) (*vllmprocessor.Config, error) {
	var objectives []any
	for _, o := range promises {
		objectives = append(objectives, map[string]any{
			"name": o.Name, "metric": o.Metric, "threshold": o.Threshold.String(), "target": o.Target,
		})
	}
	cfg := vllmprocessor.NewFactory().CreateDefaultConfig().(*vllmprocessor.Config)
	if err := confmap.NewFromStringMap(map[string]any{"objectives": objectives}).Unmarshal(cfg); err != nil {
		return nil, err
	}
	return cfg, confmap.Validate(cfg)
}
