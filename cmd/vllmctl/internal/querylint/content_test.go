package querylint

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/content"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/spelling"
	"github.com/otelcol-vllm/otelcol-vllm/internal/test/race"
)

// shipped is an expression of the project's content.
type shipped struct {
	where, expr string
	set         string
	context     Context
}

func shippedContent(t *testing.T) []shipped {
	t.Helper()
	var all []shipped
	for _, group := range content.Groups() {
		for _, r := range group.Records {
			all = append(all, shipped{group.Name + "/" + r.Name, r.Expr, group.Set, Context{Kind: Record, Name: r.Name, Unit: r.Unit}})
		}
		for i := range group.Alerts {
			a := &group.Alerts[i]
			all = append(all, shipped{group.Name + "/" + a.Name, a.Expr, group.Set, Context{
				Kind: Alert, Name: a.Name, Templates: []string{a.Summary, a.Description},
			}})
			for _, step := range a.Diagnosis {
				if step.Query != "" {
					all = append(all, shipped{a.Name + "/diagnosis", step.Query, group.Set, Context{Kind: Panel, Described: "--enable-lora --speculative-config"}})
				}
			}
		}
	}
	for _, board := range content.Boards() {
		for _, v := range board.Variables {
			if v.Metric != "" {
				all = append(all, shipped{board.UID + "/$" + v.Name, "group by (" + v.LabelName + ") (" + v.Metric + ")", board.Set, Context{Kind: Panel}})
			}
		}
		for _, a := range board.Annotations {
			all = append(all, shipped{board.UID + "/" + a.Name, a.Expr, board.Set, Context{Kind: Panel, Templates: []string{a.Text}}})
		}
		for _, row := range board.Rows {
			for _, p := range row.Panels {
				for i, q := range p.Queries {
					c := Context{Kind: Panel, Unit: p.Unit, Templates: []string{q.Legend}, Described: row.Needs}
					if q.AsThreshold {
						c.Kind = Threshold
					}
					for _, threshold := range p.Thresholds {
						c.Thresholds = append(c.Thresholds, threshold.Value)
					}
					if len(p.Queries) > 1 && p.Kind == content.Table {
						c.Unit = "" // Columns have units, and nothing shows the value of some queries.
					}
					for _, column := range p.Columns {
						if column.Label == content.ValueColumn && column.Query == i && column.Unit != "" {
							c.Unit = column.Unit
						}
						if column.Label != content.ValueColumn && len(p.Queries) == 1 {
							c.Templates = append(c.Templates, "{{"+column.Label+"}}")
						}
					}
					all = append(all, shipped{fmt.Sprintf("%s/%s/%d", board.UID, p.Title, i), q.Expr, board.Set, c})
				}
			}
		}
	}
	require.NotEmpty(t, all)
	return all
}

// contentLinter knows the recording rules of the set.
func contentLinter(set string, to Spelling) *Linter {
	l := New(Options{Spelling: to})
	for _, group := range content.Groups() {
		if group.Set != set && set != content.Stable {
			continue
		}
		for _, r := range group.Records {
			expr := r.Expr
			if to == Unsuffixed || to == Dotted {
				expr, _ = spelling.Expr(expr, spelling.Spelling(to))
			}
			l.Record(r.Name, expr, nil)
		}
	}
	return l
}

func TestTheShippedContentHasNoFinding(t *testing.T) {
	race.SkipSequential(t)
	all := shippedContent(t)
	for _, to := range []Spelling{Suffixed, Unsuffixed, Dotted} {
		stable, wire := contentLinter(content.Stable, to), contentLinter(content.Wire, Wire)
		for _, s := range all {
			l := stable
			expr, c := s.expr, s.context
			if s.set == content.Wire {
				l = wire
			} else if to != Suffixed {
				var err error
				expr, err = spelling.Expr(s.expr, spelling.Spelling(to))
				require.NoError(t, err, s.where)
				for i, text := range c.Templates {
					c.Templates[i] = spelling.Template(text, spelling.Spelling(to))
				}
			}
			for _, f := range l.Expr(expr, c) {
				assert.Fail(t, s.where, "%s: %s\n%s\n%s", to, f, expr, strings.Repeat(" ", f.Start)+"^")
			}
		}
	}
	t.Logf("%d expressions", len(all))
}
