package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
)

// judgeMetrics judges which metrics there are and will be.
func judgeMetrics(f *findings, s *Seen, t *Target) {
	h := newHave(s)
	r := h.reading
	for _, n := range h.emitted {
		t.Series += n
	}
	if t.Kind == "vllm" || t.Kind == "simulator" {
		t.Missing = h.missing()
		judgeMissing(f, t.Missing, versionOf(r))
	}
	if latencies := []string{"vllm.time_to_first_token", "vllm.inter_token_latency"}; hasEngine(r) && (r.Kind == "" || r.Kind == "simulator") && !slices.ContainsFunc(latencies, h.comes) {
		f.add(CodeNotJudged, fmt.Sprintf("The server lacks %s, so the condition of its engines is unknown (%d series).", strings.Join(latencies, " and "), t.Series))
	}
	judgeOld(f, t, versionOf(r))
	if len(r.Unknown) > 0 && t.Kind != "unknown" {
		f.add(CodeUnknownFamily, fmt.Sprintf("The catalogue does not know %d families.", len(r.Unknown)), r.Unknown...)
	}
	judgeLimits(f, s, t)
	judgeTraffic(f, s, t)
	if s.Processor == nil || t.Kind != "vllm" {
		f.pass(Metrics, "%d series", t.Series)
		return
	}
	for name, n := range s.Processed {
		if m, ok := catalog.ByName(name); ok && isOn(m, s.Processor) {
			t.Added += n
		}
	}
	t.Derived = derived(h, s.Processor, s.Processed, t.Missing)
	states := map[string]int{}
	var details []string
	for _, d := range t.Derived {
		states[d.State]++
		if d.State == stateMissing || d.State == stateFeature {
			details = append(details, d.Name+" "+d.Why)
		}
	}
	if len(details) > 0 {
		f.add(CodeDerived, fmt.Sprintf("%d of %d derived metrics will not exist.", len(details), len(t.Derived)), details...)
	}
	f.pass(Metrics, "%d series (a histogram counts as one); the processor adds %d series, for %d derived metrics; %d more metrics need traffic, and %d a setting",
		t.Series, t.Added, states[stateExists], states[stateIdle], states[stateSetting])
}

// judgeOld reports a version that lacks metrics of the diagnosis. The refusals are not among them:
// no server has a limit of its queue by default, so most lose nothing. Nor is the capacity, which few rules read,
// nor what exists with a flag only.
func judgeOld(f *findings, t *Target, version string) {
	diagnosis, ok := catalog.ByName("vllm.diagnosis.condition")
	if !ok || t.Kind != "vllm" {
		return
	}
	var lacks []string
	for _, m := range t.Missing {
		metric, known := catalog.ByName(m.Name)
		if !known || m.Reason != reasonVersion || m.Name == "vllm.admission_rejections" || m.Name == "vllm.kv_cache.capacity" {
			continue
		}
		_, needs := catalog.RequirementOf(metric.Sources[len(metric.Sources)-1].Family)
		if !needs && slices.Contains(diagnosis.DerivedFrom, m.Name) {
			lacks = append(lacks, m.Name+": "+m.Why)
		}
	}
	if len(lacks) > 0 {
		f.add(CodeVersionOld, fmt.Sprintf("vLLM %s lacks %d metrics that the diagnosis uses.", version, len(lacks)), lacks...)
	}
}

func judgeLimits(f *findings, s *Seen, t *Target) {
	r := s.newest()
	limit := s.ReceiverConfig.Limits.Series
	switch dropped := r.Dropped["series_limit"]; {
	case dropped > 0:
		f.add(CodeSeriesLimit, fmt.Sprintf("The target has %d series more than limits::series (%d).", dropped, limit))
	case float64(t.Series) > shareOfSeries*float64(limit):
		f.add(CodeSeriesNear, fmt.Sprintf("The target has %d series, and limits::series is %d.", t.Series, limit))
	}
	if n := r.Dropped["adapter_limit"]; n > 0 {
		f.add(CodeAdapters, fmt.Sprintf("%d LoRA adapters exceed limits::adapters (%d).", n, s.ReceiverConfig.Limits.Adapters))
	}
}

// judgeTraffic reports whether requests moved counters between the scrapes.
func judgeTraffic(f *findings, s *Seen, t *Target) {
	if s.Second == nil || s.Second.Outcome != "ok" || t.Kind == "unknown" || f.has(CodeReplicas, CodeRestarted, CodeFell) {
		return
	}
	names := moved(s.First.Emitted, s.Second.Emitted)
	if len(names) == 0 {
		f.add(CodeNoTraffic, fmt.Sprintf("No counter moved within %s.", rounded(s.Second.At.Sub(s.First.At))))
		return
	}
	f.pass(Metrics, "%d counters moved between the two scrapes", len(names))
}

// short is the name of a metric without its namespace.
func short(name string) string { return strings.TrimPrefix(name, "vllm.") }
