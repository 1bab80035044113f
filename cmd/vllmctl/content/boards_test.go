package content_test

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/content"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/spelling"
	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
)

// eachQuery calls do for each query of each panel.
func eachQuery(t *testing.T, do func(b content.Board, p content.Panel, q content.Query, expr parser.Expr)) {
	t.Helper()
	for _, b := range content.Boards() {
		for _, row := range b.Rows {
			for _, p := range row.Panels {
				for _, q := range p.Queries {
					expr, err := spelling.Parse(q.Expr)
					require.NoError(t, err, "%s / %s", b.UID, p.Title)
					do(b, p, q, expr)
				}
			}
		}
	}
}

func selectors(expr parser.Expr) []*parser.VectorSelector {
	var found []*parser.VectorSelector
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		if s, is := node.(*parser.VectorSelector); is {
			found = append(found, s)
		}
		return nil
	})
	return found
}

// Every expression can be written in every spelling.
func TestBoardsHaveAllSpellings(t *testing.T) {
	eachQuery(t, func(b content.Board, p content.Panel, q content.Query, _ parser.Expr) {
		for _, to := range spelling.All() {
			_, err := spelling.Expr(q.Expr, to)
			assert.NoError(t, err, "%s / %s", b.UID, p.Title)
		}
	})
	for _, b := range content.Boards() {
		for _, to := range spelling.All() {
			for _, a := range b.Annotations {
				_, err := spelling.Expr(a.Expr, to)
				require.NoError(t, err, b.UID)
			}
			for _, v := range b.Variables {
				_, err := spelling.Expr(v.Metric, to)
				require.NoError(t, err, b.UID)
			}
		}
	}
}

// A panel without a unit, a title or a size cannot be read; a title that is there twice cannot
// be named in a runbook.
func TestBoardsAreComplete(t *testing.T) {
	uids := map[string]bool{}
	for _, b := range content.Boards() {
		assert.Regexp(t, `^vllm-[a-z]+$`, b.UID)
		assert.False(t, uids[b.UID], "%s is there twice", b.UID)
		uids[b.UID] = true
		assert.NotEmpty(t, b.Title)
		assert.True(t, strings.HasSuffix(b.Question, "?"), "%s: a board answers one question", b.UID)
		assert.Contains(t, []string{"stable", "wire"}, b.Set)
		for _, row := range b.Rows {
			assert.NotEmpty(t, row.Panels, "%s / %s", b.UID, row.Title)
			assert.True(t, !row.Collapsed || row.Needs != "", "%s / %s: why is it collapsed?", b.UID, row.Title)
			titles := map[string]bool{}
			for _, p := range row.Panels {
				at := b.UID + " / " + p.Title
				assert.False(t, titles[p.Title], "%s is there twice in a row", at)
				titles[p.Title] = true
				assert.NotEmpty(t, p.Unit, at)
				assert.NotEmpty(t, p.About, at)
				assert.NotEmpty(t, p.Queries, at)
				assert.Positive(t, p.Height, at)
				assert.True(t, p.Width > 0 && p.Width <= 24, at)
				assert.True(t, p.Kind != content.Table || len(p.Columns) > 0, "%s: a table names its columns", at)
				assert.True(t, p.Kind != content.StateTimeline || len(p.Mappings) > 0, "%s: states need words", at)
				for _, q := range p.Queries {
					assert.True(t, p.Kind == content.Table || q.Legend != "", "%s: a series has a name", at)
					assert.Equal(t, p.Kind == content.Table || p.Kind == content.Stat, q.Instant,
						"%s: pictures over time need ranges, others the newest value", at)
				}
			}
		}
	}
}

// belongs reports whether series of the metric can have the label of a variable. Pools
// and gateways are no servers, and only some metrics are of a model.
func belongs(metric, label string) bool {
	m, _, known := spelling.Metric(metric)
	if !known {
		return !strings.HasPrefix(metric, "DCGM_") && (label != "model_name" || strings.HasPrefix(metric, "vllm:"))
	}
	switch label {
	case "k8s_cluster_name", "k8s_namespace_name":
		return true
	case "job", "instance", "service_version", "model_name":
		if strings.HasPrefix(m.Name, "hw.") || strings.HasPrefix(m.Name, "vllm.accelerator.") {
			return false // They are those of the exporter, or none.
		}
	}
	switch label {
	case "objective":
		return slices.Contains(m.Attributes, label)
	case "model_name":
		return slices.Contains(m.Attributes, label) && !strings.HasPrefix(m.Name, "inference_gateway.")
	default:
		return !strings.HasPrefix(m.Name, "vllm.pool.") && !strings.HasPrefix(m.Name, "inference_gateway.")
	}
}

