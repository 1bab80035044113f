package check

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/probe"
)

// The reasons why a metric is missing.
const (
	reasonVersion    = "version"
	reasonRemoved    = "removed"
	reasonFlag       = "flag"
	reasonRole       = "role"
	reasonIdle       = "idle"
	reasonUnreleased = "unreleased"
	reasonOff        = "off"
	reasonType       = "type"
	reasonLimit      = "limit"
	reasonRecent     = "recent"
	reasonUnknown    = "unknown"
)

// have are the metrics of a server.
type have struct {
	reading  *probe.Reading
	emitted  map[string]int
	declared map[string]bool
	release  catalog.Release
	// known is true where the version is that of a release.
	known bool
	// untouched is true where no request has moved a counter yet.
	untouched bool
	// off has the metrics that are off, by default or by the configuration.
	off map[string]bool
}

func newHave(s *Seen) *have {
	r := s.newest()
	h := &have{reading: r, emitted: series(r.Emitted), declared: map[string]bool{}, off: map[string]bool{}}
	for _, x := range r.Families {
		h.declared[x.Source] = true
	}
	h.release, h.known = catalog.ParseRelease(r.Version)
	h.known = h.known && r.Server.Released()
	h.untouched = true
	for _, p := range cumulative(r.Emitted) {
		h.untouched = h.untouched && p.value == 0
	}
	for i := range catalog.All() {
		m := &catalog.All()[i]
		chosen := s.ReceiverConfig.Metrics[m.Name].Enabled
		h.off[m.Name] = chosen != nil && !*chosen || chosen == nil && (!m.Feeds(s.ReceiverConfig.Preset) || h.replacedByLabel(m.Name))
	}
	return h
}

// metric reports whether the receiver emits a metric.
func (h *have) metric(name string) bool { return h.emitted[name] > 0 }

// comes reports whether the receiver emits a metric, or would with a first request or a higher limit.
func (h *have) comes(name string) bool {
	if h.metric(name) || h.reading.Kind != "" || isImitator(h.reading) {
		return h.metric(name)
	}
	m, known := catalog.ByName(name)
	return known && slices.Contains([]string{reasonIdle, reasonLimit}, h.why(m).Reason)
}

// missing returns the metrics of vLLM that the server does not have, with the reasons.
func (h *have) missing() []Missing {
	var out []Missing
	for i := range catalog.All() {
		m := &catalog.All()[i]
		ours := strings.HasPrefix(m.Name, "vllm.") || strings.HasPrefix(m.Name, "http_")
		if m.EmittedBy != "receiver" || len(m.Sources) == 0 || !ours || h.metric(m.Name) {
			continue
		}
		out = append(out, h.why(m))
	}
	return out
}

// why returns the reason why a metric is not there.
func (h *have) why(m *catalog.Metric) Missing {
	newest := &m.Sources[len(m.Sources)-1]
	out := Missing{Name: m.Name, Family: newest.Family}
	out.Reason, out.Why = h.reason(m, newest)
	return out
}

func (h *have) reason(m *catalog.Metric, newest *catalog.Source) (reason, why string) {
	oldest, now := h.spans(m)
	requirement, needs := catalog.RequirementOf(newest.Family)
	isSource := func(name string) bool {
		return slices.ContainsFunc(m.Sources, func(x catalog.Source) bool { return x.Family == name })
	}
	declared := slices.ContainsFunc(m.Sources, func(x catalog.Source) bool { return h.declared[x.Family] && h.feeds(&x) })
	_, label := labelled(newest)
	switch {
	case h.off[m.Name]:
		return reasonOff, "it is off; `metrics` of the receiver switches it on"
	case h.reading.Kind != "":
		return reasonRole, "a " + strings.ReplaceAll(h.reading.Kind, "_", " ") + " does not have it"
	case isImitator(h.reading):
		return reasonRole, "this program imitates vLLM and does not have it"
	case slices.ContainsFunc(h.reading.Families, func(x probe.Family) bool {
		return isSource(x.Source) && slices.Contains(h.reading.Conflicts, x.Name)
	}):
		return reasonType, "its family has another type than vLLM gives it"
	case declared && h.reading.Dropped["series_limit"] > 0:
		return reasonLimit, "its series are more than limits::series"
	case h.unused(m.Name) && !needs:
		return reasonFlag, "it is 0 and not emitted while the server does not use it"
	case declared && !label:
		return reasonIdle, "it has no series yet; it appears with its first request"
	case h.known && !now && oldest:
		return reasonRemoved, "removed in vLLM " + newest.Until
	case h.known && !now && newest.Since != "":
		return reasonVersion, "since vLLM " + firstSince(m)
	case newest.Until != "" && !h.known:
		return reasonRemoved, "removed in vLLM " + newest.Until
	case needs:
		return reasonFlag, "only with " + requirement.Words
	case h.known && h.maybe(m):
		return reasonRecent, "since about vLLM " + firstSince(m)
	case !h.known && h.newer(m):
		return reasonRecent, "since vLLM " + firstSince(m) + ", and the version of the server is not known"
	case firstSince(m) == "":
		return reasonUnreleased, "only vendor builds or versions of vLLM newer than this program expose it"
	case strings.HasPrefix(m.Name, "http_") && isRay(h.reading):
		return reasonRole, "the agent of Ray does not have it"
	case h.untouched && !label:
		return reasonIdle, "some servers show a metric only after its first value"
	case h.reading.Server.Engine == "rust":
		return reasonRole, "the Rust front end does not have it"
	case isRay(h.reading):
		return reasonIdle, "a Ray agent shows a metric only after its first value"
	case h.isV0():
		return reasonRole, "the V0 engine does not have it"
	case label:
		return reasonVersion, "the information of the cache configuration does not have it"
	}
	if !h.known {
		return reasonUnknown, "servers with the other metrics of this one have it; the reason is unknown"
	}
	return reasonUnknown, "servers of this version have it; the reason is unknown"
}

