package collect

import (
	"cmp"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/internal/identity"
	"github.com/otelcol-vllm/otelcol-vllm/internal/message"
)

// What a metric of a diagnosis says, of an engine or of a pool.
const (
	severity  = "severity"
	condition = "condition"
	cause     = "cause"
)

// own are the attributes by which the series of one metric differ.
var own = map[string][]string{
	severity:  nil,
	condition: {"condition"},
	cause:     {"cause", "role", "detail"},
}

// diagnosed are the metrics of a diagnosis.
var diagnosed = map[string]struct {
	which string
	pool  bool
}{
	"vllm.diagnosis.severity":       {severity, false},
	"vllm.diagnosis.condition":      {condition, false},
	"vllm.diagnosis.cause":          {cause, false},
	"vllm.pool.diagnosis.severity":  {severity, true},
	"vllm.pool.diagnosis.condition": {condition, true},
	"vllm.pool.diagnosis.cause":     {cause, true},
}

// Read returns the frames in metrics, oldest first, and counts the
// points of diagnoses that it cannot use.
func Read(metrics pmetric.Metrics) ([]*Frame, Report) {
	c := collector{index: map[frameKey]*Frame{}}
	for i, rm := range metrics.ResourceMetrics().All() {
		c.source, c.resource = i, ""
		for _, scope := range rm.ScopeMetrics().All() {
			for _, metric := range scope.Metrics().All() {
				if is, known := diagnosed[metric.Name()]; known {
					c.readMetric(rm.Resource(), metric, is.which, is.pool)
				}
			}
		}
	}
	slices.SortStableFunc(c.frames, func(a, b *Frame) int { return cmp.Compare(a.Time, b.Time) })
	return c.frames, c.report
}

type frameKey struct {
	Key
	time int64
}

type collector struct {
	frames []*Frame
	index  map[frameKey]*Frame
	report Report

	// Of the resource that is being read.
	source   int
	resource string
}

func (c *collector) readMetric(resource pcommon.Resource, metric pmetric.Metric, which string, pool bool) {
	points, is := numbers(metric)
	if !is {
		c.report[TypeConflict] += points
		return
	}
	if c.resource == "" {
		if identity.Size(resource.Attributes()) == identity.Unlimited {
			c.report[TooLong] += points
			return
		}
		c.resource = identity.Of(resource.Attributes())
	}
	for _, point := range metric.Gauge().DataPoints().All() {
		if why, used := c.readPoint(point, which, pool); !used {
			c.report[why]++
		}
	}
	if which != severity {
		return
	}
	for _, m := range message.Read(metric.Metadata()) {
		_, of := keyOf(m.Attributes, nil)
		if frame := c.index[frameKey{Key{c.resource, pool, of}, m.At}]; frame != nil {
			m.Attributes = pcommon.Map{} // It would keep all metrics in memory.
			frame.Message = &m
		}
	}
}

// readPoint adds one point to its frame, or says why it does not.
func (c *collector) readPoint(point pmetric.NumberDataPoint, which string, pool bool) (why Reason, used bool) {
	if identity.Size(point.Attributes()) > maxAttributes {
		return TooLong, false
	}
	gone := point.Flags().NoRecordedValue()
	value := point.DoubleValue()
	if point.ValueType() == pmetric.NumberDataPointValueTypeInt {
		value = float64(point.IntValue())
	}
	read := Cause{Role: Role(text(point, "role")), Detail: text(point, "detail")}
	if keys := own[which]; len(keys) > 0 {
		read.Name = text(point, keys[0])
	}
	switch {
	case point.Timestamp() == 0:
		return NoTimestamp, false
	case which != severity && read.Name == "":
		return BadAttribute, false
	case which == cause && read.Role != Primary && read.Role != Contributing && read.Role != Notice:
		return BadAttribute, false
	case len(read.Name)+len(read.Detail) > maxName:
		return TooLong, false
	case !gone && !possible(which, value):
		return BadValue, false
	}
	frame := c.frame(point, which, pool)
	fits := true
	switch {
	case which == condition:
		fits = set(frame.Conditions, read.Name, !gone && value == 1)
	case which == cause:
		fits = set(frame.Causes, read, !gone && value == 1)
	case which == severity && gone:
		frame.Ended = true
	case which == severity:
		frame.Severity = max(frame.Severity, int(value))
	}
	if !fits {
		return TooMany, false
	}
	frame.Points++
	return 0, true
}

