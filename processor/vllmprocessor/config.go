package vllmprocessor

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/confmap"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/objective"
)

// Interpolation says how a quantile is placed within its bucket.
type Interpolation string

const (
	// Linear takes the observations of a bucket as evenly spread, as Prometheus
	// does: the default.
	Linear Interpolation = "linear"
	// MeanConstrained spreads them so that their mean is the true one.
	MeanConstrained Interpolation = "mean_constrained"
)

// Config is the configuration of the processor. The default is complete.
type Config struct {
	// Window is the time that increases are taken over.
	Window time.Duration `mapstructure:"window"`
	// Quantiles are the quantiles of the latencies, from 0 to 1. With none, none
	// are told.
	Quantiles []float64 `mapstructure:"quantiles"`
	// MinCount is the least number of observations of a mean or quantile.
	MinCount int `mapstructure:"min_count"`
	// MaxStaleness is the age after which what a resource said is forgotten. Where
	// it is not set and the window is long, it is two windows.
	MaxStaleness time.Duration `mapstructure:"max_staleness"`
	// MaxSeries is the most input series whose state is kept; the resources with most of
	// them give way to the others. A histogram counts as one, and long labels as more.
	MaxSeries int `mapstructure:"max_series"`
	// CapacityFromBlocks takes blocks times block size as the capacity of the KV
	// cache of servers before v0.24, which overstates hybrid models.
	CapacityFromBlocks bool `mapstructure:"capacity_from_blocks"`
	// Percentiles has the choices for quantiles.
	Percentiles PercentilesConfig `mapstructure:"percentiles"`
	// Hardware says what the GPUs of the resources can do; the first that matches
	// counts.
	Hardware []HardwareConfig `mapstructure:"hardware"`
	// Objectives are promises about latencies that are measured.
	Objectives []objective.Objective `mapstructure:"objectives"`
	// BudgetWindow is the time for which the error budget of an objective is.
	BudgetWindow objective.Duration `mapstructure:"budget_window"`
	// BurnWindows are the times over which burn rates are told.
	BurnWindows []objective.Duration `mapstructure:"burn_windows"`
	// Storage is an extension that keeps the objectives and the baselines of the
	// diagnosis over a restart; nil: none does.
	Storage *component.ID `mapstructure:"storage"`
	// Metrics switches derived metrics on and off by name.
	Metrics map[string]MetricConfig `mapstructure:"metrics"`
	// Pool adds up servers; there are no pools without it.
	Pool configoptional.Optional[PoolConfig] `mapstructure:"pool"`
	// Diagnosis has the choices for the diagnosis.
	Diagnosis DiagnosisConfig `mapstructure:"diagnosis"`

	_ struct{}
}

// PercentilesConfig has the choices for quantiles.
type PercentilesConfig struct {
	// Interpolation is linear or mean_constrained.
	Interpolation Interpolation `mapstructure:"interpolation"`
	// PerEngine keeps the quantiles of each engine where a server has several.
	PerEngine bool `mapstructure:"per_engine"`

	_ struct{}
}

// MetricConfig switches one metric.
type MetricConfig struct {
	// Enabled is nil where the catalogue's default holds.
	Enabled *bool `mapstructure:"enabled"`

	_ struct{}
}

func createDefaultConfig() component.Config {
	return &Config{
		Window:       time.Minute,
		Quantiles:    []float64{0.5, 0.95, 0.99},
		MinCount:     1,
		MaxStaleness: 5 * time.Minute,
		MaxSeries:    100_000,
		Percentiles:  PercentilesConfig{Interpolation: Linear},
		Pool:         configoptional.Default(defaultPoolConfig()),
		Diagnosis:    defaultDiagnosisConfig(),
		BudgetWindow: objective.Duration(30 * 24 * time.Hour),
		BurnWindows:  []objective.Duration{objective.Duration(time.Hour), objective.Duration(6 * time.Hour)},
	}
}

// durations are the settings that take days and weeks as well, as budget_window does:
// Go's own durations end at the hour.
var durations = []string{"window", "max_staleness", "diagnosis::relearn_after", "diagnosis::start_timeout", "pool::interval"}

// spellOut turns durations with days and weeks into hours.
func spellOut(conf *confmap.Conf) error {
	for _, key := range durations {
		text, isText := conf.Get(key).(string)
		if _, err := time.ParseDuration(text); !isText || err == nil {
			continue
		}
		long, err := model.ParseDuration(text)
		if err != nil {
			return fmt.Errorf("%s: %q is not a duration; write for example 90s, 1h30m or 1d", key, text)
		}
		nested := any(time.Duration(long).String())
		parts := strings.Split(key, confmap.KeyDelimiter)
		for _, part := range slices.Backward(parts) {
			nested = map[string]any{part: nested}
		}
		if err := conf.Merge(confmap.NewFromStringMap(nested.(map[string]any))); err != nil {
			return err
		}
	}
	return nil
}

// Unmarshal makes a long window alone no mistake.
func (c *Config) Unmarshal(conf *confmap.Conf) error {
	if err := spellOut(conf); err != nil {
		return err
	}
	if err := conf.Unmarshal(c); err != nil {
		return err
	}
	if !conf.IsSet("max_staleness") {
		c.MaxStaleness = max(c.MaxStaleness, 2*c.Window)
	}
	if !conf.IsSet("diagnosis::relearn_after") {
		c.Diagnosis.RelearnAfter = max(c.Diagnosis.RelearnAfter, c.leastRelearnAfter())
	}
	return nil
}

