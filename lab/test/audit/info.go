package audit

import (
	"math"
	"strconv"
	"strings"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
)

// infoFamily returns the catalogue's entry of an info family; nil for all others. The TYPE
// line decides, not the name.
func infoFamily(f *family) *catalog.InfoFamily {
	switch f.kind {
	case "gauge", "info", "unknown", "untyped":
	default:
		return nil
	}
	for i := range catalog.InfoFamilies {
		if catalog.InfoFamilies[i].Family == plainName(f.name) {
			return &catalog.InfoFamilies[i]
		}
	}
	return nil
}

// info returns what is expected of the labels. If the family keeps older label sets, only
// the newest is used.
func (e *expectation) info(info *catalog.InfoFamily, f *family, now float64) {
	all := f.series
	last := newest(f, now)
	if len(info.Lists) > 0 && last != nil {
		all = []*series{last}
	}
	for _, n := range info.Numbers {
		var points []*point
		seen := map[string]bool{}
		for _, s := range all {
			if _, err := strconv.ParseFloat(get(s.labels, n.Unless), 64); err == nil {
				continue
			}
			value, err := strconv.ParseFloat(get(s.labels, n.Label), 64)
			if err != nil || math.IsNaN(value) || math.IsInf(value, 0) {
				continue
			}
			attributes := e.process(s.labels)
			if engine := get(s.labels, "engine"); engine != "" {
				attributes = append(attributes, label{"engine", engine})
			}
			if key := labelKey(attributes); !seen[key] {
				seen[key] = true
				points = append(points, &point{attributes: attributes, key: key, value: value})
			}
		}
		e.fromLabels(n.Metric, f, points)
	}
	for _, l := range info.Lists {
		if last == nil {
			break
		}
		var points []*point
		seen := map[string]bool{}
		for item := range strings.SplitSeq(get(last.labels, l.Label), ",") {
			if item = strings.TrimSpace(item); item != "" && !seen[item] {
				seen[item] = true
				attributes := append(e.process(last.labels), label{l.Attribute, item})
				points = append(points, &point{attributes: attributes, key: labelKey(attributes), value: 1})
			}
		}
		e.fromLabels(l.Metric, f, points)
	}
	for _, r := range info.Resource {
		if strings.HasPrefix(r.Attribute, "vllm.cache_config.") {
			continue // off by default
		}
		value := get(f.series[0].labels, r.Label)
		for _, s := range f.series {
			if get(s.labels, r.Label) != value {
				value = ""
			}
		}
		if value != "" && value != "None" {
			e.resource = append(e.resource, label{r.Attribute, value})
		}
	}
}

// process returns the label that distinguishes the servers behind a Ray agent. The audited
// bodies have one worker for each replica.
func (e *expectation) process(labels []label) []label {
	if !e.ray {
		return nil
	}
	for _, name := range []string{"ReplicaId", "WorkerId"} {
		if value := get(labels, name); value != "" {
			return []label{{name, value}}
		}
	}
	return nil
}

func (e *expectation) fromLabels(name string, f *family, points []*point) {
	m, ok := catalog.ByName(name)
	if ok && m.In(catalog.Standard) && len(points) > 0 {
		e.metrics = append(e.metrics, &metric{name: m.Name, unit: m.Unit, kind: m.Kind, wire: f.name, points: points})
	}
}

// newest returns the label set that was written last. Its value is that time, or, behind
// several API servers, the sum of their times. It is nil if the family's type has no value.
func newest(f *family, now float64) *series {
	var best *series
	at := math.Inf(-1)
	for _, s := range f.series {
		if s.value == nil {
			continue
		}
		written := s.value.value / max(1, math.Round(s.value.value/now))
		if written >= at {
			best, at = s, written
		}
	}
	return best
}
