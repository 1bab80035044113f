package rivals

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/prometheus/common/model"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/content"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/rulefile"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/rulestore"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/spelling"
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

// onTheWire are the names on the wire of what the rules read.
var onTheWire = map[string]string{
	"vllm.up": "up", "vllm.num_requests.running": "vllm:num_requests_running",
	"vllm.prompt_tokens": "vllm:prompt_tokens_total", "vllm.generation_tokens": "vllm:generation_tokens_total",
	"vllm.request.success": "vllm:request_success_total", first: "vllm:time_to_first_token_seconds", queue: "vllm:request_queue_time_seconds",
}

// Wire are the shipped alerts on vLLM's own names, as a Prometheus with its default settings has them: it stores the
// scrapes and evaluates the rules each minute. An alert that fires is a page or a warning, by its severity. One on a
// model is about each server that has it.
type Wire struct {
	dir   string
	store *rulestore.Store
	rules *rulestore.Evaluation
	next  float64
	// reports has the worst that fires, by instance; those on a model have none.
	reports map[string]judge.Report
}

// NewWire returns a method for the servers of one story, with an empty storage. Close it. Errors are of the storage.
func NewWire(ctx context.Context) (*Wire, error) {
	dir, err := os.MkdirTemp("", "wire-*")
	if err != nil {
		return nil, err
	}
	w := &Wire{dir: dir, next: everyRule}
	if err := w.open(ctx); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return w, nil
}

func (w *Wire) open(ctx context.Context) error {
	text, err := rulefile.Plain(spelling.Wire)
	if err != nil {
		return err
	}
	file := filepath.Join(w.dir, "rules.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return err
	}
	if w.store, err = rulestore.Open(w.dir, rulestore.Dotted, rulestore.Memory, 0); err != nil {
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
		_, problems, _ := w.rules.Finish(after(w.next))
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

// Scraped takes a scrape; see judge.Method. The rules see the scrapes before their time, as those of a Prometheus,
// whose scrapes and rules have times of their own.
func (w *Wire) Scraped(ctx context.Context, _ int, at float64, metrics pmetric.Metrics) (judge.Report, error) {
	for ; w.next <= at; w.next += everyRule {
		if err := w.evaluate(ctx, after(w.next)); err != nil {
			return judge.Report{}, err
		}
	}
	rm := metrics.ResourceMetrics().At(0)
	rm.ScopeMetrics().At(0).Metrics().RemoveIf(func(m pmetric.Metric) bool {
		m.SetName(onTheWire[m.Name()])
		return m.Name() == ""
	})
	if err := w.store.Take(ctx, metrics); err != nil {
		return judge.Report{}, err
	}
	instance, _ := rm.Resource().Attributes().Get("service.instance.id")
	report := w.reports[instance.Str()]
	if all := w.reports[""]; all.Severity > report.Severity {
		report = all
	}
	if report.Condition == "" {
		report.Condition = "healthy"
	}
	return report, nil
}

func (w *Wire) evaluate(ctx context.Context, at time.Time) error {
	if err := w.rules.Until(ctx, at); err != nil {
		return err
	}
	firing, err := w.store.Instant(ctx, `ALERTS{alertstate="firing"}`, at)
	if err != nil {
		return err
	}
	w.reports = map[string]judge.Report{}
	for _, m := range means {
		for _, one := range firing {
			severity, instance := 2, one.Metric.Get("instance")
			if one.Metric.Get("severity") == string(content.Page) {
				severity = 3
			}
			if one.Metric.Get(model.AlertNameLabel) == m.alert && severity > w.reports[instance].Severity {
				w.reports[instance] = judge.Report{Condition: m.condition, Cause: m.cause, Severity: severity}
			}
		}
	}
	return nil
}
