package querylint

import (
	"maps"
	"slices"
	"strings"

	"github.com/prometheus/prometheus/promql/parser"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
)

// class says what may be done with values of several servers.
type class uint8

const (
	classUnknown  class = iota
	classPlain          // Can be added up.
	classFraction       // Between 0 and 1.
	classRatio          // A quotient without limit.
	classMean
	classQuantile
	classBurn
	classState // 0 or 1.
	classLevel // 0 to 3.
)

// judged reports whether adding up or averaging over servers is wrong.
func (k class) judged() bool {
	return k == classFraction || k == classRatio || k == classMean || k == classQuantile || k == classBurn
}

func (k class) String() string {
	return [...]string{"value", "value", "ratio", "ratio", "mean", "quantile", "burn rate", "state", "level"}[k]
}

// typ is what the values are.
type typ uint8

const (
	typUnknown typ = iota
	typGauge
	typCounter // Not yet a rate.
	typRate    // A rate or an increase.
)

// shape is what is known about the values of an expression.
type shape struct {
	typ    typ
	class  class
	unit   unit
	labels labelSet
	// ident are the labels that identify a series; nil if not known. Labels with a fixed
	// value are in fixed instead.
	ident, fixed map[string]bool
	// metrics are the names of the metrics in the expression.
	metrics map[string]bool
	// metric is the one that a selector selects.
	metric *catalog.Metric
	// bucket is true for buckets of a histogram that still have le.
	bucket bool
	// leLost is true for buckets of which an aggregation removed le; bounds is the unit of
	// the bounds.
	leLost bool
	bounds unit
	// native is true for native histograms.
	native bool
	// raw is the selector of a counter whose value is used without rate.
	raw parser.Node
	// scalar is true for numbers; literal is the number if it is known.
	scalar  bool
	literal *float64
	// filter is a comparison without bool.
	filter *parser.BinaryExpr
	// limit is the largest finite bound and lowest the smallest one, for quantiles.
	limit, lowest float64
	// stamp is true for a value that is a time since 1970.
	stamp bool
	// perEngine is an aggregation whose result is that of an engine and not of a server.
	perEngine parser.Node
	// each is true for the _sum of what has a meaning for one request only, as a time has.
	each bool
	// sum is the rate of such a _sum that is not divided by anything yet.
	sum parser.Node
	// absent is true for the result of absent.
	absent bool
}

func unknownShape() shape { return shape{} }

// forget removes what concerns nodes of an expression that is not at hand.
func (s *shape) forget() {
	s.raw, s.filter, s.perEngine, s.sum = nil, nil, nil, nil
	if s.typ == typCounter {
		s.typ = typUnknown
	}
}

// or returns what is true for either shape.
func (s shape) or(t shape) shape {
	if s.scalar && !t.scalar {
		// vector(0): the other side decides.
		s, t = t, s
	}
	u := s
	if !t.scalar {
		if s.typ != t.typ {
			u.typ = typUnknown
		}
		if s.class != t.class {
			u.class = classUnknown
		}
		if s.unit != t.unit {
			u.unit = unit{}
		}
		u.labels = s.labels.union(t.labels)
		u.ident = unite(s.ident, t.ident)
		u.bucket = s.bucket && t.bucket
		u.metric = nil
		if s.metric == t.metric {
			u.metric = s.metric
		}
		u.absent = s.absent && t.absent
	}
	u.metrics = unite(s.metrics, t.metrics)
	u.filter = nil
	if u.raw == nil {
		u.raw = t.raw
	}
	return u
}

func unite(a, b map[string]bool) map[string]bool {
	if a == nil || b == nil {
		return nil
	}
	u := maps.Clone(a)
	maps.Copy(u, b)
	return u
}

// missing returns the identifying labels that are not among the given ones. The labels of
// a target determine those of its resource.
func (s *shape) missing(labels, deployment map[string]bool) []string {
	var all []string
	for label := range s.ident {
		if !labels[label] && !(labels["instance"] && deployment[label]) {
			all = append(all, label)
		}
	}
	slices.Sort(all)
	return all
}

// lost returns the identifying labels that do not survive where only these labels are kept,
// or where these are removed, in their order.
func (s *shape) lost(labels []string, kept bool, deployment map[string]bool) []string {
	if kept {
		left := map[string]bool{}
		for _, label := range labels {
			left[label] = true
		}
		return s.missing(left, deployment)
	}
	var all []string
	for _, label := range labels {
		if s.ident[label] {
			all = append(all, label)
		}
	}
	return all
}

// classOf returns the class of a metric's values.
func classOf(m *catalog.Metric) class {
	name := m.Name
	switch {
	case m.Kind != catalog.KindGauge:
		return classPlain
	case m.Unit == "{state}":
		return classState
	case m.Unit == "{level}":
		return classLevel
	case strings.Contains(name, "_quantile"):
		return classQuantile
	case strings.Contains(name, "burn_rate"):
		return classBurn
	case strings.HasSuffix(name, "_mean"), strings.Contains(name, "_per_"), strings.HasSuffix(name, "acceptance_length"):
		return classMean
	case strings.HasSuffix(name, ".slo.target"), strings.HasSuffix(name, "threshold"):
		return classPlain
	case m.Unit != "1":
		return classPlain
	}
	for _, part := range []string{"input_output", "imbalance", "signal_ratio", "saturation", "stddev", "budget_remaining"} {
		if strings.Contains(name, part) {
			return classRatio
		}
	}
	return classFraction
}

// parts are metrics that count a part of what another one counts, so that they are 0 when
// the other one is.
var parts = map[string]string{
	"vllm.slo.good":                        "vllm.slo.valid",
	"vllm.slo.undecided":                   "vllm.slo.valid",
	"vllm.spec_decode.num_accepted_tokens": "vllm.spec_decode.num_draft_tokens",
}

// subset reports whether each metric of a counts a part of what a metric of b counts.
func subset(a, b map[string]bool) bool {
	if len(a) == 0 {
		return false
	}
	for name := range a {
		if b[name] || b[parts[name]] {
			continue
		}
		if hits, is := strings.CutSuffix(name, "hits"); is && b[hits+"queries"] {
			continue
		}
		return false
	}
	return true
}
