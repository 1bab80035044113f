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
			say("%s is unknown to the catalogue: a %s by %s, from %s %s on", name, strings.Join(f.types, " or "), strings.Join(f.labels, ", "), t.program, f.first)
			continue
		}
		if info {
			continue // It has no value of its own, and its labels came in different releases.
		}
		if kinds := kinds(matches); !slices.Equal(f.types, kinds) {
			say("%s is a %s in the source, and a %s in the catalogue", name, strings.Join(f.types, " or "), strings.Join(kinds, " or "))
		}
		for _, label := range f.labels {
			if lacks := func(m catalog.Match) bool { return !slices.Contains(m.Metric.Attributes, t.attribute(label)) }; label != "?" && slices.ContainsFunc(matches, lacks) {
				say("%s has the label %s in the source, and not in the catalogue", name, label)
			}
		}
		if t.program == router {
			continue // The catalogue has versions of vLLM only.
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
		if t.program == router {
			findings = append(findings, t.gone(metric)...)
			continue
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
		return f == nil || s.Label != "" || slices.Contains(f.labels, "?") ||
			slices.ContainsFunc(f.labels, func(of string) bool { return t.attribute(of) == label })
	})
}

// attribute is what a label becomes.
func (t *table) attribute(label string) string {
	if to := catalog.Gateway.Labels[label]; t.program == router && to != "" {
		return to
	}
	return label
}

// routersOnly begin the families that only llm-d-router writes. Those of the Gateway API Inference
// Extension, which it wrote beside its own until 0.11, have other releases.
var routersOnly = []string{"kvcache_", "llm_d_", "moriio_dns_"}

// unread are families that single files of llm-d-router had after the newest commit in the table.
// "make router-families" with a newer commit puts them into the table: then they are no longer needed here.
var unread = []string{
	"llm_d_epp_config_active_generation",
	"llm_d_epp_config_last_reload_success_timestamp_seconds",
	"llm_d_epp_config_reload_total",
	"llm_d_epp_disaggregatedset_strict_revision_no_match_total",
	"llm_d_epp_flow_control_detector_saturation",
	"llm_d_epp_prefix_best_available_cached_tokens",
	"llm_d_epp_prefix_best_predicted_cached_tokens",
	"llm_d_epp_prefix_cache_affinity_filter_decisions_total",
	"llm_d_epp_prefix_mm_predicted_cached_tokens",
	"llm_d_epp_prefix_mm_prompt_tokens",
	"llm_d_epp_prefix_predicted_cached_tokens",
	"llm_d_epp_prefix_prompt_tokens",
	"llm_d_epp_tool_calling_field_status_total",
}

// ended are metrics that newer commits no longer have, and the reference says so.
var ended = []string{"inference_gateway.epp.disaggregatedset_strict_header_no_match", "inference_gateway.epp.pd_decision"}

// gone finds what the catalogue has of llm-d-router and its source does not.
func (t *table) gone(metric *catalog.Metric) (findings []string) {
	newest, last := "", t.releases[len(t.releases)-1]
	for _, s := range metric.Sources {
		f := t.families[s.Family]
		ours := slices.ContainsFunc(routersOnly, func(prefix string) bool { return strings.HasPrefix(s.Family, prefix) })
		switch later := slices.Contains(unread, s.Family); {
		case later && f != nil:
			findings = append(findings, s.Family+" is in the source: take it out of the families that were not read")
		case later:
			newest = last
		case ours && f == nil:
			findings = append(findings, s.Family+" is in no source that was read, and the catalogue has it")
		case ours && (newest == "" || older(newest, f.last) < 0):
			newest = f.last
		}
	}
	if newest != "" && newest != last && !slices.Contains(ended, metric.Name) {
		findings = append(findings, fmt.Sprintf("%s has no family in %s %s: the last one was in %s", metric.Name, t.program, last, newest))
	}
	return findings
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