// A panel that ignores a choice misleads: it shows servers that were not chosen.
func TestEveryQueryFollowsTheChoices(t *testing.T) {
	checked := 0
	eachQuery(t, func(b content.Board, p content.Panel, _ content.Query, expr parser.Expr) {
		for _, s := range selectors(expr) {
			for _, v := range b.Variables {
				if !belongs(s.Name, v.LabelName) {
					continue
				}
				checked++
				assert.True(t, slices.ContainsFunc(s.LabelMatchers, func(m *labels.Matcher) bool {
					return m.Name == v.LabelName && m.Type == labels.MatchRegexp && strings.TrimSuffix(m.Value, "|") == "$"+v.Name
				}), "%s / %s: %s ignores $%s", b.UID, p.Title, s.Name, v.Name)
			}
		}
	})
	assert.Greater(t, checked, 500)
}

var variable = regexp.MustCompile(`\$([a-z]+)`)

// A choice that nothing uses confuses, and a reference to a choice that does not exist matches
// nothing.
func TestVariablesAreUsedAndExist(t *testing.T) {
	for _, b := range content.Boards() {
		used, known := map[string]bool{}, map[string]bool{}
		collect := func(expr string) {
			for _, match := range variable.FindAllStringSubmatch(expr, -1) {
				used[match[1]] = true
			}
		}
		for _, v := range b.Variables {
			for _, match := range variable.FindAllStringSubmatch(v.Metric, -1) {
				assert.True(t, known[match[1]], "%s: $%s uses $%s, which is not before it", b.UID, v.Name, match[1])
			}
			known[v.Name] = true
		}
		for _, row := range b.Rows {
			for _, p := range row.Panels {
				for _, q := range p.Queries {
					collect(q.Expr)
				}
			}
		}
		for _, a := range b.Annotations {
			collect(a.Expr)
		}
		assert.ElementsMatch(t, slices.Collect(maps.Keys(known)), slices.Collect(maps.Keys(used)), b.UID)
	}
}

// A link between boards carries the choices by their names. A name that means servers on one
// board and collectors on another would empty the second one.
func TestAVariableMeansTheSameOnEachBoard(t *testing.T) {
	first := map[string]string{}
	for _, b := range content.Boards() {
		if b.Set != "stable" {
			continue
		}
		for _, v := range b.Variables {
			expr, err := spelling.Parse(v.Metric)
			require.NoError(t, err)
			program, _, _ := strings.Cut(selectors(expr)[0].Name, "_")
			meaning := v.Label + ": " + v.LabelName + " of " + program
			if first[v.Name] == "" {
				first[v.Name] = meaning
			}
			assert.Equal(t, first[v.Name], meaning, "%s: $%s", b.UID, v.Name)
		}
	}
}

// Two hundred lines in a picture cannot be distinguished. A picture with a line for each server
// shows a number of them, the same ones at each step.
func TestPicturesOfManyServersStayLegible(t *testing.T) {
	checked := 0
	perServer := regexp.MustCompile(`\{\{(instance|endpoint|Hostname)\}\}`)
	eachQuery(t, func(b content.Board, p content.Panel, q content.Query, expr parser.Expr) {
		if b.UID == "vllm-collector" || q.AsThreshold || !perServer.MatchString(q.Legend) || p.Title == "Scrape failures" {
			return
		}
		limited := false
		parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
			a, is := node.(*parser.AggregateExpr)
			if !is || a.Op != parser.TOPK && a.Op != parser.BOTTOMK {
				return nil
			}
			for _, s := range selectors(a) {
				limited = true
				assert.Equal(t, parser.ItemType(parser.END), s.StartOrEnd, "%s / %s: the series change with each step", b.UID, p.Title)
			}
			return nil
		})
		checked++
		assert.True(t, limited, "%s / %s: a line for each of %s", b.UID, p.Title, q.Legend)
		assert.Regexp(t, `Of many.* the (20|5) that are`, p.About, "%s / %s", b.UID, p.Title)
	})
	assert.Greater(t, checked, 40)
}

