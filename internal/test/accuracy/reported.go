package accuracy

import (
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// Reported is the diagnosis that was reported at one time.
type Reported struct {
	// At is in seconds since the beginning of the story.
	At float64
	// Severity is -1 if nothing was reported.
	Severity  int
	Condition string
	// Primary is the primary cause, empty without one.
	Primary string
	// Contributing and Notices are in the order of their names.
	Contributing, Notices []string
	// Detail is that of the primary cause.
	Detail string
	// Signals and Ratios are empty unless they are enabled.
	Signals, Ratios map[string]float64
}

const (
	metricSeverity    = "vllm.diagnosis.severity"
	metricCondition   = "vllm.diagnosis.condition"
	metricCause       = "vllm.diagnosis.cause"
	metricSignal      = "vllm.diagnosis.signal"
	metricSignalRatio = "vllm.diagnosis.signal_ratio"
)

// readReported reads the diagnosis of an engine from the processor's output.
func readReported(metrics pmetric.Metrics, engine string, at float64) Reported {
	reported := Reported{At: at, Severity: -1}
	for _, rm := range metrics.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				if strings.HasPrefix(m.Name(), "vllm.diagnosis.") && m.Type() == pmetric.MetricTypeGauge {
					reported.metric(m, engine)
				}
			}
		}
	}
	slices.Sort(reported.Contributing)
	slices.Sort(reported.Notices)
	return reported
}

func (t *Reported) metric(m pmetric.Metric, engine string) {
	for _, p := range m.Gauge().DataPoints().All() {
		if e := text(p.Attributes(), "engine"); p.Flags().NoRecordedValue() || (e != "" && e != engine) {
			continue
		}
		v := p.DoubleValue()
		if p.ValueType() == pmetric.NumberDataPointValueTypeInt {
			v = float64(p.IntValue())
		}
		switch m.Name() {
		case metricSeverity:
			t.Severity = int(v)
		case metricCondition:
			if v == 1 {
				t.Condition = text(p.Attributes(), "condition")
			}
		case metricCause:
			if v == 1 {
				t.cause(p.Attributes())
			}
		case metricSignal:
			t.Signals = with(t.Signals, text(p.Attributes(), "signal"), v)
		case metricSignalRatio:
			t.Ratios = with(t.Ratios, text(p.Attributes(), "signal"), v)
		}
	}
}

func (t *Reported) cause(attributes pcommon.Map) {
	name := text(attributes, "cause")
	switch text(attributes, "role") {
	case "primary":
		t.Primary, t.Detail = name, text(attributes, "detail")
	case "contributing":
		t.Contributing = append(t.Contributing, name)
	case "notice":
		t.Notices = append(t.Notices, name)
	}
}

// with adds an entry to a map and creates the map if it is nil, because most runs
// have many scrapes and no signals.
func with(m map[string]float64, name string, v float64) map[string]float64 {
	if m == nil {
		m = map[string]float64{}
	}
	m[name] = v
	return m
}

func text(attributes pcommon.Map, name string) string {
	v, ok := attributes.Get(name)
	if !ok {
		return ""
	}
	return v.AsString()
}

// Alarms reports whether it is an alarm: degraded or worse.
func (t *Reported) Alarms() bool {
	return t.Severity >= 2 || slices.Contains([]string{"degraded", "failing", stalled, "unreachable"}, t.Condition)
}

// Top returns the primary cause and, if there is exactly one, the contributing
// cause. The metrics do not rank several contributing causes.
func (t *Reported) Top() []string {
	if t.Primary == "" {
		return nil
	}
	if len(t.Contributing) == 1 {
		return []string{t.Primary, t.Contributing[0]}
	}
	return []string{t.Primary}
}
