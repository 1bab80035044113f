package defects

import (
	"bytes"
	"fmt"
	"math"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// sample is one line of /metrics.
type sample struct {
	labels map[string]string
	value  float64
}

// Shown is what /metrics showed at one moment: the samples by name. A histogram has the
// names with _count and _sum.
type Shown map[string][]sample

// Read reads the body of /metrics. It has its own parser of lines, so that a fault of our
// receiver cannot hide a defect of vLLM.
func Read(body []byte) (Shown, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("/metrics cannot be read: %w", err)
	}
	shown := Shown{}
	for name, family := range families {
		for _, m := range family.Metric {
			labels := map[string]string{}
			for _, pair := range m.Label {
				labels[pair.GetName()] = pair.GetValue()
			}
			add := func(name string, value float64) {
				shown[name] = append(shown[name], sample{labels, value})
			}
			switch family.GetType() {
			case dto.MetricType_COUNTER:
				add(name, m.Counter.GetValue())
			case dto.MetricType_GAUGE:
				add(name, m.Gauge.GetValue())
			case dto.MetricType_HISTOGRAM:
				add(name+"_count", float64(m.Histogram.GetSampleCount()))
				add(name+"_sum", m.Histogram.GetSampleSum())
			default:
				add(name, m.Untyped.GetValue())
			}
		}
	}
	return shown, nil
}

// sum adds up the samples of a name that have a label's value; all of them without a label.
func (s Shown) sum(name string, label ...string) float64 {
	total := 0.0
	for _, one := range s[name] {
		if len(label) == 0 || one.labels[label[0]] == label[1] {
			total += one.value
		}
	}
	return total
}

// values are the different values of a label.
func (s Shown) values(name, label string) map[string]int {
	out := map[string]int{}
	for _, one := range s[name] {
		out[one.labels[label]]++
	}
	return out
}

// newest is the sample with the largest value, for gauges whose value is their time.
func (s Shown) newest(name string) sample {
	out := sample{value: math.Inf(-1)}
	for _, one := range s[name] {
		if one.value > out.value {
			out = one
		}
	}
	return out
}
