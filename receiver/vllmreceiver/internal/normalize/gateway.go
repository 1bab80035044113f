package normalize

import (
	"math"
	"slices"
	"strings"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/exposition"
)

// gatewayPrefix returns the prefix of a gateway's generation that a family's name has.
func gatewayPrefix(family string) (*catalog.GatewayPrefix, bool) {
	i := generation(family)
	if i < 0 || len(family) == len(catalog.Gateway.Prefixes[i].Wire) {
		return nil, false
	}
	return &catalog.Gateway.Prefixes[i], true
}

// generation returns the number of the generation of a family; newer ones are higher.
func generation(family string) int {
	return slices.IndexFunc(catalog.Gateway.Prefixes, func(p catalog.GatewayPrefix) bool { return strings.HasPrefix(family, p.Wire) })
}

// foreignPrefix is the namespace of families in a gateway's body that have no known
// prefix: those of a plug-in.
const foreignPrefix = "inference_gateway.epp."

// isGateway reports whether the rules for gateways apply to a family: by its name, or
// because it is in the body of a gateway and not a family that every program has.
func (b *builder) isGateway(family *exposition.Family, key string) bool {
	if _, ok := gatewayPrefix(family.Name); ok {
		return true
	}
	return b.plan.Server == KindGateway && !b.namespaced && !offByPrefix(family.Name) &&
		!strings.HasPrefix(key, "vllm:") && len(catalog.BySource(key)) == 0 && catalog.OtherProgram(family.Name) == ""
}

// gatewayKey returns the name of an unknown family of a gateway, with its unit and
// "_total". It is the same for all generations.
func gatewayKey(family *exposition.Family) string {
	p, ok := gatewayPrefix(family.Name)
	if !ok {
		return foreignPrefix + family.Name
	}
	return p.Name + family.Name[len(p.Wire):]
}

// newestOnly drops an unknown family of a gateway if the body also has it in a newer
// generation: newer pickers also write the older names.
func (b *builder) newestOnly(claims []*claim) []*claim {
	newest := map[string]*claim{}
	for _, c := range claims {
		if !c.gateway {
			continue
		}
		if held := newest[c.key]; held == nil || generation(c.family.Name) > generation(held.family.Name) {
			newest[c.key] = c
		}
	}
	return slices.DeleteFunc(claims, func(c *claim) bool {
		if !c.gateway || newest[c.key] == c {
			return false
		}
		b.drop(ReasonAlias, c.family)
		return true
	})
}

// plainHelp removes the remarks about stability and deprecation at the beginning of a
// picker's description.
func plainHelp(help string) string {
	for strings.HasPrefix(help, "[") {
		_, rest, ok := strings.Cut(help, "]")
		if !ok {
			break
		}
		help = strings.TrimLeft(rest, " ")
	}
	if rest, ok := strings.CutPrefix(help, "Deprecated: "); ok {
		if _, after, ok := strings.Cut(rest, ". "); ok {
			help = after
		}
	}
	return help
}

// attributeIn returns the attribute that a label of a gateway becomes; empty if it is dropped. If
// another label of the series has or becomes the same attribute, the label keeps its name.
func attributeIn(table map[string]string, labels []exposition.Label, i int) string {
	attribute, ok := table[labels[i].Name]
	switch {
	case !ok:
		return labels[i].Name
	case attribute == "":
		return ""
	}
	for j := range labels {
		other := labels[j].Name
		if other == attribute || j < i && table[other] == attribute {
			return labels[i].Name
		}
	}
	return attribute
}

// aggregated returns the attributes of a series without the labels over which the
// metric is added up.
func (b *builder) aggregated(m *Metric, labels []exposition.Label) []exposition.Label {
	if b.options.KeepFairness {
		return labels
	}
	switch m.Kind {
	case catalog.KindGauge:
		if !slices.Contains(catalog.Gateway.AdditiveGauges, m.Name) {
			return labels
		}
	case catalog.KindSummary:
		// Quantiles do not add up.
		return labels
	}
	isAggregated := func(l exposition.Label) bool { return slices.Contains(catalog.Gateway.AggregatedLabels, l.Name) }
	if !slices.ContainsFunc(labels, isAggregated) {
		return labels
	}
	return slices.DeleteFunc(slices.Clone(labels), isAggregated)
}

// join adds a series to a point. The point keeps only the buckets that all of its series
// have.
func join(kind catalog.Kind, point *Point, series exposition.Series) {
	if kind == catalog.KindHistogram {
		bounds := point.Bounds
		if bounds == nil {
			bounds = finiteBounds(&point.Parts[0])
		}
		if own := finiteBounds(&series); !slices.Equal(own, bounds) {
			point.Bounds = slices.DeleteFunc(slices.Clone(bounds), func(bound float64) bool { return !slices.Contains(own, bound) })
		}
	}
	point.Parts = append(point.Parts, series)
}

func finiteBounds(s *exposition.Series) []float64 {
	bounds := make([]float64, 0, len(s.Buckets))
	for _, bucket := range s.Buckets {
		if !math.IsInf(bucket.UpperBound, 1) {
			bounds = append(bounds, bucket.UpperBound)
		}
	}
	return bounds
}
