package vllmprocessor

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/configoptional"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
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
	// Quantiles are the quantiles of the latencies, from 0 to 1.
	Quantiles []float64 `mapstructure:"quantiles"`
	// MinCount is the least number of observations of a mean or quantile.
	MinCount int `mapstructure:"min_count"`
	// MaxStaleness is the age after which what a resource said is forgotten.
	MaxStaleness time.Duration `mapstructure:"max_staleness"`
	// MaxSeries is the most input series whose state is kept; a histogram counts
	// as one.
	MaxSeries int `mapstructure:"max_series"`
	// CapacityFromBlocks takes blocks times block size as the capacity of the KV
	// cache of servers before v0.24, which overstates hybrid models.
	CapacityFromBlocks bool `mapstructure:"capacity_from_blocks"`
	// Percentiles has the choices for quantiles.
	Percentiles PercentilesConfig `mapstructure:"percentiles"`
	// Metrics switches derived metrics on and off by name.
	Metrics map[string]MetricConfig `mapstructure:"metrics"`
	// Pool adds up servers; there are no pools without it.
	Pool configoptional.Optional[PoolConfig] `mapstructure:"pool"`

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
	}
}

// minWindow is the shortest window: servers are not scraped more often than once
// a second.
const minWindow = time.Second

// Validate reports all mistakes at once.
func (c *Config) Validate() error {
	var errs []error
	add := func(key, format string, args ...any) {
		errs = append(errs, fmt.Errorf("%s: %s", key, fmt.Sprintf(format, args...)))
	}
	if c.Window < minWindow {
		add("window", "%s is too short; write at least twice the time between two scrapes, for example 1m", c.Window)
	}
	if c.MaxStaleness < c.Window {
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
	c.validateMetrics(add)
	c.validatePool(add)
	return errors.Join(errs...)
}

func (c *Config) validateQuantiles(add func(key, format string, args ...any)) {
	seen := map[float64]bool{}
	for i, q := range c.Quantiles {
		key := fmt.Sprintf("quantiles::%d", i)
		switch {
		case q > 1 && q <= 100:
			add(key, "%g is not from 0 to 1; write %g for the %gth percentile", q, q/100, q)
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
		metric, known := catalog.ByName(name)
		key := "metrics::" + name
		switch {
		case !known:
			add(key, "there is no such metric%s; processor/vllmprocessor/metrics.md lists them", similar(name))
		case !derives(metric):
			add(key, "this metric is the receiver's; switch it there")
		case c.Metrics[name].Enabled == nil:
			add(key, "say {enabled: true} or {enabled: false}")
		}
	}
}

// derives tells whether a metric is this processor's.
func derives(metric *catalog.Metric) bool { return metric.Derived() }

// similar names a metric that was probably meant.
func similar(name string) string {
	for _, m := range catalog.All() {
		if derives(&m) && (strings.HasSuffix(m.Name, "."+name) || strings.ReplaceAll(m.Name, ".", "_") == strings.ReplaceAll(name, ".", "_")) {
			return fmt.Sprintf(" (do you mean %s?)", m.Name)
		}
	}
	return ""
}
