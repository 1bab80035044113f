package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
)

// noSource are attributes of the catalogue that no release of vLLM has, with the reason why they
// stay: a release of this project has promised them.
var noSource = map[string]string{
	"vllm.simple_kv_offload.load_blocks phase": "builds of vLLM between two releases had it",
}

// elsewhere begins the families that vLLM defines with names from another package, kvcr. So
// families.py cannot know them.
const elsewhere = "vllm:kvcr_"

// compare returns one sentence for each thing in which the catalogue differs from the source.
func compare(t *table) (findings []string) {
	say := func(format string, args ...any) { findings = append(findings, fmt.Sprintf(format, args...)) }
	for _, name := range t.names() {
		f := t.families[name]
		info := slices.ContainsFunc(catalog.InfoFamilies, func(i catalog.InfoFamily) bool { return i.Family == name })
		matches := catalog.BySource(name)
		if len(matches) == 0 && !info {
			say("%s is unknown to the catalogue: a %s by %s, from vLLM %s on", name, strings.Join(f.types, " or "), strings.Join(f.labels, ", "), f.first)
			continue
		}
		if info {
			continue // It has no value of its own, and its labels came in different releases.
		}
		if kinds := kinds(matches); !slices.Equal(f.types, kinds) {
			say("%s is a %s in the source, and a %s in the catalogue", name, strings.Join(f.types, " or "), strings.Join(kinds, " or "))
		}
		for _, label := range f.labels {
			if lacks := func(m catalog.Match) bool { return !slices.Contains(m.Metric.Attributes, label) }; label != "?" && slices.ContainsFunc(matches, lacks) {
				say("%s has the label %s in the source, and not in the catalogue", name, label)
			}
		}
		for _, release := range t.releases {
			if says := covered(matches, release); says != f.found(release) {
				say("%s is in the source from vLLM %s to %s, and the catalogue says of %s: %t", name, f.first, f.last, release, says)
				break
			}
		}
	}
	for i := range catalog.All() {
		metric := &catalog.All()[i]
		if len(metric.Sources) == 0 {
			continue
		}
		for _, attribute := range metric.Attributes {
			if !t.hasLabel(metric, attribute) && noSource[metric.Name+" "+attribute] == "" {
				say("%s has the attribute %s, which its families do not have in the source", metric.Name, attribute)
			}
		}
		for _, source := range metric.Sources {
			if strings.HasPrefix(source.Family, elsewhere) {
				continue
			}
			for _, release := range t.releases {
				// Without a version it can be a family of a vendor, or of a build between two releases.
				if t.families[source.Family] == nil && strings.HasPrefix(source.Family, "vllm:") && source.Since != "" && within(&source, release) {
					say("%s is not in the source of vLLM %s, and the catalogue says since %s", source.Family, release, source.Since)
					break
				}
			}
		}
	}
	return findings
}

// hasLabel reports whether a family of the metric has the label, or whether that is not known.
func (t *table) hasLabel(metric *catalog.Metric, label string) bool {
	return slices.ContainsFunc(metric.Sources, func(s catalog.Source) bool {
		f := t.families[s.Family]
		return f == nil || s.Label != "" || slices.Contains(f.labels, label) || slices.Contains(f.labels, "?")
	})
}

// kinds are the types that the catalogue expects of a family.
func kinds(matches []catalog.Match) (kinds []string) {
	for _, m := range matches {
		kind := m.Metric.Kind.String()
		if m.Metric.Kind == catalog.KindSum {
			kind = "counter"
		}
		kinds = union(kinds, []string{kind})
	}
	return kinds
}

// covered reports whether the catalogue expects a family of the release.
func covered(matches []catalog.Match, release string) bool {
	return slices.ContainsFunc(matches, func(m catalog.Match) bool { return within(m.Source, release) })
}

func within(source *catalog.Source, release string) bool {
	v, _ := catalog.ParseRelease(release)
	return v.Within(source.Since, source.Until)
}
