package history

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/prometheus/prometheus/promql/parser"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
)

// Form is how the series of a target are named.
type Form uint8

// The forms.
const (
	// Raw are vLLM's own names, as Prometheus scrapes them from a server.
	Raw Form = iota
	// Ours are the names of the catalogue, as a collector with our receiver writes them.
	Ours
)

// String returns the form as the report names it.
func (f Form) String() string { return [...]string{"vLLM's own names", "our names"}[f] }

// The families besides those with vLLM's prefix.
const (
	nameUp           = "up"
	nameProcessStart = "process_start_time_seconds"
)

// rawPrefixes are the beginnings of the raw families, with those of the configuration.
func rawPrefixes(more []string) []string {
	var out []string
	for _, user := range append([]string{""}, more...) {
		for _, p := range catalog.Prefixes {
			out = append(out, user+p)
		}
		if user != "" {
			out = append(out, user)
		}
	}
	return out
}

// OfTarget reports whether a series with vLLM's own names comes from a server. A further colon in a name is that of a recorded series,
// which no server has.
func OfTarget(name string, more []string) bool {
	return slices.ContainsFunc(rawPrefixes(more), func(prefix string) bool {
		rest, found := strings.CutPrefix(name, prefix)
		return found && !strings.Contains(rest, ":")
	})
}

// alternatives joins texts into a regular expression, each matched as it is.
func alternatives(texts []string) string {
	quoted := make([]string, len(texts))
	for i, t := range texts {
		quoted[i] = regexp.QuoteMeta(t)
	}
	return strings.Join(quoted, "|")
}

// Discovery returns the selector of one family that every target has. more are further
// prefixes of a deployment.
func Discovery(match string, more []string) string {
	names := []string{"vllm.num_requests.running", "vllm_up", "vllm.up"}
	for _, p := range rawPrefixes(more) {
		names = append(names, p+"num_requests_running")
	}
	slices.Sort(names)
	return selector(alternatives(slices.Compact(names)), match)
}

// MatchLabels returns the names of the labels in the further matchers of a user, or what is
// wrong with these.
func MatchLabels(match string) ([]string, error) {
	all, err := parser.NewParser(parser.Options{}).ParseMetricSelector(selector("x", match))
	if err != nil {
		return nil, fmt.Errorf("%q is not a list of matchers; write for example 'job=\"vllm\",cluster=~\"a|b\"'", match)
	}
	var names []string
	for _, m := range all {
		names = append(names, m.Name)
	}
	return names, nil
}

// selector returns a selector of names with further matchers.
func selector(names, match string) string {
	s := "{__name__=~" + strconv.Quote(names)
	if match != "" {
		s += "," + match
	}
	return s + "}"
}

// otherFamilies are the families of a server without vLLM's prefix that become metrics which
// a derived metric is computed from. Gateways are other targets.
var otherFamilies = sync.OnceValue(func() []string {
	needed := map[string]bool{}
	for _, m := range catalog.All() {
		for _, name := range m.DerivedFrom {
			needed[name] = true
		}
	}
	var out []string
	for _, m := range catalog.All() {
		if !needed[m.Name] || strings.HasPrefix(m.Name, "inference_gateway.") {
			continue
		}
		for _, s := range m.Sources {
			if !strings.HasPrefix(s.Family, "vllm:") {
				out = append(out, s.Family)
				if m.Kind == catalog.KindHistogram {
					out = append(out, s.Family+"_bucket", s.Family+"_sum", s.Family+"_count")
				}
			}
		}
	}
	slices.Sort(out)
	return slices.Clip(slices.Compact(out))
})

// selectorOf returns the selector of all that is read of a target; see OfTarget for the colons.
func selectorOf(t *Target, more []string) string {
	var names string
	if t.Form == Ours {
		names = `vllm[._][^:]+|http[._]requests(_total)?|process_open_fds`
	} else {
		var prefixes []string
		for _, p := range rawPrefixes(more) {
			prefixes = append(prefixes, regexp.QuoteMeta(p)+"[^:]+")
		}
		names = strings.Join(prefixes, "|") + "|" + alternatives(append(otherFamilies(), nameUp, nameProcessStart))
	}
	var match []string
	for _, l := range t.matchers {
		match = append(match, labelName(l.Name)+"="+strconv.Quote(l.Value))
	}
	if t.Form == Ours {
		// What the processor derived then is derived again.
		match = append(match, `__name__!~`+strconv.Quote(`vllm[._](diagnosis|slo|pool)[._].+`))
	}
	return selector(names, strings.Join(match, ","))
}

var plainLabel = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)

// labelName writes the name of a label in a selector. Names with dots stand in quotes.
func labelName(name string) string {
	if plainLabel.MatchString(name) {
		return name
	}
	return strconv.Quote(name)
}
