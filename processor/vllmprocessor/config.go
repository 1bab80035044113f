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
	"github.com/otelcol-vllm/otelcol-vllm/internal/settings"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/objective"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/stages"
)

// Config is the configuration of the processor. The default is complete.
type Config struct {
	// Window is the time that increases are taken over.
	Window time.Duration `mapstructure:"window"`
	// MaxStaleness is the time without a batch after which a resource is forgotten. Where
	// it is not set and the window is long, it is two windows.
	MaxStaleness time.Duration `mapstructure:"max_staleness"`
	// MaxSeries is the most input series whose state is kept. Where there are more, the
	// resources with most series lose some. A histogram counts as one, and long labels as
	// more.
	MaxSeries int `mapstructure:"max_series"`
	// Derived has the choices for the values over the window.
	Derived stages.DerivedConfig `mapstructure:",squash"`
	// Objectives are promises about latencies.
	Objectives []objective.Objective `mapstructure:"objectives"`
	// BudgetWindow is the time that an error budget is for.
	BudgetWindow objective.Duration `mapstructure:"budget_window"`
	// BurnWindows are the times that burn rates are over.
	BurnWindows []objective.Duration `mapstructure:"burn_windows"`
	// Storage is the extension that keeps the objectives and the baselines of the
	// diagnosis over a restart; nil without one.
	Storage *component.ID `mapstructure:"storage"`
	// Preset is what leaves the processor without a switch.
	Preset catalog.Preset `mapstructure:"preset"`
	// Metrics switches metrics on and off by name.
	Metrics map[string]MetricConfig `mapstructure:"metrics"`
	// Pool adds up servers; there are no pools without it.
	Pool configoptional.Optional[stages.PoolsConfig] `mapstructure:"pool"`
	// Accelerators has the choices for the metrics of GPUs.
	Accelerators stages.GPUsConfig `mapstructure:"accelerators"`
	// Diagnosis has the choices for the diagnosis.
	Diagnosis stages.DiagnosisConfig `mapstructure:"diagnosis"`

	// unread are the mistakes of Unmarshal. Validate reports them together with all others.
	unread []error
	_      struct{}
}

// MetricConfig switches one metric.
type MetricConfig struct {
	// Enabled is nil where the preset holds.
	Enabled *bool `mapstructure:"enabled"`

	_ struct{}
}

func createDefaultConfig() component.Config {
	return &Config{
		Window:       time.Minute,
		MaxStaleness: 5 * time.Minute,
		MaxSeries:    100_000,
		Derived:      stages.DefaultDerivedConfig(),
		BudgetWindow: objective.Duration(30 * 24 * time.Hour),
		BurnWindows:  []objective.Duration{objective.Duration(time.Hour), objective.Duration(6 * time.Hour)},
		Pool:         configoptional.Default(stages.DefaultPoolsConfig()),
		Accelerators: stages.DefaultGPUsConfig(),
		Diagnosis:    stages.DefaultDiagnosisConfig(),
	}
}

// durations are the settings that accept days and weeks as well, as budget_window does:
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
			continue // Decode reports it.
		}
		if err := conf.Merge(confmap.NewFromStringMap(map[string]any{key: time.Duration(long).String()})); err != nil {
			return err
		}
	}
	return nil
}

// Unmarshal reads the configuration. A long window alone is valid: it makes the defaults
// longer that depend on it.
func (c *Config) Unmarshal(conf *confmap.Conf) error {
	if err := spellOut(conf); err != nil {
		return err
	}
	c.unread = settings.Decode(conf, c)
	if !conf.IsSet("max_staleness") {
		c.MaxStaleness = max(c.MaxStaleness, 2*c.Window)
	}
	if !conf.IsSet("diagnosis::relearn_after") {
		c.Diagnosis.RelearnAfter = max(c.Diagnosis.RelearnAfter, c.Diagnosis.LeastRelearnAfter(c.Window))
	}
	return nil
}

// minWindow is the shortest window: servers are not scraped more often than once a
// second.
const minWindow = time.Second

// Validate reports all invalid values together.
func (c *Config) Validate() error {
	errs := slices.Clone(c.unread)
	var invalid stages.Invalid = func(key, format string, args ...any) {
		errs = append(errs, fmt.Errorf("%s: %s", key, fmt.Sprintf(format, args...)))
	}
	switch {
	case c.Window <= 0:
		invalid("window", "must be more than 0; write for example 1m")
	case invalid.LacksUnit("window", c.Window):
	case c.Window < minWindow:
		invalid("window", "%s is too short; write at least twice the time between two scrapes, for example 1m", c.Window)
	}
	switch {
	case c.MaxStaleness <= 0:
		invalid("max_staleness", "must be more than 0; write for example 5m")
	case invalid.LacksUnit("max_staleness", c.MaxStaleness):
	case c.MaxStaleness < c.Window:
		invalid("max_staleness", "%s is shorter than window (%s), so that a window could never be filled; write at least %s", c.MaxStaleness, c.Window, c.Window)
	}
	if c.MaxSeries < 1 {
		invalid("max_series", "must be at least 1, not %d; the default is 100000", c.MaxSeries)
	}
	c.Derived.Check(invalid)
	c.checkMetrics(invalid)
	if pool := c.Pool.Get(); pool != nil {
		pool.Check(invalid)
	}
	c.Accelerators.Check(invalid)
	c.Diagnosis.Check(c.Window, invalid)
	if c.Storage != nil && len(c.Objectives) == 0 && !c.Diagnosis.Enabled {
		invalid("storage", "keeps objectives and the baselines of the diagnosis, and there are neither; write objectives, leave out diagnosis::enabled, or remove storage")
	}
	return errors.Join(append(errs, objective.ValidateAll(c.Objectives, c.BudgetWindow, c.BurnWindows))...)
}

