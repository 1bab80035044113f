package vllmprocessor

import (
	"fmt"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/collect"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/derive"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/diagnose"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/emit"
)

// diagnosis is what a processor does to diagnose the engines. All is called with
// the processor's lock held.
type diagnosis struct {
	settings diagnose.Settings
	wanted   map[*derive.Row]bool
	logger   *zap.Logger
	values   []derive.Value
}

// diagnosed is the part of a resource's state that the diagnosis has.
type diagnosed struct {
	state  diagnose.State
	memory emit.Memory
}

// newDiagnosis returns nil where the diagnosis is switched off.
func newDiagnosis(config *Config, logger *zap.Logger) *diagnosis {
	if !config.Diagnosis.Enabled {
		return nil
	}
	d := &diagnosis{
		settings: diagnose.Settings{
			Window: config.Window, Hold: config.Diagnosis.Hold, RelearnAfter: config.Diagnosis.RelearnAfter,
			SpeculationBreakEven: config.Diagnosis.SpeculationBreakEven,
		},
		wanted: map[*derive.Row]bool{},
		logger: logger,
	}
	for _, row := range diagnose.Rows() {
		d.wanted[row] = config.enabled(row.Metric)
	}
	for i := range config.Objectives {
		o := &config.Objectives[i]
		if in, known := collect.ByName(o.Metric); known {
			d.settings.Objectives = append(d.settings.Objectives, diagnose.Objective{
				Name: o.Name, Input: in, Threshold: o.Threshold.Seconds(), Target: o.Target, Matches: o.Matches,
			})
		}
	}
	return d
}

// batch diagnoses the engines of a resource and appends what is told to added.
func (d *diagnosis) batch(batch *collect.Batch, r *resource, added pmetric.MetricSlice) (points, ends int) {
	if d == nil {
		return 0, 0
	}
	if r.diagnosed == nil {
		r.diagnosed = &diagnosed{}
	}
	transitions := r.diagnosed.state.Observe(&d.settings, r.state)
	for i := range transitions {
		d.log(batch.Resource, &transitions[i])
	}
	d.values = r.diagnosed.state.Values(r.state, d.wanted, d.values)
	return r.diagnosed.memory.Write(d.values, r.state.Time(), batch.Time, r.state.Attributes, added)
}

// end ends all that was told.
func (d *diagnosed) end(r *resource, at int64, added pmetric.MetricSlice) (ends int) {
	if d == nil {
		return 0
	}
	_, ends = d.memory.Write(nil, at, at, r.state.Attributes, added)
	return ends
}

// logLevels are those of the severities.
var logLevels = [...]zapcore.Level{zap.InfoLevel, zap.InfoLevel, zap.WarnLevel, zap.ErrorLevel}

// log tells a change in one line: what it is now, by what it is seen, what it is
// compared with, and what to do next.
func (d *diagnosis) log(resource string, t *diagnose.Transition) {
	condition, _ := catalog.ConditionByName(t.To.Condition.String())
	sentence, next, anchor := condition.Sentence, condition.Next, condition.Anchor
	fields := []zap.Field{
		zap.String("condition", t.To.Condition.String()),
		zap.String("previous_condition", t.From.Condition.String()),
		zap.Int("severity", t.To.Severity),
		zap.Time("at", time.Unix(0, t.At).UTC()),
		zap.String("resource", strings.Trim(strings.ReplaceAll(resource, "\x00", " "), " ")),
	}
	for _, a := range t.Attributes {
		fields = append(fields, zap.String(a.Name, a.Value))
	}
	if t.To.Explained {
		if cause, known := catalog.CauseByName(t.To.Primary.String()); known {
			sentence, next, anchor = sentence+" "+cause.Sentence, cause.Next, cause.Anchor
			fields = append(fields, zap.String("cause", cause.Name))
			if cause.NotSeparable != "" {
				fields = append(fields, zap.String("not_separable", cause.NotSeparable))
			}
		}
		if detail := t.Details[t.To.Primary]; detail != "" {
			fields = append(fields, zap.String("detail", detail))
		}
	}
	if t.Relearned {
		sentence = fmt.Sprintf("The level that has lasted for %s is taken as usual from now on.", d.settings.RelearnAfter)
	}
	fields = append(fields, others("contributing", &t.To.Contributing), others("notices", &t.To.Notices))
	if t.To.Condition == diagnose.Degraded || t.To.Condition == diagnose.Failing {
		fields = append(fields, zap.Stringer("reference", t.To.Reference))
		if t.To.Objective != "" {
			fields = append(fields, zap.String("objective", t.To.Objective), zap.Float64("missed_share", t.Missed))
		}
	}
	fields = append(fields, zap.Strings("evidence", t.Evidence()), zap.Strings("next", next), zap.String("runbook", "docs/diagnosis.md#"+anchor))
	d.logger.Log(logLevels[t.To.Severity], "diagnosis: "+sentence, fields...)
}

// others are causes beside the primary one.
func others(key string, causes *[diagnose.NumCauses]bool) zap.Field {
	var names []string
	for c, is := range causes {
		if is {
			names = append(names, diagnose.Cause(c).String())
		}
	}
	if names == nil {
		return zap.Skip()
	}
	return zap.Strings(key, names)
}
