// Package live checks expressions against what a server or a Prometheus really has: names,
// labels, values and bounds.
package live

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/prometheus/model/labels"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/querylint"
	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
)

// The codes of findings about what is really there.
const (
	CodeNotExposed  querylint.Code = "not-exposed"
	CodeLabelAbsent querylint.Code = "label-absent"
	CodeValueAbsent querylint.Code = "value-absent"
	CodeBoundAbsent querylint.Code = "bound-absent"
)

// Rules describes the codes.
func Rules() []querylint.Rule {
	return []querylint.Rule{
		{
			Code: CodeNotExposed, Finds: "With `--server` or `--prometheus`: no series has this name.",
			Remedy: "The message has the reason if it is known: the version, a setting that is off, or no traffic yet.",
		},
		{
			Code: CodeLabelAbsent, Finds: "With `--server` or `--prometheus`: no series of the metric has this label.",
			Remedy: "Use a label that is there; the message lists them.",
		},
		{
			Code: CodeValueAbsent, Finds: "With `--server` or `--prometheus`: no series of the metric has this value of the label.",
			Remedy: "Correct the value, unless it will come later.",
		},
		{
			Code: CodeBoundAbsent, Finds: "With `--server` or `--prometheus`: no bucket of the histogram has this `le`.",
			Remedy: "Use a stored bound; the message has the nearest ones.",
		},
	}
}

// Metric is what is there of a name.
type Metric struct {
	// Labels are the values of each label. A list is nil if it was not asked for or is longer
	// than what was read.
	Labels map[string][]string
	// Declared is true if the server has the family without a series yet.
	Declared bool
}

// Source is what expressions are checked against.
type Source interface {
	// Metric returns what is there of a name, with the values of some labels; nil if there
	// is nothing.
	Metric(ctx context.Context, name string, values []string) (*Metric, error)
	// Version is that of vLLM; empty if it is not known or if there are several.
	Version() string
	// Where says what it is: "the server http://a:8000".
	Where() string
	// Stored reports whether it has what a Prometheus has stored: the labels of targets, the
	// metrics of this project and all spellings. Otherwise it has the text of a server.
	Stored() bool
}

// maxListed is the number of words that a message lists.
const maxListed = 12

// Result is what a comparison has found.
type Result struct {
	Findings []querylint.Finding
	present  []present
}

// present says what is there of a selector.
type present struct {
	start, end     int
	labels, values bool
}

// aboutNames are the codes that a name which is there refutes.
var aboutNames = []querylint.Code{
	querylint.CodeUnknownMetric, querylint.CodeRemovedMetric, querylint.CodeMetricTooNew, querylint.CodeMissingTotal, querylint.CodeExtraTotal,
	querylint.CodeOldPrefix, querylint.CodeOldGeneration, querylint.CodeNeedsFlag, querylint.CodeOtherSpelling, querylint.CodeHistogramPart, querylint.CodeNotAHistogram,
}

// Merge returns the findings of the linter that what is there does not refute, and those of
// the comparison that the linter does not have already.
func (r *Result) Merge(static []querylint.Finding) []querylint.Finding {
	var all []querylint.Finding
	for _, f := range static {
		refuted := slices.ContainsFunc(r.present, func(p present) bool {
			if p.start != f.Start || p.end != f.End {
				return false
			}
			return slices.Contains(aboutNames, f.Code) || f.Code == querylint.CodeUnknownLabel && p.labels ||
				(f.Code == querylint.CodeUnknownValue || f.Code == querylint.CodeLeUnknown || f.Code == querylint.CodeLeFormat) && p.values
		})
		if !refuted {
			all = append(all, f)
		}
	}
	for _, f := range r.Findings {
		known := slices.ContainsFunc(static, func(s querylint.Finding) bool {
			return s.Start == f.Start && s.End == f.End && s.Severity == querylint.Error && same[s.Code] == f.Code
		})
		if !known {
			all = append(all, f)
		}
	}
	return all
}

// same are the codes of the linter that say what a code here says.
var same = map[querylint.Code]querylint.Code{
	querylint.CodeUnknownMetric: CodeNotExposed, querylint.CodeRemovedMetric: CodeNotExposed, querylint.CodeMetricTooNew: CodeNotExposed,
	querylint.CodeMissingTotal: CodeNotExposed, querylint.CodeExtraTotal: CodeNotExposed, querylint.CodeOtherSpelling: CodeNotExposed,
	querylint.CodeHistogramPart: CodeNotExposed, querylint.CodeNotAHistogram: CodeNotExposed,
	querylint.CodeUnknownLabel: CodeLabelAbsent, querylint.CodeUnknownValue: CodeValueAbsent,
	querylint.CodeLeUnknown: CodeBoundAbsent, querylint.CodeLeFormat: CodeBoundAbsent,
}

