package objective

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
)

// Limits of what can be configured.
const (
	maxNameLength  = 64
	maxBurnWindows = 10
	minWindow      = Duration(time.Minute)
	maxWindow      = Duration(366 * 24 * time.Hour)
)

// Validate returns all mistakes in the objective itself. Each is a sentence that says what
// to write instead.
func (o *Objective) Validate() error {
	return errors.Join(o.mistake(o.checkName()), o.mistake(o.checkThreshold()), o.mistake(o.checkTarget()), o.mistake(o.checkModels()))
}

// mistake puts the objective's name before what is wrong with it.
func (o *Objective) mistake(what string) error {
	switch {
	case what == "":
		return nil
	case o.Name == "":
		return errors.New(what)
	}
	return fmt.Errorf("objective %q: %s", o.Name, what)
}

func (o *Objective) checkName() string {
	if o.Name == "" {
		return "an objective has no name; write for example name: ttft"
	}
	if len(o.Name) > maxNameLength {
		return fmt.Sprintf("the name has %d characters; write at most %d", len(o.Name), maxNameLength)
	}
	for _, r := range o.Name {
		if !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("_.-", r)) {
			return fmt.Sprintf("the name contains %q; write letters, digits, dots, dashes and underscores only", r)
		}
	}
	return ""
}

// checkThreshold covers the metric as well, because what a threshold may be
// depends on it.
func (o *Objective) checkThreshold() string {
	bounds, ok := indicatorOf(o.Metric)
	if !ok {
		return checkMetric(o.Metric)
	}
	switch last := ofSeconds(bounds[len(bounds)-1]); {
	case o.Threshold <= 0:
		return "the threshold is missing, is 0, or has no unit; write for example threshold: 2.5s"
	case o.Threshold.unitless():
		return fmt.Sprintf("the threshold %d has no unit; write for example %ds or %dms", int64(o.Threshold), int64(o.Threshold), int64(o.Threshold))
	case o.Threshold > last:
		return fmt.Sprintf("the threshold %s is beyond the last bucket of %s, so no server can decide it; write at most %s", o.Threshold, o.Metric, last)
	}
	return ""
}

// checkMetric explains why no objective can be about a metric.
func checkMetric(metric string) string {
	if metric == "" {
		return "the metric is missing; write one of " + usable()
	}
	if _, ok := catalog.ByName(metric); ok {
		return fmt.Sprintf("no objective can be about the metric %s; write one of %s", metric, usable())
	}
	if name := canonical(metric); name != "" {
		return fmt.Sprintf("the metric %s is called %s here; write that", metric, name)
	}
	return fmt.Sprintf("the metric %s is unknown; write one of %s", metric, usable())
}

// canonical returns the indicator that a name from the wire or from Prometheus means;
// empty if it means none.
func canonical(name string) string {
	for _, suffix := range []string{"_bucket", "_count", "_sum"} {
		name = strings.TrimSuffix(name, suffix)
	}
	for _, prefix := range catalog.Prefixes {
		rest, ok := strings.CutPrefix(name, prefix)
		if !ok {
			continue
		}
		for _, match := range catalog.BySource(catalog.Prefixes[0] + rest) {
			if _, ok := indicatorOf(match.Metric.Name); ok {
				return match.Metric.Name
			}
		}
	}
	return ""
}

func (o *Objective) checkTarget() string {
	target := number(o.Target)
	switch {
	case o.Target > 0 && o.Target < 1:
		return ""
	case o.Target == 0:
		return "the target is missing or 0; write for example target: 0.95"
	case o.Target == 1 || o.Target == 100:
		return fmt.Sprintf("the target %s allows no single failure, so it has no error budget; write for example 0.999", target)
	case o.Target > 1 && o.Target < 100:
		return fmt.Sprintf("the target %s is a percentage; write the share %s", target, strconv.FormatFloat(o.Target/100, 'g', 12, 64))
	}
	return fmt.Sprintf("the target %s is not a share; write a number between 0 and 1, for example 0.95", target)
}