// The values of choices of servers come from a metric that stays while a server is down.
func TestServersThatAreDownCanBeChosen(t *testing.T) {
	for _, b := range content.Boards() {
		if b.Set != "stable" || b.UID == "vllm-collector" {
			continue
		}
		for _, v := range b.Variables {
			expr, err := spelling.Parse(v.Metric)
			require.NoError(t, err)
			name := selectors(expr)[0].Name
			switch v.Name {
			case "objective":
				// Only a server that was read has objectives. Grafana offers the values of the whole chosen time.
				assert.Equal(t, "vllm_slo_target_ratio", name)
			case "model":
				// The severity stays while the engine is known, and a pool while it has servers.
				assert.Contains(t, []string{"vllm_diagnosis_severity", "vllm_pool_replicas"}, name)
			default:
				assert.Equal(t, "vllm_up", name, "%s: $%s", b.UID, v.Name)
			}
		}
	}
}

// The mean of shares, percentiles or burn rates of servers means nothing: it hides the
// server that is bad.
func TestNoMeansOfMeans(t *testing.T) {
	eachQuery(t, func(b content.Board, p content.Panel, _ content.Query, expr parser.Expr) {
		parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
			a, is := node.(*parser.AggregateExpr)
			if !is {
				return nil
			}
			assert.NotContains(t, []parser.ItemType{parser.AVG, parser.STDDEV, parser.QUANTILE}, a.Op, "%s / %s: %s", b.UID, p.Title, a)
			if a.Op != parser.SUM {
				return nil
			}
			for _, s := range selectors(a.Expr) {
				m, suffix, known := spelling.Metric(s.Name)
				if known && m.Kind == catalog.KindGauge && suffix == "" {
					assert.False(t, slices.Contains([]string{"1", "s", "{level}"}, m.Unit), "%s / %s: the sum of %s over series", b.UID, p.Title, m.Name)
				}
			}
			return nil
		})
	})
}

// A counter is never drawn as it is, and a gauge has no rate.
func TestCountersAreRates(t *testing.T) {
	eachQuery(t, func(b content.Board, p content.Panel, _ content.Query, expr parser.Expr) {
		parser.Inspect(expr, func(node parser.Node, path []parser.Node) error {
			s, is := node.(*parser.VectorSelector)
			if !is {
				return nil
			}
			kind, known := kindOf(s.Name)
			if !known {
				return nil
			}
			in := slices.ContainsFunc(path, func(n parser.Node) bool {
				call, is := n.(*parser.Call)
				return is && (call.Func.Name == "rate" || call.Func.Name == "increase")
			})
			assert.Equal(t, kind != catalog.KindGauge, in, "%s / %s: %s", b.UID, p.Title, s.Name)
			return nil
		})
	})
}

// Colours are judgements. Everything else is drawn without.
func TestColoursAreJudgements(t *testing.T) {
	judgements := regexp.MustCompile(`^(vllm_up|vllm(_pool)?_diagnosis_(severity|condition)|vllm_slo_.*|vllm_engine_sleep_state|inference_gateway_lora_adapter_status|otelcol_exporter_queue_.*)$`)
	coloured := 0
	eachQuery(t, func(b content.Board, p content.Panel, _ content.Query, expr parser.Expr) {
		if len(p.Thresholds) == 0 && len(p.Mappings) == 0 {
			return
		}
		coloured++
		for _, s := range selectors(expr) {
			assert.Regexp(t, judgements, s.Name, "%s / %s", b.UID, p.Title)
		}
		drawn := map[content.Color]bool{}
		for _, m := range p.Mappings {
			assert.False(t, drawn[m.Color], "%s / %s: %s has the colour of another word", b.UID, p.Title, m.Text)
			drawn[m.Color] = true
		}
		for i := 1; i < len(p.Thresholds); i++ {
			assert.Greater(t, p.Thresholds[i].Value, p.Thresholds[i-1].Value, "%s / %s", b.UID, p.Title)
		}
	})
	assert.Greater(t, coloured, 10)
}