// Check compares the selectors of an expression. deployment are further labels of the
// deployment.
func Check(ctx context.Context, from Source, expr string, spelling querylint.Spelling, deployment []string) (*Result, error) {
	selectors, err := querylint.Selectors(expr)
	if err != nil {
		// The linter reports it.
		return &Result{}, nil //nolint:nilerr // as said
	}
	c := &checker{from: from, deployment: deployment}
	for _, s := range selectors {
		if !querylint.Concerns(s.Name) {
			continue
		}
		if err := c.selector(ctx, s, spelling); err != nil {
			return nil, err
		}
	}
	return &c.Result, nil
}

type checker struct {
	from       Source
	deployment []string
	Result
}

func (c *checker) report(s querylint.Selector, code querylint.Code, severity querylint.Severity, format string, args ...any) {
	c.Findings = append(c.Findings, querylint.Finding{Code: code, Severity: severity, Start: s.Start, End: s.End, Message: fmt.Sprintf(format, args...)})
}

func (c *checker) selector(ctx context.Context, s querylint.Selector, spelling querylint.Spelling) error {
	name, meaning := s.Name, meaningOf(s.Name, spelling)
	if !c.from.Stored() && (querylint.OfRouter(name) || meaning != nil && (meaning.Derived() || meaning.EmittedBy != "receiver")) {
		return nil
	}
	var wanted []string
	for _, m := range s.Matchers {
		wanted = append(wanted, m.Name)
	}
	var found *Metric
	var err error
	for _, candidate := range c.candidates(name, meaning, spelling) {
		if found, err = c.from.Metric(ctx, candidate, wanted); err != nil {
			return err
		}
		if found != nil && !found.Declared {
			break
		}
	}
	if found == nil || found.Declared {
		c.absent(s, meaning, found)
		return nil
	}
	if gateway := meaning != nil && !c.from.Stored() && spelling != querylint.Wire && !strings.HasPrefix(meaning.Name, "vllm."); gateway {
		// The labels of gateways have other names at the server.
		return nil
	}
	p := present{start: s.Start, end: s.End, labels: true, values: true}
	for _, m := range s.Matchers {
		values, has := found.Labels[m.Name]
		p.labels = p.labels && has
		p.values = p.values && has && (slices.ContainsFunc(values, m.Matches) || querylint.HasVariable(m.Value))
		c.matcher(s, m, found)
	}
	c.present = append(c.present, p)
	c.doubled(s, meaning, found)
	return nil
}

// doubled reports the gauges of servers that the router of the production stack repeats, if
// both are stored.
func (c *checker) doubled(s querylint.Selector, m *catalog.Metric, found *Metric) {
	if !c.from.Stored() || m == nil || m.EmittedBy != "receiver" || slices.ContainsFunc(s.Matchers, func(m *labels.Matcher) bool { return m.Name == catalog.Router.Label }) {
		return
	}
	_, router := found.Labels[catalog.Router.Label]
	_, server := found.Labels["model_name"]
	if router && server {
		c.report(s, querylint.CodeDoubleCount, querylint.Warning,
			"Some series of %s have the label %s: they come from the router of the production stack, which repeats the values of its servers. So a sum counts each server twice. Add %s=\"\".", s.Name, catalog.Router.Label, catalog.Router.Label)
	}
}

// meaningOf returns the metric of the catalogue that a name stands for; nil if there is none.
func meaningOf(name string, spelling querylint.Spelling) *catalog.Metric {
	for _, s := range append([]querylint.Spelling{spelling}, querylint.Spellings()...) {
		if m, _, known := s.Metric(name); known {
			return m
		}
	}
	return nil
}

// candidates returns the names under which a source can have a series: its own, and for the
// text of a server, where it has not the prefixes of deployments, all families of its metric.
func (c *checker) candidates(name string, m *catalog.Metric, spelling querylint.Spelling) []string {
	all := []string{name}
	if c.from.Stored() || m == nil {
		return all
	}
	if _, source, wire := querylint.Wire.Metric(name); wire && source != nil {
		for _, prefix := range catalog.Prefixes {
			if rest, has := strings.CutPrefix(name, prefix); has {
				all = append(all, catalog.Prefixes[0]+rest)
			}
		}
		if spelling == querylint.Wire {
			return all
		}
	}
	suffix := ""
	for _, part := range []string{"_bucket", "_sum", "_count"} {
		if strings.HasSuffix(name, part) && (m.Kind == catalog.KindHistogram || m.Kind == catalog.KindSummary) {
			suffix = part
		}
	}
	for i := range m.Sources {
		all = append(all, m.Sources[i].Family+suffix)
	}
	return all
}

