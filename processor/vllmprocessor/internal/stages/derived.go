package stages

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/derive"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/emit"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/gpu"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
)

// Derived derives values over the window of a server.
type Derived struct {
	nothingToStart
	settings  derive.Settings
	hardware  []gpu.Rule
	telemetry *Telemetry
	metrics   map[string]bool
	// evaluators are for reuse. Without them a batch of one server takes 1.1 to 1.25 times the
	// processor time and allocates twice the bytes.
	evaluators sync.Pool
}

// NewDerived returns the stage. It fails where the configuration names an unknown GPU.
func NewDerived(config *DerivedConfig, p *Processor) (*Derived, error) {
	rules, err := rulesOf(config.Hardware)
	if err != nil {
		return nil, err
	}
	s := &Derived{
		settings: derive.Settings{
			Enabled:            make([]bool, len(derive.Rows())),
			MeanConstrained:    config.Percentiles.Interpolation == MeanConstrained,
			PerEngineQuantiles: config.Percentiles.PerEngine,
			CapacityFromBlocks: config.CapacityFromBlocks,
		},
		hardware: rules, telemetry: p.Telemetry, metrics: map[string]bool{},
	}
	s.evaluators.New = func() any { return &evaluator{} }
	for _, q := range config.Quantiles {
		s.settings.Quantiles = append(s.settings.Quantiles, derive.NewQuantile(q))
	}
	for i := range derive.Rows() {
		name := derive.Rows()[i].Metric
		s.settings.Enabled[i] = p.Enabled(name)
		s.metrics[name] = true
	}
	return s, nil
}

// Derives reports whether a metric is one of the table of formulas.
func (s *Derived) Derives(metric string) bool { return s.metrics[metric] }

// Begin returns the state of a new server.
func (s *Derived) Begin(server *Server, series *emit.Memory) State {
	return &derivedState{Derived: s, server: server, series: series}
}

type derivedState struct {
	nothingToKeep
	*Derived
	server *Server
	series *emit.Memory
}

// evaluator is an evaluator and the settings of the server that it is used for.
type evaluator struct {
	derive.Evaluator
	settings derive.Settings
}

// Observe does nothing: the window has all that is needed.
func (*derivedState) Observe(context.Context, *Batch) {}

// Append writes the values of a server.
func (s *derivedState) Append(ctx context.Context, out *emit.Output) {
	e := s.evaluators.Get().(*evaluator)
	defer s.evaluators.Put(e)
	e.settings = s.settings
	e.settings.Peak = peak(s.hardware, s.server.Attributes)
	values := e.Evaluate(&e.settings, s.server.Window)
	s.telemetry.Absent(ctx, &e.Absent)

	out.Append(s.series, values, s.server.Window.Time())
}

// Interpolation is how a quantile is placed within its bucket.
type Interpolation string

const (
	// Linear takes the observations of a bucket as evenly spread, as Prometheus does:
	// the default.
	Linear Interpolation = "linear"
	// MeanConstrained spreads them so that their mean is the true one.
	MeanConstrained Interpolation = "mean_constrained"
)

// DerivedConfig is the configuration of the values over the window.
type DerivedConfig struct {
	// Quantiles are the quantiles of the latencies, from 0 to 1. An empty list switches
	// them off.
	Quantiles []float64 `mapstructure:"quantiles"`
	// CapacityFromBlocks takes blocks times block size as the capacity of the KV
	// cache of servers before v0.24, which overstates hybrid models.
	CapacityFromBlocks bool `mapstructure:"capacity_from_blocks"`
	// Percentiles has the choices for quantiles.
	Percentiles Percentiles `mapstructure:"percentiles"`
	// Hardware is what the GPUs of the servers can do; the first entry that matches
	// counts.
	Hardware []Hardware `mapstructure:"hardware"`

	_ struct{}
}

// Percentiles has the choices for quantiles.
type Percentiles struct {
	// Interpolation is linear or mean_constrained.
	Interpolation Interpolation `mapstructure:"interpolation"`
	// PerEngine adds the quantiles of each engine where a server has several.
	PerEngine bool `mapstructure:"per_engine"`
	// Detailed adds the quantiles of the lengths of prompts and outputs, of the time in the
	// queue, and of the time per output token.
	Detailed bool `mapstructure:"detailed"`

	_ struct{}
}

// DefaultDerivedConfig returns the default configuration.
func DefaultDerivedConfig() DerivedConfig {
	return DerivedConfig{Quantiles: []float64{0.5, 0.95, 0.99}, Percentiles: Percentiles{Interpolation: Linear}}
}

// Switches reports whether a choice of the configuration switches on a metric that is off
// by default.
func (c *DerivedConfig) Switches(metric string) bool {
	return c.Percentiles.Detailed && derive.Detailed(metric)
}

