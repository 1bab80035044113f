package judge

import (
	"cmp"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// report is the diagnosis of a server, an engine or a pool at one time.
type report struct {
	// severity is -1 if nothing was reported.
	severity  int
	condition string
	// causes are the primary one first, then those that contribute, then notices, each with
	// the largest share of the harm first; equal ones in the order of their names.
	causes []Cause
}

const (
	serverPrefix = "vllm.diagnosis."
	poolPrefix   = "vllm.pool.diagnosis."
)

// causeOf is a cause of an engine.
type causeOf struct{ engine, cause string }

// readReport reads the diagnosis from the processor's output, of metrics with the prefix:
// that of the worst engine, of equally bad ones of the first.
func readReport(metrics pmetric.Metrics, prefix string) report {
	engines := map[string]*report{}
	shares := map[causeOf]float64{}
	var names []string
	for _, rm := range metrics.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				name, is := strings.CutPrefix(m.Name(), prefix)
				if !is || m.Type() != pmetric.MetricTypeGauge {
					continue
				}
				for _, p := range m.Gauge().DataPoints().All() {
					if p.Flags().NoRecordedValue() {
						continue
					}
					engine := text(p.Attributes(), "engine")
					if engines[engine] == nil {
						engines[engine] = &report{severity: -1}
						names = append(names, engine)
					}
					if name == "cause_share" {
						shares[causeOf{engine, text(p.Attributes(), "cause")}] = p.DoubleValue()
						continue
					}
					engines[engine].add(name, p)
				}
			}
		}
	}
	// Engines are numbers: shorter ones come first.
	slices.SortFunc(names, func(a, b string) int {
		if len(a) != len(b) {
			return len(a) - len(b)
		}
		return strings.Compare(a, b)
	})
	worst := report{severity: -1}
	for i, name := range names {
		if r := engines[name]; i == 0 || r.severity > worst.severity {
			worst = *r
			for i := range worst.causes {
				one := &worst.causes[i]
				one.Share = shares[causeOf{name, one.Name}]
			}
		}
	}
	rank := map[string]int{"primary": 0, "contributing": 1, "notice": 2}
	slices.SortStableFunc(worst.causes, func(a, b Cause) int {
		if d := rank[a.Role] - rank[b.Role]; d != 0 {
			return d
		}
		return cmp.Or(cmp.Compare(b.Share, a.Share), strings.Compare(a.Name, b.Name))
	})
	return worst
}

func (r *report) add(name string, p pmetric.NumberDataPoint) {
	v := p.DoubleValue()
	if p.ValueType() == pmetric.NumberDataPointValueTypeInt {
		v = float64(p.IntValue())
	}
	switch name {
	case "severity":
		r.severity = int(v)
	case "condition":
		if v == 1 {
			r.condition = text(p.Attributes(), "condition")
		}
	case "cause":
		if v == 1 {
			r.causes = append(r.causes, Cause{
				Name: text(p.Attributes(), "cause"), Role: text(p.Attributes(), "role"), Detail: text(p.Attributes(), "detail"),
			})
		}
	}
}

func text(attributes pcommon.Map, name string) string {
	v, ok := attributes.Get(name)
	if !ok {
		return ""
	}
	return v.AsString()
}

// primary is the name of the primary cause; empty without one.
func (r *report) primary() string {
	if len(r.causes) > 0 && r.causes[0].Role == "primary" {
		return r.causes[0].Name
	}
	return ""
}