func (o *Objective) checkModels() string {
	if slices.Contains(o.Models, "") {
		return `a pattern in models is empty; write "*" for all models, or leave out models`
	}
	for _, wanted := range o.Models {
		if what := input.PatternMistake(wanted); what != "" {
			return what
		}
	}
	return ""
}

// ValidateAll returns the mistakes between objectives and those in the windows. The
// mistakes in one objective are returned by its Validate.
func ValidateAll(objectives []Objective, budget Duration, burn []Duration) error {
	var mistakes []error
	seen := map[string]int{}
	for i := range objectives {
		name := objectives[i].Name
		seen[name]++
		if name != "" && seen[name] == 2 {
			mistakes = append(mistakes, fmt.Errorf("several objectives are called %q; give each its own name, for example %q", name, name+"-2"))
		}
	}
	if what := checkWindow("budget_window", budget); what != "" {
		return errors.Join(append(mistakes, errors.New(what))...)
	}
	if len(burn) > maxBurnWindows {
		mistakes = append(mistakes, fmt.Errorf("burn_windows has %d windows; write at most %d", len(burn), maxBurnWindows))
	}
	for i, window := range burn {
		what := checkWindow("a window in burn_windows", window)
		switch {
		case what != "":
			mistakes = append(mistakes, errors.New(what))
		case slices.Contains(burn[:i], window):
			mistakes = append(mistakes, fmt.Errorf("burn_windows has %s twice; remove one of them", window))
		case window > budget:
			mistakes = append(mistakes, fmt.Errorf("budget_window %s is shorter than the burn window %s; write at least budget_window: %s, or leave %s out of burn_windows",
				budget, window, window, window))
		}
	}
	return errors.Join(mistakes...)
}

func checkWindow(key string, window Duration) string {
	switch {
	case window.unitless():
		return fmt.Sprintf("%s is %d without a unit; write for example %dd or %dh", key, int64(window), int64(window), int64(window))
	case window < minWindow:
		return fmt.Sprintf("%s is %s; write at least %s", key, window, minWindow)
	case window > maxWindow:
		return fmt.Sprintf("%s is %s; write at most %s", key, window, maxWindow)
	}
	return ""
}

// Duration is a time span of the configuration. It is written as Prometheus
// writes it (30d, 2w, 1h30m) or as Go does (2.5s, 100ms).
type Duration time.Duration

// UnmarshalText reads a duration in either form.
func (d *Duration) UnmarshalText(text []byte) error {
	if long, err := model.ParseDuration(string(text)); err == nil {
		*d = Duration(long)
		return nil
	}
	short, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("%q is not a duration; write for example 2.5s, 100ms, 1h30m, 2w or 30d", text)
	}
	if short < 0 {
		return fmt.Errorf("the duration %s is negative; leave out the minus", text)
	}
	*d = Duration(short)
	return nil
}

// MarshalText writes what UnmarshalText reads.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// String writes whole seconds as Prometheus does, "30d" or "1h30m", and other
// values as Go does, "2.5s".
func (d Duration) String() string {
	if time.Duration(d)%time.Second == 0 {
		return model.Duration(d).String()
	}
	return time.Duration(d).String()
}

// Seconds is the duration in seconds. It is the number nearest to the exact
// value, so 100ms equals a bound that was read from "0.1".
func (d Duration) Seconds() float64 { return float64(d) / float64(time.Second) }

// unitless reports whether the duration was a bare number in the configuration, which is
// decoded as nanoseconds. No valid duration is that short.
func (d Duration) unitless() bool { return d > 0 && time.Duration(d) < time.Microsecond }

// ofSeconds converts a bound of a histogram.
func ofSeconds(seconds float64) Duration {
	return Duration(time.Duration(seconds*1e6+0.5) * time.Microsecond)
}