// unused reports whether the receiver leaves a metric out because it is 0 while the server does not use it.
func (h *have) unused(name string) bool {
	m, known := catalog.ByName(name)
	return known && m.HideZero != "" && !h.metric(name) &&
		slices.ContainsFunc(m.Sources, func(x catalog.Source) bool { return h.declared[x.Family] })
}

// replacedByLabel reports whether the receiver leaves a number out because another label of its family says it better.
func (h *have) replacedByLabel(name string) bool {
	for _, f := range catalog.InfoFamilies {
		for _, n := range f.Numbers {
			if n.Metric == name && n.Unless != "" {
				return slices.ContainsFunc(f.Numbers, func(other catalog.InfoNumber) bool { return other.Label == n.Unless && h.metric(other.Metric) })
			}
		}
	}
	return false
}

// feeds reports whether a server of this version feeds a metric from a source. Some families
// changed their meaning, and feed another metric since.
func (h *have) feeds(x *catalog.Source) bool {
	return !x.Version || !h.known || h.release.Within(x.Since, x.Until)
}

// spans reports whether the version of the server is after the last version of a metric, and
// whether it is one that has the metric.
func (h *have) spans(m *catalog.Metric) (after, now bool) {
	after = true
	for _, x := range m.Sources {
		now = now || h.release.Within(x.Since, x.Until)
		until, ends := catalog.ParseRelease(x.Until)
		after = after && ends && h.release.Compare(until) >= 0
	}
	return after, now
}

// maybe reports whether a metric is so new that the server may not have it. Many versions in
// the catalogue follow from the date of a change, and can be off by one minor release.
func (h *have) maybe(m *catalog.Metric) bool {
	since, ok := catalog.ParseRelease(firstSince(m))
	return ok && h.release[0] == since[0] && h.release[1]-since[1] <= 1
}

// newer reports whether a metric is newer than all that a server of unknown version shows.
func (h *have) newer(m *catalog.Metric) bool {
	since, ok := catalog.ParseRelease(firstSince(m))
	return ok && since.Compare(h.reading.Server.Least()) > 0
}

// labelled reports whether a metric is read from a label of an info family.
func labelled(x *catalog.Source) (label string, is bool) { return x.Label, x.Label != "" }

// firstSince is the first version with a metric; empty where it is not known.
func firstSince(m *catalog.Metric) string {
	for _, x := range m.Sources {
		if x.Since != "" {
			return x.Since
		}
	}
	return ""
}

// isV0 reports whether the engine is the first one. Its last versions have no family that V1
// has not; it lacks the prefix cache.
func (h *have) isV0() bool {
	first, _ := catalog.ParseRelease("0.11.0")
	return h.reading.Server.Engine == "v0" || h.reading.Server.Engine == "" && h.known && h.release.Compare(first) < 0
}

// missingCodes are the codes of the reasons. A reason without one is not a finding.
var missingCodes = []struct {
	code, what string
	reasons    []string
}{
	{CodeMissingAge, "%d metrics are newer than this version of vLLM, or were removed before it.", []string{reasonVersion, reasonRecent, reasonRemoved}},
	{CodeMissingFlag, "%d metrics need a flag or a feature that is not in use.", []string{reasonFlag}},
	{CodeMissingRole, "%d metrics do not exist on this kind of server.", []string{reasonRole}},
	{CodeMissingIdle, "%d metrics have no series yet.", []string{reasonIdle}},
}

// namesInLine is how many metrics one line of details names.
const namesInLine = 8

// judgeMissing reports the missing families by reason.
func judgeMissing(f *findings, missing []Missing, version string) {
	for _, c := range missingCodes {
		n, byWhy := 0, map[string][]string{}
		for _, m := range missing {
			if slices.Contains(c.reasons, m.Reason) {
				n++
				byWhy[m.Why] = append(byWhy[m.Why], m.Name)
			}
		}
		if n == 0 {
			continue
		}
		var details []string
		for _, why := range slices.Sorted(maps.Keys(byWhy)) {
			for names := range slices.Chunk(byWhy[why], namesInLine) {
				details = append(details, why+": "+strings.Join(names, ", "))
			}
		}
		f.add(c.code, fmt.Sprintf(c.what, n), details...)
	}
	var unexplained []string
	for _, m := range missing {
		if m.Reason == reasonUnknown && isInput(m.Name) && strings.HasPrefix(m.Name, "vllm.") {
			unexplained = append(unexplained, m.Name)
		}
	}
	if len(unexplained) > 0 {
		f.add(CodeMissing, fmt.Sprintf("%d metrics are missing that vLLM %s should have, and derived metrics need them.", len(unexplained), version), unexplained...)
	}
}

// isInput reports whether a derived metric that is on by default needs a metric.
func isInput(name string) bool {
	return slices.ContainsFunc(catalog.All(), func(m catalog.Metric) bool {
		return m.In(catalog.Standard) && m.Derived() && slices.Contains(m.DerivedFrom, name)
	})
}