// Check reports all invalid values.
func (c *DerivedConfig) Check(invalid Invalid) {
	seen := map[float64]bool{}
	for i, q := range c.Quantiles {
		key := fmt.Sprintf("quantiles::%d", i)
		switch {
		case q > 1 && q <= 100:
			invalid(key, "%g is not from 0 to 1; write %.6g for p%g", q, q/100, q)
		case !(q >= 0 && q <= 1):
			invalid(key, "%g is not from 0 to 1; write for example 0.95", q)
		case seen[q]:
			invalid(key, "%g is there twice; remove one", q)
		}
		seen[q] = true
	}
	if c.Percentiles.Detailed && len(c.Quantiles) == 0 {
		invalid("percentiles::detailed", "adds quantiles, and the list of quantiles is empty; write for example quantiles: [0.5, 0.95], or remove detailed")
	}
	switch c.Percentiles.Interpolation {
	case Linear, MeanConstrained:
	default:
		invalid("percentiles::interpolation", "%q is not known; write linear or mean_constrained", c.Percentiles.Interpolation)
	}
	c.checkHardware(invalid)
}

// Hardware is what one GPU of some servers can do at best: by the name of the GPU, or
// by two numbers.
type Hardware struct {
	// Match maps names of resource attributes to patterns, in which * stands for
	// any characters and ? for one. All must match; an empty Match matches every
	// resource.
	Match map[string]string `mapstructure:"match"`
	// GPU is a name of the built-in table.
	GPU string `mapstructure:"gpu"`
	// DType is the type that the GPU computes in. Empty means bf16, or fp16 on a
	// GPU without bf16.
	DType string `mapstructure:"dtype"`
	// FLOPS are operations per second: dense, in the type computed in.
	FLOPS float64 `mapstructure:"flops"`
	// MemoryBandwidth is in bytes per second.
	MemoryBandwidth float64 `mapstructure:"memory_bandwidth"`

	_ struct{}
}

// No GPU is slower than this. A smaller value lacks a power of ten.
const (
	minFLOPS     = 1e10
	minBandwidth = 1e9
)

func (c *DerivedConfig) checkHardware(invalid Invalid) {
	for i := range c.Hardware {
		h := &c.Hardware[i]
		key := fmt.Sprintf("hardware::%d", i)
		named, numbered := h.GPU != "", h.FLOPS != 0 || h.MemoryBandwidth != 0
		switch {
		case named && numbered:
			invalid(key, "gives gpu as well as numbers; write either gpu, or flops and memory_bandwidth")
		case named:
			if _, err := h.rule(); err != nil {
				invalid(key, "%v", err)
			}
		case !numbered:
			invalid(key, "write gpu, one of %s; or flops and memory_bandwidth", strings.Join(gpu.Names(), ", "))
		case h.DType != "":
			invalid(key+"::dtype", "belongs to gpu; flops are already those of one type, so remove it")
		}
		checkPeak(key+"::flops", h.FLOPS, minFLOPS, "operations per second, for example 989e12", invalid)
		checkPeak(key+"::memory_bandwidth", h.MemoryBandwidth, minBandwidth, "bytes per second, for example 3.35e12", invalid)
		for _, name := range slices.Sorted(maps.Keys(h.Match)) {
			if name == "" || h.Match[name] == "" {
				invalid(key+"::match", "%q: %q matches nothing; write a resource attribute and a pattern, for example k8s.node.name: gpu-a-*", name, h.Match[name])
			} else if what := input.PatternMistake(h.Match[name]); what != "" {
				invalid(key+"::match::"+name, "%s", what)
			}
		}
		if last := len(c.Hardware) - 1; len(h.Match) == 0 && i < last {
			invalid(key, "has no match, so hardware::%d is never used; write the entry without match last", i+1)
		}
	}
}

func checkPeak(key string, value, least float64, unit string, invalid Invalid) {
	if value != 0 && (!(value >= least) || math.IsInf(value, 0)) {
		invalid(key, "%g is too small or not a number; write %s", value, unit)
	}
}

// rule returns the rule of the entry, with the numbers of its GPU.
func (h *Hardware) rule() (gpu.Rule, error) {
	if h.GPU == "" {
		return gpu.Rule{Match: h.Match, FLOPS: h.FLOPS, MemoryBandwidth: h.MemoryBandwidth}, nil
	}
	dtype := h.DType
	if peak, known := gpu.Lookup(h.GPU); known && dtype == "" {
		// Every GPU of the table has bf16 or fp16.
		dtype = peak.DTypes()[0]
	}
	return gpu.NewRule(h.Match, h.GPU, dtype)
}

func rulesOf(entries []Hardware) ([]gpu.Rule, error) {
	var rules []gpu.Rule
	for i := range entries {
		rule, err := entries[i].rule()
		if err != nil {
			return nil, fmt.Errorf("hardware::%d: %w", i, err)
		}
		rules = append(rules, rule)
	}
	return rules, nil
}

// peak returns what one GPU of a server can do; zero where no rule matches.
func peak(rules []gpu.Rule, attributes pcommon.Map) derive.Peak {
	if len(rules) == 0 {
		return derive.Peak{}
	}
	texts := make(map[string]string, attributes.Len())
	for name, value := range attributes.All() {
		texts[name] = value.AsString()
	}
	rule, _ := gpu.Match(texts, rules)
	return derive.Peak{FLOPS: rule.FLOPS, Bandwidth: rule.MemoryBandwidth}
}