// possible reports whether a metric can have a value.
func possible(which string, value float64) bool {
	return value == 0 || value == 1 || which == severity && (value == 2 || value == 3)
}

// frame is the one that a point belongs to.
func (c *collector) frame(point pmetric.NumberDataPoint, which string, pool bool) *Frame {
	attributes, of := keyOf(point.Attributes(), own[which])
	key := frameKey{Key{c.resource, pool, of}, int64(point.Timestamp())}
	frame := c.index[key]
	if frame == nil {
		frame = &Frame{
			Key: key.Key, Attributes: attributes, Time: key.time, Source: c.source, Severity: NoSeverity,
			Conditions: map[string]bool{}, Causes: map[Cause]bool{},
		}
		c.index[key] = frame
		c.frames = append(c.frames, frame)
	}
	if !point.Flags().NoRecordedValue() {
		// Where a server moved to other attributes, its values are with the new ones.
		frame.Source = c.source
	}
	return frame
}

// keyOf returns the attributes of a point but for some, sorted by name, and as one text.
func keyOf(of pcommon.Map, but []string) (attributes []Attribute, key string) {
	attributes = make([]Attribute, 0, of.Len())
	for name, value := range of.All() {
		if !slices.Contains(but, name) {
			attributes = append(attributes, Attribute{name, value.AsString()})
		}
	}
	slices.SortFunc(attributes, func(a, b Attribute) int { return strings.Compare(a.Name, b.Name) })
	var b strings.Builder
	for _, a := range attributes {
		b.WriteString(a.Name)
		b.WriteByte(0)
		b.WriteString(a.Value)
		b.WriteByte(0)
	}
	return attributes, b.String()
}

func text(point pmetric.NumberDataPoint, name string) string {
	if value, there := point.Attributes().Get(name); there {
		return value.AsString()
	}
	return ""
}

// numbers is the number of points of a metric, and whether it is a gauge.
func numbers(metric pmetric.Metric) (points int, gauge bool) {
	switch metric.Type() {
	case pmetric.MetricTypeGauge:
		return metric.Gauge().DataPoints().Len(), true
	case pmetric.MetricTypeSum:
		return metric.Sum().DataPoints().Len(), false
	case pmetric.MetricTypeHistogram:
		return metric.Histogram().DataPoints().Len(), false
	case pmetric.MetricTypeExponentialHistogram:
		return metric.ExponentialHistogram().DataPoints().Len(), false
	case pmetric.MetricTypeSummary:
		return metric.Summary().DataPoints().Len(), false
	case pmetric.MetricTypeEmpty:
	}
	return 0, false
}

// Kind is what metrics contain of a diagnosis.
type Kind uint8

// The kinds, of which a greater one says more.
const (
	// Foreign has no metric of a vLLM server.
	Foreign Kind = iota
	// Undiagnosed has metrics of vLLM servers and no severity.
	Undiagnosed
	// Translated has a severity under a name that is not OTLP's.
	Translated
	// Diagnosed has a severity.
	Diagnosed
)

// Look returns the kind of metrics by their names.
func Look(metrics pmetric.Metrics) Kind {
	kind := Foreign
	for _, rm := range metrics.ResourceMetrics().All() {
		for _, scope := range rm.ScopeMetrics().All() {
			for _, metric := range scope.Metrics().All() {
				kind = max(kind, look(metric.Name()))
			}
		}
	}
	return kind
}

func look(name string) Kind {
	switch name {
	case "vllm.diagnosis.severity", "vllm.pool.diagnosis.severity":
		return Diagnosed
	case "vllm_diagnosis_severity", "vllm_pool_diagnosis_severity":
		return Translated
	}
	if strings.HasPrefix(name, "vllm.") || strings.HasPrefix(name, "vllm:") || strings.HasPrefix(name, "vllm_") {
		return Undiagnosed
	}
	return Foreign
}