// What is missing is not 0.
func TestNoDataIsNotZero(t *testing.T) {
	eachQuery(t, func(b content.Board, p content.Panel, q content.Query, _ parser.Expr) {
		assert.NotRegexp(t, `or (on ?\(\) ?)?vector\(0\)`, q.Expr, "%s / %s", b.UID, p.Title)
	})
}

// Links lead to boards and pages that exist.
func TestLinksOfBoardsResolve(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	for _, b := range content.Boards() {
		for _, row := range b.Rows {
			for _, p := range row.Panels {
				for _, l := range p.Links {
					if l.Board != "" {
						other, ok := content.BoardByUID(l.Board)
						assert.True(t, ok && other.Set == b.Set, "%s / %s: %s", b.UID, p.Title, l.Board)
						continue
					}
					page, is := strings.CutPrefix(l.URL, content.Repository)
					assert.True(t, is, l.URL)
					assert.FileExists(t, filepath.Join(root, page))
				}
				for _, c := range p.Columns {
					if c.Runbook {
						assert.Equal(t, "cause", c.Label, "runbooks are named by causes")
					}
					if c.Board == "" {
						continue
					}
					other, ok := content.BoardByUID(c.Board)
					require.True(t, ok, c.Board)
					assert.True(t, slices.ContainsFunc(other.Variables, func(v content.Variable) bool {
						return v.Name == c.Variable && v.LabelName == c.Label
					}), "%s / %s: %s has no $%s", b.UID, p.Title, c.Board, c.Variable)
				}
			}
		}
	}
	for _, cause := range catalog.Causes() {
		page, is := strings.CutPrefix(catalog.RunbookURL(cause.Name), content.Repository)
		require.True(t, is)
		_, err := os.Stat(filepath.Join(root, page))
		assert.NoError(t, err, cause.Name)
	}
}

// Every label that a board chooses by or groups by is of the metric, is job or instance,
// or is one that docs/start/dashboards.md says to put on series.
func TestBoardsNeedNoOtherLabels(t *testing.T) {
	promoted := map[string]bool{}
	for _, attribute := range content.PromotedAttributes() {
		promoted[strings.ReplaceAll(attribute, ".", "_")] = true
	}
	used := map[string]bool{}
	eachQuery(t, func(b content.Board, p content.Panel, _ content.Query, expr parser.Expr) {
		for _, s := range selectors(expr) {
			m, _, known := spelling.Metric(s.Name)
			for _, matcher := range s.LabelMatchers {
				if promoted[matcher.Name] {
					used[matcher.Name] = true
					continue
				}
				if !known || slices.Contains([]string{"__name__", "job", "instance"}, matcher.Name) {
					continue
				}
				// Pools may be grouped by any attribute.
				attributes := []string{"le"}
				for _, attribute := range m.Attributes {
					attributes = append(attributes, strings.ReplaceAll(attribute, ".", "_"))
				}
				assert.Contains(t, attributes, matcher.Name, "%s / %s: %s", b.UID, p.Title, s.Name)
			}
		}
	})
	assert.Equal(t, promoted, used, "each is needed")
}

// kindOf returns the kind of the metric of a series, of our names or of vLLM's own.
func kindOf(series string) (catalog.Kind, bool) {
	if m, _, known := spelling.Metric(series); known {
		return m.Kind, true
	}
	for _, part := range []string{"_bucket", "_sum", "_count"} {
		family, is := strings.CutSuffix(series, part)
		if matches := catalog.BySource(family); is && len(matches) > 0 && matches[0].Metric.Kind == catalog.KindHistogram {
			return catalog.KindHistogram, true
		}
	}
	matches := catalog.BySource(series)
	if len(matches) == 0 || matches[0].Metric.Kind == catalog.KindHistogram {
		return 0, false
	}
	return matches[0].Metric.Kind, true
}

// The board for vLLM's own names uses families that servers really have.
func TestTheWireBoardUsesNamesOfServers(t *testing.T) {
	checked := 0
	eachQuery(t, func(b content.Board, p content.Panel, _ content.Query, expr parser.Expr) {
		if b.Set != "wire" {
			return
		}
		for _, s := range selectors(expr) {
			if _, _, known := spelling.Metric(s.Name); known {
				continue // of the processor, which has its own names.
			}
			checked++
			_, known := kindOf(s.Name)
			assert.True(t, known, "%s: no server has %s", p.Title, s.Name)
		}
	})
	assert.Greater(t, checked, 15)
}
