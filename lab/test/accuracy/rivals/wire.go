package rivals

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql/parser"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/content"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/rulefile"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/rulestore"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/spelling"
	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/lab/judge"
)

// everyRule is the time between two evaluations of the rules, in seconds: Prometheus's default.
const everyRule = 60.0

// means is what an alert says of a server, the more definite one first.
var means = []struct{ alert, condition, cause string }{
	{"VLLMRawServerDown", "unreachable", ""},
	{"VLLMRawServerStalled", "stalled", ""},
	{"VLLMRawRequestsFailing", "failing", "erroring"},
	{"VLLMRawFirstTokenLateFast", "degraded", ""},
	{"VLLMRawFirstTokenLateMedium", "degraded", ""},
	{"VLLMRawQueueTimeHigh", "degraded", ""},
}

// Wire are the shipped alerts on vLLM's own names, as a Prometheus with its default settings has them: it stores the
// scrapes and evaluates the rules each minute. An alert that fires is a page or a warning, by its severity. One on a
// model is about each server that has it.
type Wire struct {
	dir       string
	store     *rulestore.Store
	rules     *rulestore.Evaluation
	next      float64
	series    map[string][]stored
	severity  map[string]int
	byServer  map[string]judge.Report
	evaluated time.Time
}

// stored is a series that the rules read.
type stored struct {
	name, part string
	matchers   []*labels.Matcher
}

// NewWire returns a method for the servers of one story, with an empty storage. Close it. Errors are of the storage.
func NewWire(ctx context.Context) (*Wire, error) {
	dir, err := os.MkdirTemp("", "wire-*")
	if err != nil {
		return nil, err
	}
	w := &Wire{dir: dir, series: map[string][]stored{}, severity: map[string]int{}, next: everyRule}
	if err := w.open(ctx); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return w, nil
}

func (w *Wire) open(ctx context.Context) error {
	for _, g := range content.Groups() {
		for i := range g.Alerts {
			if g.Set != content.Wire {
				continue
			}
			a := &g.Alerts[i]
			w.severity[a.Name] = 2
			if a.Severity == content.Page {
				w.severity[a.Name] = 3
			}
			if err := w.read(a.Expr); err != nil {
				return fmt.Errorf("%s: %w", a.Name, err)
			}
		}
	}
	text, err := rulefile.Plain(spelling.Wire)
	if err != nil {
		return err
	}
	file := filepath.Join(w.dir, "rules.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return err
	}
	if w.store, err = rulestore.Open(w.dir, rulestore.Suffixed, rulestore.Memory, 0); err != nil {
		return err
	}
	var errs []error
	w.rules, errs = rulestore.NewEvaluation(ctx, w.store, after(w.next), time.Duration(everyRule)*time.Second, file)
	return errors.Join(errs...)
}

// Close removes the storage. It is an error if a rule could not be evaluated.
func (w *Wire) Close() error {
	var errs []error
	if w.rules != nil {
		_, problems, _ := w.rules.Finish(w.evaluated)
		for _, p := range problems {
			errs = append(errs, errors.New(p.String()))
		}
	}
	if w.store != nil {
		errs = append(errs, w.store.Close())
	}
	return errors.Join(append(errs, os.RemoveAll(w.dir))...)
}

func after(seconds float64) time.Time {
	return judge.Begin().Add(time.Duration(seconds * float64(time.Second)))
}

// read notes the series that an expression reads, so that no others are stored.
func (w *Wire) read(expr string) error {
	parsed, err := spelling.Parse(expr)
	if err != nil {
		return err
	}
	parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
		s, is := node.(*parser.VectorSelector)
		switch {
		case !is:
		case s.Name == "up":
			w.series["vllm.up"] = append(w.series["vllm.up"], stored{"up", "", s.LabelMatchers})
		default:
			family, part := s.Name, ""
			for _, of := range []string{"_bucket", "_sum", "_count"} {
				if base, cut := strings.CutSuffix(s.Name, of); cut && catalog.BySource(s.Name) == nil {
					family, part = base, of
				}
			}
			for _, m := range catalog.BySource(family) {
				w.series[m.Metric.Name] = append(w.series[m.Metric.Name], stored{s.Name, part, s.LabelMatchers})
			}
		}
		return nil
	})
	return nil
}

