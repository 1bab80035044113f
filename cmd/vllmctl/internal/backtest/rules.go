package backtest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql/parser"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/backtest/history"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/backtest/promapi"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/rulestore"
)

// RulesFound is what rules found.
type RulesFound struct {
	Files    []string
	Firings  []rulestore.Firing
	Problems []rulestore.Problem
	Notes    []string
}

// Engine evaluates rule files with Prometheus's rule engine over a storage of its own, which
// has only the series that the rules name: from the history, or from the processor where they
// have our names.
type Engine struct {
	files      []string
	dir        string
	store      *rulestore.Store
	evaluation *rulestore.Evaluation
	begin      time.Time
	// needs are the selectors of the rules; recorded are the names that the rules record.
	needs    []*parser.VectorSelector
	recorded map[string]bool
	prefixes []string
	longest  time.Duration

	mu sync.Mutex
	// names has for each metric of the processor whether a rule needs it.
	names map[string]bool
	// present has the series of each target that had a sample at its last scrape.
	present map[string]map[uint64]labels.Labels
	// added are the series that were stored in this window: several selectors may choose one.
	added map[uint64]bool
	// mostSeries is how many series may be in memory.
	mostSeries uint64
	// dropped is the number of samples that were not in the order of their times.
	dropped int
}

// The names for the rules that the project ships.
const (
	Builtin    = "builtin"
	BuiltinRaw = "builtin-raw"
)

// maxRuleFile is the largest rule file, in bytes.
const maxRuleFile = 16 << 20

// mostSeries is how many series the storage has in memory. Each takes about 3 KiB.
const mostSeries = 500_000

// block is the length of a block of the storage. A window is at most half as long.
const block = 4 * time.Hour

// NewEngine loads rule files into an engine whose storage is a new folder of the system's
// temporary one. The rules are evaluated from begin on; groups without an interval each step.
func NewEngine(ctx context.Context, files, prefixes []string, begin time.Time, step time.Duration) (*Engine, error) {
	e := &Engine{mostSeries: mostSeries, files: files, begin: begin, prefixes: prefixes, recorded: map[string]bool{}, names: map[string]bool{}, added: map[uint64]bool{}, present: map[string]map[uint64]labels.Labels{}}
	removeOld()
	var err error
	if e.dir, err = os.MkdirTemp("", folderPrefix); err != nil {
		return nil, fmt.Errorf("the rules need a temporary folder: %w; set TMPDIR to a writable one", err)
	}
	if err := rulestore.HasRoom(e.dir); err != nil {
		return nil, errors.Join(err, os.RemoveAll(e.dir))
	}
	if err := e.open(ctx, step); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return e, nil
}

// folderPrefix begins the names of the folders of engines.
const folderPrefix = "vllmctl-rules-"

// removeOld removes what runs left that were killed. No run takes a day.
func removeOld() {
	left, _ := filepath.Glob(filepath.Join(os.TempDir(), folderPrefix+"*"))
	for _, folder := range left {
		if info, err := os.Lstat(folder); err == nil && info.IsDir() && time.Since(info.ModTime()) > 24*time.Hour {
			_ = os.RemoveAll(folder)
		}
	}
}

func (e *Engine) open(ctx context.Context, step time.Duration) error {
	var paths []string
	for _, f := range e.files {
		path := f
		if f == Builtin || f == BuiltinRaw {
			data, err := builtin(f)
			if err != nil {
				return err
			}
			path = filepath.Join(e.dir, f+".yaml")
			if err := os.WriteFile(path, data, 0o600); err != nil {
				return err
			}
		}
		if err := e.needsOf(path); err != nil {
			return fmt.Errorf("rules: %w", err)
		}
		paths = append(paths, path)
	}
	if len(e.needs) == 0 {
		return fmt.Errorf("rules: no rule in %s has a metric", strings.Join(e.files, ", "))
	}
	var err error
	if e.store, err = rulestore.Open(filepath.Join(e.dir, "data"), e.strategy(), block, e.longest+2*block); err != nil {
		return fmt.Errorf("rules: %w", err)
	}
	var errs []error
	if e.evaluation, errs = rulestore.NewEvaluation(ctx, e.store, e.begin, step, paths...); len(errs) > 0 {
		return fmt.Errorf("rules: %w", errors.Join(errs...))
	}
	return nil
}

// Keep stores what the processor emitted, as Prometheus's OTLP endpoint would, as far as the
// rules need it.
func (e *Engine) Keep(ctx context.Context, metrics pmetric.Metrics) error {
	kept := pmetric.NewMetrics()
	for _, rm := range metrics.ResourceMetrics().All() {
		var to pmetric.ResourceMetrics
		begun := false
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				if !e.needsMetric(m.Name(), m.Unit(), m.Type()) {
					continue
				}
				if !begun {
					to, begun = kept.ResourceMetrics().AppendEmpty(), true
					rm.Resource().CopyTo(to.Resource())
					to.ScopeMetrics().AppendEmpty()
				}
				m.CopyTo(to.ScopeMetrics().At(0).Metrics().AppendEmpty())
			}
		}
	}
	if kept.ResourceMetrics().Len() == 0 {
		return nil
	}
	return e.store.Take(ctx, kept)
}

