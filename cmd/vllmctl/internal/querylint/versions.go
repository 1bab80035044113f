package querylint

import (
	"regexp"
	"strings"

	"github.com/prometheus/prometheus/promql/parser"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
)

// lookup returns what a name means: in the spelling of the linter, and with Mixed also in
// another one. A counter without _total is not taken for the spelling without suffixes.
func (l *Linter) lookup(name string) (entry, bool) {
	if e, known := l.names.byName[name]; known {
		return e, true
	}
	if !l.options.Mixed {
		return entry{}, false
	}
	if _, counter := l.names.byName[name+"_total"]; counter {
		return entry{}, false
	}
	for _, other := range Spellings() {
		if e, known := namesOf(other).byName[name]; known {
			return e, true
		}
	}
	return entry{}, false
}

// checkNamed checks a name that is known: whether the versions have it, what it needs, and
// whether there is a better one. It returns true if another metric is meant.
func (c *checker) checkNamed(node *parser.VectorSelector, name string, e entry) (other bool) {
	switch {
	case c.linter.versioned && e.metric != nil:
		c.checkVersion(node, name, e)
	default:
		c.checkRemoved(node, name, e)
	}
	if total, is := c.checkOldName(node, name, e); is {
		other, e = true, total
	}
	c.checkPrefix(node, name, e)
	c.checkGeneration(node, name, e)
	c.checkFlag(node, name, e)
	c.checkStable(node, name, e)
	return other
}

// vllms reports whether the versions of a source are those of vLLM.
func vllms(s *catalog.Source) bool { return strings.HasPrefix(s.Family, catalog.Prefixes[0]) }

// within reports whether a version of vLLM exposes a family.
func (l *Linter) within(s *catalog.Source) bool {
	return !vllms(s) || l.version.Within(s.Since, s.Until)
}

// checkVersion reports a name that the version of the options does not have.
func (c *checker) checkVersion(node *parser.VectorSelector, name string, e entry) {
	version := c.linter.options.Version
	if e.source == nil {
		if since := c.linter.missingSince(e.metric); since != "" {
			c.report(CodeMetricTooNew, Error, node, "vLLM %s lacks the source of %s, which came with %s.", version, name, since)
		}
		return
	}
	if c.linter.within(e.source) || repeats(e) && selectsRouter(node) {
		return
	}
	present, suggestion := "", ""
	for i := range e.metric.Sources {
		s := &e.metric.Sources[i]
		if !c.linter.within(s) || s.Family == e.source.Family || s.Label != "" {
			continue
		}
		if c.present[s.Family] {
			return
		}
	}
	present = c.lasting(name)
	advice := "Remove it."
	if present != "" {
		suggestion = c.renamed(node, name, present)
		advice = "Write " + present + "."
	}
	code, why := CodeRemovedMetric, "was removed in "+e.source.Until
	if since, has := catalog.ParseRelease(e.source.Since); has && c.linter.version.Compare(since) < 0 {
		code, why = CodeMetricTooNew, "came with "+e.source.Since
	}
	f := c.report(code, Error, node, "vLLM %s does not have %s: it %s, so the selector is always empty. %s", version, name, why, advice)
	f.Suggestion, f.Certain = suggestion, suggestion != "" && !e.source.Version
}

// nameOf returns the name of a part of a family, with the prefix and the suffix that another
// name of the same metric has.
func (n *names) nameOf(family, like string, e entry) string {
	rest, ours := strings.CutPrefix(family, catalog.Prefixes[0])
	if ours {
		family = prefixOf(like) + rest
	}
	switch e.part {
	case partBucket:
		family += "_bucket"
	case partSum:
		family += "_sum"
	case partCount:
		family += "_count"
	case partValue, partTotal, partWhole:
	}
	return family
}

var neededVersion = regexp.MustCompile(`vLLM (\d+(?:\.\d+)+)`)

// missingSince returns the version with which a metric came, if the version of the options is
// older, and "" else.
func (l *Linter) missingSince(m *catalog.Metric) string {
	if m.Derived() {
		needs := neededVersion.FindStringSubmatch(m.Needs)
		if len(needs) > 1 && !l.version.Within(needs[1], "") {
			return "vLLM " + needs[1]
		}
		return ""
	}
	first := ""
	for i := range m.Sources {
		s := &m.Sources[i]
		if !vllms(s) || s.Since == "" || l.version.Within(s.Since, "") {
			return ""
		}
		first = s.Since
	}
	if first == "" {
		return ""
	}
	return "vLLM " + m.Sources[0].Since
}

const rayBefore, rayNow = "ray_vllm:", "ray_vllm_"

