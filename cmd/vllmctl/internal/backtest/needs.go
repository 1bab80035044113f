package backtest

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/prometheus/common/model"
	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/backtest/history"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/rulefile"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/rulestore"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/spelling"
	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
)

// builtin returns the rules that the project ships.
func builtin(name string) ([]byte, error) {
	names := spelling.Suffixed
	if name == BuiltinRaw {
		names = spelling.Wire
	}
	return rulefile.Plain(names)
}

// needsOf reads what the rules of a file need and record.
func (e *Engine) needsOf(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case info.IsDir():
		return fmt.Errorf("%s is a folder; name the files", path)
	case info.Size() > maxRuleFile:
		return fmt.Errorf("%s is larger than %d MiB; is this the right file?", path, maxRuleFile>>20)
	}
	p := parser.NewParser(parser.Options{})
	groups, errs := rulefmt.ParseFile(path, false, model.UTF8Validation, p, promslog.NewNopLogger())
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	for _, g := range groups.Groups {
		for i := range g.Rules {
			rule := &g.Rules[i]
			expr, err := p.ParseExpr(rule.Expr)
			if err != nil {
				return err
			}
			if rule.Record != "" {
				e.recorded[rule.Record] = true
			}
			e.longest = max(e.longest, rulestore.Longest(expr))
			parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
				if s, is := node.(*parser.VectorSelector); is {
					e.needs = append(e.needs, s)
				}
				return nil
			})
		}
	}
	return nil
}

// nameOf is the name that a selector asks for; empty where it is a pattern.
func nameOf(s *parser.VectorSelector) string {
	for _, m := range s.LabelMatchers {
		if m.Name == model.MetricNameLabel && m.Type == labels.MatchEqual {
			return m.Value
		}
	}
	return ""
}

// wants reports whether a rule needs a series of this name.
func (e *Engine) wants(name string) bool {
	for _, s := range e.needs {
		named := false
		fits := true
		for _, m := range s.LabelMatchers {
			if m.Name == model.MetricNameLabel {
				named = true
				fits = fits && m.Matches(name)
			}
		}
		if fits && (named || s.Name == "") {
			return true
		}
	}
	return false
}

// strategy is the spelling in which most of our names in the rules are written.
func (e *Engine) strategy() rulestore.Strategy {
	best, most := rulestore.Suffixed, -1
	for _, one := range []rulestore.Strategy{rulestore.Suffixed, rulestore.Unsuffixed, rulestore.Dotted} {
		known := ourNames(one.Name)
		n := 0
		for _, s := range e.needs {
			if known[nameOf(s)] {
				n++
			}
		}
		if n > most {
			best, most = one, n
		}
	}
	return best
}

// ourNames are the names of all series of the catalogue in a spelling.
func ourNames(to string) map[string]bool {
	out := map[string]bool{}
	all := catalog.All()
	for i := range all {
		name, err := spelling.Name(&all[i], spelling.Spelling(to))
		if err != nil {
			continue
		}
		out[name] = true
		if all[i].Kind == catalog.KindHistogram {
			for _, part := range []string{"_bucket", "_sum", "_count"} {
				out[name+part] = true
			}
		}
	}
	return out
}

// Selectors are what the rules need besides the series of the targets, of the processor and
// of the rules themselves.
func (e *Engine) Selectors() []string {
	known := ourNames(e.store.Strategy.Name)
	var out []string
	for _, s := range e.needs {
		if e.has(known, nameOf(s)) {
			continue
		}
		plain := *s
		plain.OriginalOffset, plain.Offset, plain.Timestamp, plain.StartOrEnd = 0, 0, nil, 0
		out = append(out, plain.String())
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// has reports whether the storage has a series without Add: from the processor, whose names are known, from a target, or from
// the rules.
func (e *Engine) has(known map[string]bool, name string) bool {
	return known[name] || e.ofTarget(name) || e.writes(name) || name == "target_info"
}

// writes reports whether the rules write a series.
func (e *Engine) writes(name string) bool {
	return e.recorded[name] || name == "ALERTS" || name == "ALERTS_FOR_STATE"
}

// ofTarget reports whether a series is one of vLLM's own, which are read target by target.
func (e *Engine) ofTarget(name string) bool { return history.OfTarget(name, e.prefixes) }

// maxNames bounds the names that are remembered; those of the catalogue are a few hundred.
const maxNames = 10_000

// needsMetric reports whether a rule needs a metric of the processor's output.
func (e *Engine) needsMetric(name, unit string, kind pmetric.MetricType) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if needed, known := e.names[name]; known {
		return needed
	}
	m := catalog.Metric{Name: name, Unit: unit}
	switch kind {
	case pmetric.MetricTypeSum:
		m.Kind = catalog.KindSum
	case pmetric.MetricTypeHistogram:
		m.Kind = catalog.KindHistogram
	case pmetric.MetricTypeSummary:
		m.Kind = catalog.KindSummary
	default:
		m.Kind = catalog.KindGauge
	}
	needed := false
	if stored, err := spelling.Name(&m, spelling.Spelling(e.store.Strategy.Name)); err == nil {
		for _, part := range []string{"", "_bucket", "_sum", "_count"} {
			needed = needed || e.wants(stored+part)
		}
	}
	if len(e.names) < maxNames {
		e.names[name] = needed
	}
	return needed
}