// AddTarget stores the series of a target that the rules need under vLLM's own names. A
// series that a scrape does not have any more ends there, as in Prometheus: its API does not
// return these ends.
func (e *Engine) AddTarget(ctx context.Context, t *history.Target, p *history.Part) error {
	if t.Form != history.Raw {
		return nil
	}
	e.mu.Lock()
	before := e.present[t.Name]
	e.mu.Unlock()
	now := map[uint64]labels.Labels{}
	var out []rulestore.Series
	for i := range p.Series {
		s := &p.Series[i]
		name := s.Labels.Get(model.MetricNameLabel)
		if !e.ofTarget(name) || !e.wants(name) {
			continue
		}
		one := rulestore.Series{Labels: s.Labels}
		hash := s.Labels.Hash()
		_, live := before[hash]
		next := 0
		for _, at := range p.Times {
			has := next < len(s.Times) && s.Times[next] == at
			switch {
			case has:
				one.Times, one.Values = append(one.Times, at), append(one.Values, s.Values[next])
				next++
			case live:
				one.Times, one.Values = append(one.Times, at), append(one.Values, staleNaN)
			}
			live = has
		}
		if live {
			now[hash] = s.Labels
		}
		out = append(out, one)
	}
	if len(p.Times) > 0 {
		there := map[uint64]bool{}
		for i := range out {
			there[out[i].Labels.Hash()] = true
		}
		for hash, l := range before {
			if !there[hash] {
				out = append(out, rulestore.Series{Labels: l, Times: []int64{p.Times[0]}, Values: []float64{staleNaN}})
			}
		}
	}
	e.mu.Lock()
	e.present[t.Name] = now
	e.mu.Unlock()
	return e.append(ctx, out)
}

// staleNaN ends a series.
var staleNaN = math.Float64frombits(value.StaleNaN)

// foreign leaves out what the rules write themselves. A Prometheus that has the rules loaded has it too, of its own evaluation,
// and a rule could not write a series that is there already.
func (e *Engine) foreign(series []promapi.Series) []promapi.Series {
	return slices.DeleteFunc(series, func(s promapi.Series) bool { return e.writes(s.Labels.Get(model.MetricNameLabel)) })
}

// Add stores series that belong to no target. A selector without a name may choose those of targets, of the processor and of
// the rules as well, which are stored from there.
func (e *Engine) Add(ctx context.Context, series []promapi.Series) error {
	known := ourNames(e.store.Strategy.Name)
	var out []rulestore.Series
	for i := range series {
		if !e.has(known, series[i].Labels.Get(model.MetricNameLabel)) {
			out = append(out, rulestore.Series(series[i]))
		}
	}
	return e.append(ctx, out)
}

// append stores series of the current window, each once.
func (e *Engine) append(ctx context.Context, series []rulestore.Series) error {
	e.mu.Lock()
	series = slices.DeleteFunc(series, func(s rulestore.Series) bool {
		hash := s.Labels.Hash()
		again := e.added[hash]
		e.added[hash] = true
		return again
	})
	e.mu.Unlock()
	dropped, err := e.store.Append(ctx, series)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.dropped += dropped
	if n := e.store.DB.Head().NumSeries(); err == nil && n > e.mostSeries {
		err = fmt.Errorf("the rules need %d series, and the limit is %d; select fewer servers with --match, or fewer rules", n, e.mostSeries)
	}
	return err
}

// Evaluate evaluates the rules that are due in a window, and writes what is old to disk.
func (e *Engine) Evaluate(ctx context.Context, window history.Span) error {
	if err := e.evaluation.Until(ctx, window.To.Add(-time.Millisecond)); err != nil {
		return err
	}
	clear(e.added)
	return e.store.Compact(ctx)
}

// Finish returns what the rules found up to an end.
func (e *Engine) Finish(end time.Time) RulesFound {
	firings, problems, dropped := e.evaluation.Finish(end)
	found := RulesFound{Files: e.files, Firings: firings, Problems: problems}
	if e.dropped > 0 {
		found.Notes = append(found.Notes, fmt.Sprintf("%d samples for the rules are skipped: their timestamps are out of order", e.dropped))
	}
	if dropped > 0 {
		found.Notes = append(found.Notes, fmt.Sprintf("%d firings of rules are skipped: too many", dropped))
	}
	return found
}

// Close removes the storage.
func (e *Engine) Close() error {
	var err error
	if e.store != nil {
		err = e.store.Close()
	}
	return errors.Join(err, os.RemoveAll(e.dir))
}