// modern returns a name with the prefix that Ray writes since vLLM 0.11.
func (c *checker) modern(name string) string {
	until, _ := catalog.ParseRelease("0.11.0")
	rest, before := strings.CutPrefix(name, rayBefore)
	if !before || c.linter.versioned && c.linter.version.Compare(until) < 0 {
		return name
	}
	return rayNow + rest
}

// checkPrefix reports the prefix that Ray wrote before vLLM 0.11.
func (c *checker) checkPrefix(node *parser.VectorSelector, name string, e entry) {
	if e.source == nil || c.modern(name) == name || strings.Contains(c.source, rayNow) {
		return
	}
	right := c.lasting(name)
	if right == "" || right == name {
		return // It has no successor, which is reported.
	}
	f := c.report(CodeOldPrefix, Warning, node, "Since vLLM 0.11, names from Ray have the prefix ray_vllm_, not ray_vllm:. The selector is empty with newer servers. Write %s.", right)
	f.Suggestion = c.renamed(node, name, right)
	f.Certain = f.Suggestion != ""
}

// checkGeneration reports a family of a gateway that has a newer name.
func (c *checker) checkGeneration(node *parser.VectorSelector, name string, e entry) {
	if e.source == nil || vllms(e.source) || !strings.HasPrefix(e.metric.Name, "inference_gateway.") {
		return
	}
	last := &e.metric.Sources[len(e.metric.Sources)-1]
	if last.Family == e.source.Family {
		return
	}
	for i := range e.metric.Sources {
		if s := &e.metric.Sources[i]; s.Family != e.source.Family && c.present[s.Family] {
			return
		}
	}
	newest := c.lasting(name)
	if strings.HasPrefix(name, "inference_model_") {
		c.report(CodeOldGeneration, Warning, node,
			"Only Gateway API Inference Extension before 1.1 exposes %s. Newer pickers have other names: add \"or\" with %s, or use one name for all, %s.", name, newest, stableNameOf(e, Suffixed)).Suggestion = c.renamed(node, name, newest)
		return
	}
	c.report(CodeOldGeneration, Info, node,
		"llm-d-router since 0.9 calls %s %s. A picker with both names has everything twice, so use one of them, or one name for all, %s.", name, newest, stableNameOf(e, Suffixed))
}

// checkFlag reports a metric that is empty unless the server has a setting.
func (c *checker) checkFlag(node *parser.VectorSelector, name string, e entry) {
	flag := e.metric.Setting()
	if flag == "" || c.flags[flag] {
		return
	}
	for _, text := range append([]string{c.context.Described}, c.context.Templates...) {
		// Newer versions set up a connector by the size of its memory.
		if strings.Contains(text, flag) || strings.HasPrefix(flag, "--kv-transfer") && strings.Contains(text, "--kv-offloading-size") {
			return
		}
	}
	if c.flags == nil {
		c.flags = map[string]bool{}
	}
	c.flags[flag] = true
	c.report(CodeNeedsFlag, Info, node, "A server fills %s only with %s. Start the servers with it, or say in the title or in the description that it is needed.", name, flag)
}

// stableNameOf returns the name of the project for what a name on the wire stands for, which
// is the same for all versions of vLLM; "" if there is not exactly one.
func stableNameOf(e entry, to Spelling) string {
	if e.source == nil || e.metric == nil || e.source.Label != "" || e.source.Version || infoFamily(e.source.Family) || to == Wire || to == "" {
		return ""
	}
	return namesOf(to).write(e.metric, e.part)
}

// checkStable reports a name on the wire that has a stable one.
func (c *checker) checkStable(node *parser.VectorSelector, name string, e entry) {
	to := c.linter.options.Stable
	stable := stableNameOf(e, to)
	if stable == "" || stable == name {
		return
	}
	f := c.report(CodeStableName, Info, node, "%s is the name of some versions of vLLM. With the receiver of this project it is %s in all of them. Write %s.", name, stable, stable)
	f.Suggestion = c.renamed(node, name, stable)
	if to == Dotted {
		f.Suggestion = quotedSelector(c.text(node), name, stable)
	}
	// The labels of gateways have other names there.
	f.Certain = f.Suggestion != "" && vllms(e.source)
}

// quotedSelector returns a selector with a name that has to be quoted, and "" if the selector
// does not begin with its name.
func quotedSelector(text, name, quoted string) string {
	rest, begins := strings.CutPrefix(text, name)
	matchers, has := strings.CutPrefix(strings.TrimSpace(rest), "{")
	switch {
	case !begins || !has && strings.TrimSpace(rest) != "":
		return ""
	case !has || strings.TrimSpace(matchers) == "}":
		return `{"` + quoted + `"}`
	}
	return `{"` + quoted + `", ` + matchers
}
