package lint

import (
	"regexp"

	"github.com/prometheus/prometheus/model/labels"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/lint/format"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/querylint"
)

var wholeVariable = regexp.MustCompile(`^(?:\$([A-Za-z_]\w*)|\$\{([A-Za-z_]\w*)(?::[a-z]+)?\}|\[\[([A-Za-z_]\w*)\]\])$`)

// serverLabel matches labels that name a server; a job stays while one of its servers does.
var serverLabel = regexp.MustCompile(`(^|_)(instance|pod|node|host)$|pod[._]name$|instance[._]id$`)

// vanishing reports "up" that is limited by a variable whose values come from the metrics of
// the servers themselves: when a server is gone, so is its value, and its outage is not shown.
func vanishing(e *format.Expression) []querylint.Finding {
	if e.Board == nil || len(e.Board.Variables) == 0 {
		return nil
	}
	selectors, err := querylint.Selectors(e.Text())
	if err != nil {
		return nil
	}
	var all []querylint.Finding
	for _, s := range selectors {
		if s.Name != "up" {
			continue
		}
		for _, m := range s.Matchers {
			found := wholeVariable.FindStringSubmatch(m.Value)
			if found == nil || !serverLabel.MatchString(m.Name) || m.Type != labels.MatchEqual && m.Type != labels.MatchRegexp {
				continue
			}
			name := found[1] + found[2] + found[3]
			v, known := e.Board.Variables[name]
			if !known || v.All == ".*" || v.All == ".+" || !ofServers(v.Metric) {
				continue
			}
			all = append(all, querylint.Finding{
				Code: CodeVanishing, Severity: querylint.Warning, Start: s.Start, End: s.End,
				Message: "The variable " + name + " has only values for which there is " + v.Metric + ": a server that is down disappears from it, and its outage is not shown. Take its values from up, or set its value for all to \".*\".",
			})
		}
	}
	return all
}

// ofServers reports whether a selector is one of metrics that end with their server.
func ofServers(metric string) bool {
	selectors, err := querylint.Selectors(metric)
	if err != nil {
		return false
	}
	for _, s := range selectors {
		if querylint.Concerns(s.Name) {
			return true
		}
	}
	return false
}