// absent reports a name that has no series, with the reason.
func (c *checker) absent(s querylint.Selector, m *catalog.Metric, found *Metric) {
	where := c.from.Where()
	if found != nil {
		c.report(s, CodeNotExposed, querylint.Info, "%s declares %s, but has no series of it yet: there was nothing to count.", capital(where), s.Name)
		return
	}
	if m == nil && !querylint.OfRouter(s.Name) {
		c.report(s, CodeNotExposed, querylint.Error, "%s has no series named %s, and the catalogue does not know the name. Correct it.", capital(where), s.Name)
		return
	}
	if m == nil {
		m = &catalog.Metric{EmittedBy: "receiver"} // The rest of the router's names can be anything.
	}
	if flag := m.Setting(); flag != "" {
		c.report(s, CodeNotExposed, querylint.Warning, "%s has no %s: a server fills it only with %s. Start the servers with it, or remove the expression.", capital(where), s.Name, flag)
		return
	}
	if why := versionReason(s.Name, m, c.from.Version()); why != "" {
		c.report(s, CodeNotExposed, querylint.Error, "%s has no %s: %s", capital(where), s.Name, why)
		return
	}
	if m.Derived() || m.EmittedBy == "processor" {
		reason := "the processor of this project computes it"
		if m.Needs != "" {
			reason += ", and it needs " + strings.ReplaceAll(m.Needs, "`", "")
		}
		c.report(s, CodeNotExposed, querylint.Error, "%s has no %s: %s.", capital(where), s.Name, reason)
		return
	}
	reason := "Its version, front end or model lacks it, or there was nothing to count yet."
	if c.from.Stored() {
		reason = "It is stored under another name, the servers are not scraped, or they do not have it."
	}
	c.report(s, CodeNotExposed, querylint.Error, "%s has no series named %s. %s", capital(where), s.Name, reason)
}

// versionReason says why a version does not have a family; "" if the version is not the
// reason.
func versionReason(name string, m *catalog.Metric, version string) string {
	release, known := catalog.ParseRelease(version)
	_, source, wire := querylint.Wire.Metric(name)
	if !known || !wire || source == nil || release.Within(source.Since, source.Until) {
		return ""
	}
	for i := range m.Sources {
		if other := &m.Sources[i]; other.Label == "" && other.Family != source.Family && release.Within(other.Since, other.Until) {
			return fmt.Sprintf("vLLM %s has it as %s.", version, other.Family)
		}
	}
	if since, has := catalog.ParseRelease(source.Since); has && release.Compare(since) < 0 {
		return fmt.Sprintf("it came with vLLM %s, and this is %s.", source.Since, version)
	}
	return fmt.Sprintf("vLLM removed it in %s, and this is %s.", source.Until, version)
}

// matcher checks a label and a value that a selector asks for.
func (c *checker) matcher(s querylint.Selector, m *labels.Matcher, found *Metric) {
	values, has := found.Labels[m.Name]
	if !has {
		if m.Matches("") || !c.from.Stored() && (querylint.TargetLabel(m.Name) || slices.Contains(c.deployment, m.Name)) {
			return
		}
		c.report(s, CodeLabelAbsent, querylint.Error, "No series of %s has the label %s, so %s never matches. The labels are %s.",
			s.Name, m.Name, m, listed(slices.Sorted(maps.Keys(found.Labels))))
		return
	}
	if values == nil || querylint.HasVariable(m.Value) || m.Type == labels.MatchNotEqual || m.Type == labels.MatchNotRegexp || m.Matches("") {
		return
	}
	if slices.ContainsFunc(values, m.Matches) {
		return
	}
	if m.Name == "le" {
		c.bound(s, m, values)
		return
	}
	c.report(s, CodeValueAbsent, querylint.Warning, "%s has no series of %s with %s. The values of the label are %s.", capital(c.from.Where()), s.Name, m, listed(values))
}

// bound reports a value of le that no bucket has, with those beside it.
func (c *checker) bound(s querylint.Selector, m *labels.Matcher, values []string) {
	wanted, err := strconv.ParseFloat(m.Value, 64)
	if err != nil {
		c.report(s, CodeBoundAbsent, querylint.Error, "No bucket of %s matches %s. The bounds are %s.", s.Name, m, listed(values))
		return
	}
	below, above := "none", "none"
	low, high := math.Inf(-1), math.Inf(1)
	for _, text := range values {
		v, err := strconv.ParseFloat(text, 64)
		switch {
		case err != nil:
		case v == wanted:
			if c.from.Stored() {
				c.report(s, CodeBoundAbsent, querylint.Error, "The bound is stored as %q, so %s never matches. Write le=~%q.", text, m, strings.TrimSuffix(text, ".0")+`(\.0)?`)
			}
			return
		case v < wanted && v >= low:
			low, below = v, text
		case v > wanted && v <= high:
			high, above = v, text
		}
	}
	c.report(s, CodeBoundAbsent, querylint.Error, "No bucket of %s has the bound %s, so the selector is always empty. The nearest ones are %s below and %s above.", s.Name, m.Value, below, above)
}

func listed(words []string) string {
	if len(words) == 0 {
		return "none"
	}
	if len(words) > maxListed {
		return strings.Join(words[:maxListed], ", ") + fmt.Sprintf(" and %d more", len(words)-maxListed)
	}
	return strings.Join(words, ", ")
}

func capital(text string) string { return strings.ToUpper(text[:1]) + text[1:] }
