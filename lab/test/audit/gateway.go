package audit

import (
	"slices"
	"strings"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
)

// The rules for inference gateways and for the router of the production stack, implemented
// independently of the receiver (docs/reference/naming.md).

// gatewayPrefix returns the prefix of a gateway's family and its index, which is the
// generation; -1 for other families.
func gatewayPrefix(name string) int {
	return slices.IndexFunc(catalog.Gateway.Prefixes, func(p catalog.GatewayPrefix) bool {
		rest, ok := strings.CutPrefix(name, p.Wire)
		return ok && rest != ""
	})
}

// gatewayLabels renames the labels of a gateway's series to attributes. In the audited
// bodies no two labels become the same attribute.
func gatewayLabels(list []label) []label {
	out := slices.Clone(list)
	for i := range out {
		if attribute, ok := catalog.Gateway.Labels[out[i].name]; ok {
			out[i].name = attribute
		}
	}
	return out
}

// addsUpOver reports whether the series of a gateway's metric are added up over the labels
// with unlimited values.
func addsUpOver(f *family, kind catalog.Kind, name string) bool {
	if gatewayPrefix(f.name) < 0 {
		return false
	}
	return kind == catalog.KindSum || kind == catalog.KindHistogram ||
		kind == catalog.KindGauge && slices.Contains(catalog.Gateway.AdditiveGauges, name)
}

// plus adds a series to a point of the same buckets.
func (p *point) plus(other *point) {
	p.lines = append(p.lines, other.lines...)
	p.exemplars = append(p.exemplars, other.exemplars...)
	p.value += other.value
	p.count += other.count
	p.sum = sumOf(p.sum, other.sum)
	buckets := slices.Clone(p.buckets)
	for i := range buckets {
		buckets[i].sample = sumOf(buckets[i].sample, other.buckets[i].sample)
	}
	p.buckets = buckets
}

func sumOf(a, b *sample) *sample {
	if a == nil || b == nil {
		return nil
	}
	return &sample{value: a.value + b.value}
}

// isRouters reports whether a body is the router's: it has a family of the router, or a
// vLLM gauge by server and no series by model or engine.
func isRouters(fs *families) bool {
	byServer, byModel := false, false
	for _, f := range fs.list {
		name := plainName(f.name)
		if slices.Contains(catalog.Router.Families, name) {
			return true
		}
		if !strings.HasPrefix(name, "vllm:") {
			continue
		}
		without := func(s *series) bool { return get(s.labels, catalog.Router.Label) == "" }
		byServer = byServer || f.kind == "gauge" && len(catalogued[name]) > 0 && !slices.ContainsFunc(f.series, without)
		byModel = byModel || slices.ContainsFunc(f.series, func(s *series) bool {
			return get(s.labels, "model_name")+get(s.labels, "engine") != ""
		})
	}
	return byServer && !byModel
}

// routers returns the name and unit of a family of the router.
func routers(f *family) (name, unit string, ok bool) {
	for _, prefix := range catalog.Router.Prefixes {
		if rest, found := strings.CutPrefix(plainName(f.name), prefix); found {
			name, unit = mechanical(&family{name: "vllm:" + rest, kind: f.kind, unit: f.unit})
			name = catalog.Router.Name + strings.TrimPrefix(name, "vllm.")
			if known, ok := catalog.ByName(name); ok {
				unit = known.Unit
			}
			return name, unit, true
		}
	}
	return "", "", false
}