// Switched reports whether the preset or a switch has a metric. What it needs can be missing.
func (c *Config) Switched(name string) bool {
	if chosen := c.Metrics[name].Enabled; chosen != nil {
		return *chosen
	}
	metric, known := catalog.ByName(name)
	return known && (metric.In(c.Preset) || c.Derived.Switches(name))
}

// drops returns the metrics of the input, also those of a processor before, that do not leave this one; nil where all do.
func (c *Config) drops() func(m *catalog.Metric) bool {
	some := c.Preset == catalog.Essential
	for name := range c.Metrics {
		some = some || !c.Switched(name)
	}
	if !some {
		return nil
	}
	return func(m *catalog.Metric) bool {
		// The receiver emits gen_ai.* only where its user asks for them.
		return !c.Switched(m.Name) && (c.Preset == catalog.Essential && !strings.HasPrefix(m.Name, "gen_ai.") || c.Metrics[m.Name].Enabled != nil)
	}
}

// emits reports whether a metric is switched on and the configuration has all that the
// metric needs.
func (c *Config) emits(name string) bool { return c.Switched(name) && c.lacks(name) == "" }

func (c *Config) checkMetrics(invalid stages.Invalid) {
	for _, name := range slices.Sorted(maps.Keys(c.Metrics)) {
		key := "metrics::" + name
		if mistake := c.unknownMetric(name, c.Metrics[name].Enabled); mistake != "" {
			invalid(key, "%s", mistake)
		} else if c.Metrics[name].Enabled == nil {
			invalid(key, "write {enabled: true} or {enabled: false}")
		} else if lacks := c.lacks(name); lacks != "" && *c.Metrics[name].Enabled {
			invalid(key, "is emitted only where %s, or remove the switch", lacks)
		}
	}
}

// lacks says what a derived metric needs and the configuration does not have; empty
// where nothing is missing.
func (c *Config) lacks(name string) string {
	switch {
	case (strings.HasPrefix(name, "vllm.pool.") || name == "vllm.diagnosis.user_share") && !c.Pool.HasValue():
		return "there are pools; write pool: {} next to metrics"
	case strings.Contains(name, ".diagnosis.") && !c.Diagnosis.Enabled:
		return "there is a diagnosis; leave out diagnosis::enabled"
	case strings.HasPrefix(name, "vllm.slo.") && len(c.Objectives) == 0:
		return "there are objectives; write objectives next to metrics"
	case (name == "vllm.model_flops_utilization" || name == "vllm.memory_bandwidth_utilization") && len(c.Derived.Hardware) == 0:
		return "hardware says what the GPUs can do; write hardware next to metrics"
	case strings.Contains(name, "_quantile") && len(c.Derived.Quantiles) == 0:
		return "there are quantiles, and the list is empty; write for example quantiles: [0.95]"
	}
	return ""
}

// unknownMetric says what is wrong with the name of a switch; empty where the switch has an effect.
func (c *Config) unknownMetric(name string, chosen *bool) string {
	const receivers = "write the switch under receivers::vllm::metrics"
	if metric, known := catalog.ByName(name); known {
		if metric.Derived() || c.Preset == catalog.Essential || chosen != nil && !*chosen {
			return ""
		}
		return "the receiver emits this metric, and it passes with this preset; " + receivers
	}
	if matches := catalog.BySource(name); len(matches) > 0 {
		return fmt.Sprintf("this is vLLM's own name of %s, which the receiver emits; %s", matches[0].Metric.Name, receivers)
	}
	meant := name
	if !strings.HasPrefix(name, "vllm") {
		meant = "vllm." + name
	}
	// A user who writes the end of a name means a name with that end, however long.
	end := "." + strings.TrimPrefix(meant, "vllm.")
	has := func(m *catalog.Metric) bool { return c.unknownMetric(m.Name, chosen) == "" }
	nearest := catalog.Nearest(meant, func(m *catalog.Metric) bool { return has(m) && strings.HasSuffix(m.Name, end) })
	if nearest == "" {
		nearest = catalog.Nearest(meant, has)
	}
	return fmt.Sprintf("no metric has this name; did you mean %s?", nearest)
}