const (
	// minWindow is the shortest window: servers are not scraped more often than
	// once a second.
	minWindow = time.Second
	// withoutUnit is the longest time that is a slip: a number without a unit
	// counts nanoseconds.
	withoutUnit = 100 * time.Microsecond
)

// Validate reports all mistakes at once.
func (c *Config) Validate() error {
	var errs []error
	add := func(key, format string, args ...any) {
		errs = append(errs, fmt.Errorf("%s: %s", key, fmt.Sprintf(format, args...)))
	}
	switch {
	case c.Window <= 0:
		add("window", "must be more than 0; write for example 1m")
	case c.Window <= withoutUnit:
		add("window", "%d has no unit; write %ds", c.Window, c.Window)
	case c.Window < minWindow:
		add("window", "%s is too short; write at least twice the time between two scrapes, for example 1m", c.Window)
	}
	switch {
	case c.MaxStaleness <= 0:
		add("max_staleness", "must be more than 0; write for example 5m")
	case c.MaxStaleness <= withoutUnit:
		add("max_staleness", "%d has no unit; write %ds", c.MaxStaleness, c.MaxStaleness)
	case c.MaxStaleness < c.Window:
		add("max_staleness", "%s is shorter than window (%s), so that a window could never be filled; write at least %s", c.MaxStaleness, c.Window, c.Window)
	}
	if c.MinCount < 1 {
		add("min_count", "must be at least 1, not %d: there is no mean of no observations", c.MinCount)
	}
	if c.MaxSeries < 1 {
		add("max_series", "must be at least 1, not %d; the default is 100000", c.MaxSeries)
	}
	c.validateQuantiles(add)
	switch c.Percentiles.Interpolation {
	case Linear, MeanConstrained:
	default:
		add("percentiles::interpolation", "%q is not known; write linear or mean_constrained", c.Percentiles.Interpolation)
	}
	c.validateHardware(add)
	c.validateMetrics(add)
	c.validatePool(add)
	c.validateDiagnosis(add)
	if c.Storage != nil && len(c.Objectives) == 0 && !c.Diagnosis.Enabled {
		add("storage", "keeps objectives and the baselines of the diagnosis, and there are neither; write objectives, leave out diagnosis::enabled, or remove storage")
	}
	// The mistakes within an objective are found by its own Validate.
	errs = append(errs, objective.ValidateAll(c.Objectives, c.BudgetWindow, c.BurnWindows))
	return errors.Join(errs...)
}

func (c *Config) validateQuantiles(add func(key, format string, args ...any)) {
	seen := map[float64]bool{}
	for i, q := range c.Quantiles {
		key := fmt.Sprintf("quantiles::%d", i)
		switch {
		case q > 1 && q <= 100:
			add(key, "%g is not from 0 to 1; write %.6g for p%g", q, q/100, q)
		case !(q >= 0 && q <= 1):
			add(key, "%g is not from 0 to 1; write for example 0.95", q)
		case seen[q]:
			add(key, "%g is there twice; remove one", q)
		}
		seen[q] = true
	}
}

func (c *Config) validateMetrics(add func(key, format string, args ...any)) {
	for _, name := range slices.Sorted(maps.Keys(c.Metrics)) {
		key := "metrics::" + name
		if mistake := unknownMetric(name); mistake != "" {
			add(key, "%s", mistake)
		} else if c.Metrics[name].Enabled == nil {
			add(key, "write {enabled: true} or {enabled: false}")
		} else if lacks := c.lacks(name); lacks != "" && *c.Metrics[name].Enabled {
			add(key, "is told only where %s, or remove the switch", lacks)
		}
	}
}

// lacks says what a derived metric cannot be told without and the configuration
// does not have; empty where nothing is missing.
func (c *Config) lacks(name string) string {
	switch {
	case strings.HasPrefix(name, "vllm.pool.") && !c.Pool.HasValue():
		return "there are pools; write pool: {} beside metrics"
	case strings.Contains(name, ".diagnosis.") && !c.Diagnosis.Enabled:
		return "there is a diagnosis; leave out diagnosis::enabled"
	case strings.HasPrefix(name, "vllm.slo.") && len(c.Objectives) == 0:
		return "there are objectives; write objectives beside metrics"
	case (name == "vllm.model_flops_utilization" || name == "vllm.memory_bandwidth_utilization") && len(c.Hardware) == 0:
		return "hardware says what the GPUs can do; write hardware beside metrics"
	case strings.Contains(name, "_quantile") && len(c.Quantiles) == 0:
		return "there are quantiles, and the list is empty; write for example quantiles: [0.95]"
	}
	return ""
}

// unknownMetric says what is wrong with the name of a switch; empty where it
// names something that the processor derives.
func unknownMetric(name string) string {
	const receivers = "write the switch under receivers::vllm::metrics"
	if metric, known := catalog.ByName(name); known {
		if metric.Derived() {
			return ""
		}
		return "the receiver emits this metric; " + receivers
	}
	if matches := catalog.BySource(name); len(matches) > 0 {
		return fmt.Sprintf("this is vLLM's own name of %s, which the receiver emits; %s", matches[0].Metric.Name, receivers)
	}
	meant := name
	if !strings.HasPrefix(name, "vllm") {
		meant = "vllm." + name
	}
	// Whoever writes the end of a name means a name with that end, however long.
	end := "." + strings.TrimPrefix(meant, "vllm.")
	nearest := catalog.Nearest(meant, func(m *catalog.Metric) bool { return m.Derived() && strings.HasSuffix(m.Name, end) })
	if nearest == "" {
		nearest = catalog.Nearest(meant, (*catalog.Metric).Derived)
	}
	return fmt.Sprintf("no metric has this name; did you mean %s?", nearest)
}