// Scraped takes a scrape; see judge.Method. The rules see the scrapes before their time, as those of a Prometheus,
// whose scrapes and rules have times of their own.
func (w *Wire) Scraped(ctx context.Context, server int, at float64, metrics pmetric.Metrics) (judge.Report, error) {
	for ; w.next <= at; w.next += everyRule {
		if err := w.evaluate(ctx, after(w.next)); err != nil {
			return judge.Report{}, err
		}
	}
	instance := "vllm-" + strconv.Itoa(server) + ":8000"
	if _, err := w.store.Append(ctx, w.samples(instance, after(at).UnixMilli(), metrics)); err != nil {
		return judge.Report{}, err
	}
	report := w.byServer[instance]
	if all := w.byServer[""]; all.Severity > report.Severity {
		report = all
	}
	if report.Condition == "" {
		report.Condition = "healthy"
	}
	return report, nil
}

// evaluate evaluates the rules, and keeps the worst that fires of each server. Those of a model have no server.
func (w *Wire) evaluate(ctx context.Context, at time.Time) error {
	if err := w.rules.Until(ctx, at); err != nil {
		return err
	}
	firing, err := w.store.Instant(ctx, `ALERTS{alertstate="firing"}`, at)
	if err != nil {
		return err
	}
	w.evaluated, w.byServer = at, map[string]judge.Report{}
	for _, m := range means {
		for _, one := range firing {
			instance := one.Metric.Get("instance")
			if s := w.severity[m.alert]; one.Metric.Get(model.AlertNameLabel) == m.alert && s > w.byServer[instance].Severity {
				w.byServer[instance] = judge.Report{Condition: m.condition, Cause: m.cause, Severity: s}
			}
		}
	}
	return nil
}

// samples are what a Prometheus stores of a scrape, as far as the rules read it. A series that ends is marked.
func (w *Wire) samples(instance string, at int64, metrics pmetric.Metrics) (out []rulestore.Series) {
	add := func(metric, part string, attributes pcommon.Map, flags pmetric.DataPointFlags, v float64, le ...string) {
		if flags.NoRecordedValue() {
			v = math.Float64frombits(value.StaleNaN)
		}
		text := append([]string{"job", "vllm", "instance", instance}, le...)
		for name, a := range attributes.All() {
			text = append(text, name, a.Str())
		}
		seen := ""
		for _, s := range w.series[metric] {
			l := labels.FromStrings(append(text, model.MetricNameLabel, s.name)...)
			if s.part == part && s.name != seen && labels.Selector(s.matchers).Matches(l) {
				out = append(out, rulestore.Series{Labels: l, Times: []int64{at}, Values: []float64{v}})
				seen = s.name
			}
		}
	}
	for _, rm := range metrics.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				if w.series[m.Name()] == nil {
					continue
				}
				switch m.Type() {
				case pmetric.MetricTypeSum:
					for _, p := range m.Sum().DataPoints().All() {
						add(m.Name(), "", p.Attributes(), p.Flags(), p.DoubleValue())
					}
				case pmetric.MetricTypeGauge:
					for _, p := range m.Gauge().DataPoints().All() {
						add(m.Name(), "", p.Attributes(), p.Flags(), p.DoubleValue())
					}
				case pmetric.MetricTypeHistogram:
					for _, p := range m.Histogram().DataPoints().All() {
						add(m.Name(), "_count", p.Attributes(), p.Flags(), float64(p.Count()))
						add(m.Name(), "_sum", p.Attributes(), p.Flags(), p.Sum())
						sum := uint64(0)
						for i, n := range p.BucketCounts().All() {
							sum += n
							le := "+Inf"
							if i < p.ExplicitBounds().Len() {
								le = strconv.FormatFloat(p.ExplicitBounds().At(i), 'f', -1, 64)
							}
							add(m.Name(), "_bucket", p.Attributes(), p.Flags(), float64(sum), "le", le)
						}
					}
				default:
				}
			}
		}
	}
	return out
}
