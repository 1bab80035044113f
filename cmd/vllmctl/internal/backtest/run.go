package backtest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"sync"
	"time"

	"github.com/prometheus/prometheus/model/labels"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/backtest/history"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/backtest/promapi"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/backtest/replay"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/rulestore"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/probe"
)

// Server is the API that the history is read from; promapi.Client is one.
type Server interface {
	history.Source
	Series(ctx context.Context, selector string, from, to time.Time) ([]labels.Labels, error)
}

// Options are what a backtest is asked for.
type Options struct {
	Server Server
	// Address is that of the server without secrets.
	Address string
	// Period is what is judged; Warmup is read before it, for the baselines.
	Period history.Span
	Warmup time.Duration
	// Match are further matchers of the targets, as in a selector: job="vllm",cluster="a".
	Match string
	// Receiver and Processor are the settings of the components.
	Receiver  *vllmreceiver.Config
	Processor *vllmprocessor.Config
	// Version is the vLLM version of targets with vLLM's own names.
	Version string
	// Parallel is how many requests are made at a time.
	Parallel int
	// MaxTargets is how many targets are judged.
	MaxTargets int
	// Memory is how much of the history is in memory at a time, in bytes; 0 means MostMemory.
	Memory int64
	// Rules evaluates rules; nil for none.
	Rules *Engine
	// Progress is called with the number of parts that are done and of all, first before one
	// is read; it may be nil.
	Progress func(done, total int)
}

// MostMemory is room for an hour of 500 servers with 3000 series each, which is read in parts of five minutes.
const MostMemory = 2 << 30

// Outcome is what a backtest found about the targets.
type Outcome struct {
	Found   history.Found
	Results []replay.Result
	// Alerts are the user's own alerts that fired.
	Alerts []rulestore.Firing
	// AlertsDropped counts what was too much of them.
	AlertsDropped int
	Load          history.LoadStats
}

// maxPoolParts bounds the parts that are in memory where all targets are judged in step.
const maxPoolParts = 20

// window returns the length of the windows. With a pool all parts of a window are in memory.
func window(targets int, pool bool) time.Duration {
	switch {
	case !pool || targets <= maxPoolParts:
		return time.Hour
	case targets <= 5*maxPoolParts:
		return 15 * time.Minute
	}
	return 5 * time.Minute
}

// ownAlerts selects the alerts of the user.
const ownAlerts = `ALERTS{alertstate="firing"}`

// Run reads the history and judges it.
func Run(ctx context.Context, o *Options) (*Outcome, error) {
	whole := history.Span{From: o.Period.From.Add(-o.Warmup), To: o.Period.To}
	found, err := find(ctx, o, whole)
	if err != nil {
		return nil, err
	}
	out := &Outcome{Found: found}
	if len(found.Targets) == 0 {
		return out, nil
	}
	r := &run{o: o, out: out, pool: o.Processor.Pool.HasValue()}
	r.loader = &history.Loader{Source: o.Server, Most: cmp.Or(o.Memory, MostMemory)}
	if err := r.judges(ctx, whole); err != nil {
		return nil, err
	}
	err = r.windows(ctx, history.Windows(whole, window(len(found.Targets), r.pool)))
	for _, j := range r.judged {
		results, failed := j.Finish(context.WithoutCancel(ctx))
		out.Results = append(out.Results, results...)
		err = errors.Join(err, failed)
	}
	out.Alerts, out.AlertsDropped = r.alerts.finish(), r.alerts.dropped
	out.Load = r.loader.Stats()
	return out, err
}

// mostFound is how large the labels of the series that show the targets may be, in bytes.
const mostFound = 256 << 20

// find looks for the targets, a day at a time so that no server has to read a long period
// for one answer.
func find(ctx context.Context, o *Options, whole history.Span) (history.Found, error) {
	chosen, err := history.MatchLabels(o.Match)
	if err != nil {
		return history.Found{}, fmt.Errorf("--match: %w", err)
	}
	var all []labels.Labels
	days, size := map[uint64]int{}, 0
	selector := history.Discovery(o.Match, o.Receiver.Prefixes)
	for _, day := range history.Windows(whole, 24*time.Hour) {
		series, err := o.Server.Series(ctx, selector, day.From, day.To)
		if err != nil {
			return history.Found{}, err
		}
		for _, s := range series {
			h := s.Hash()
			days[h]++
			if days[h] > 1 {
				continue
			}
			all = append(all, s)
			if size += int(s.ByteSize()); size > mostFound {
				return history.Found{}, errors.New("the labels of the servers exceed 256 MiB; select fewer servers with --match")
			}
		}
	}
	return history.Targets(all, days, o.MaxTargets, chosen...), nil
}

// run is one backtest that is under way.
type run struct {
	o      *Options
	out    *Outcome
	loader *history.Loader
	pool   bool
	judged []*replay.Judge
	// of are the targets of each judge, by their index.
	of     [][]int
	alerts alertLog
}

// judges makes a judge for each target, or one for all where there is a pool.
func (r *run) judges(ctx context.Context, whole history.Span) error {
	replays, err := probe.NewReplays(r.o.Receiver)
	if err != nil {
		return err
	}
	instances := map[string]int{}
	for _, t := range r.out.Found.Targets {
		instances[t.Instance()]++
	}
	settings := &replay.Settings{
		Receiver: r.o.Receiver, Processor: judging(r.o.Processor), Version: r.o.Version, Begin: whole.From, Period: r.o.Period,
	}
	if r.o.Rules != nil {
		settings.Keep = r.o.Rules.Keep
	}
	shared := func(t *history.Target) bool { return instances[t.Instance()] > 1 }
	all := r.out.Found.Targets
	if r.pool {
		j, err := replay.New(ctx, settings, replays, all, shared)
		if err != nil {
			return err
		}
		indexes := make([]int, len(all))
		for i := range indexes {
			indexes[i] = i
		}
		r.judged, r.of = append(r.judged, j), append(r.of, indexes)
		return nil
	}
	for i, t := range all {
		j, err := replay.New(ctx, settings, replays, []*history.Target{t}, shared)
		if err != nil {
			return err
		}
		r.judged, r.of = append(r.judged, j), append(r.of, []int{i})
	}
	return nil
}

// judging returns the settings of a processor that judges a history: with the signals, which
// are the evidence, and without a storage, since nothing outlives it.
func judging(config *vllmprocessor.Config) *vllmprocessor.Config {
	own := *config
	own.Storage = nil
	own.Diagnosis.Enabled = true
	own.Metrics = maps.Clone(own.Metrics)
	if own.Metrics == nil {
		own.Metrics = map[string]vllmprocessor.MetricConfig{}
	}
	on := true
	for _, name := range []string{"severity", "condition", "cause", "cause_share", "signal", "signal_ratio"} {
		own.Metrics["vllm.diagnosis."+name] = vllmprocessor.MetricConfig{Enabled: &on}
	}
	return &own
}

// windows judges window after window. Readers are ahead of the judges by a few parts.
func (r *run) windows(ctx context.Context, windows []history.Span) error {
	ctx, cancel := context.WithCancelCause(ctx)
	selectors := []string{ownAlerts}
	if r.o.Rules != nil {
		selectors = append(selectors, r.o.Rules.Selectors()...)
	}
	extra := len(selectors)
	for _, t := range r.out.Found.Targets {
		selectors = append(selectors, t.Selector(r.o.Receiver.Prefixes))
	}
	readers := &readers{loader: r.loader, selectors: selectors, windows: windows, fail: cancel}
	ahead := r.o.Parallel + runtime.GOMAXPROCS(0) + extra
	if r.pool {
		ahead += len(r.out.Found.Targets)
	}
	readers.start(ctx, r.o.Parallel, ahead)
	defer readers.wait()
	defer cancel(nil)
	done, total := 0, len(windows)*len(selectors)
	if r.o.Progress != nil {
		r.o.Progress(done, total)
	}
	for w, window := range windows {
		for i := range extra {
			series, err := readers.take(ctx, w, i)
			if err == nil {
				err = r.extra(ctx, selectors[i], series)
				r.loader.Release(history.Size(series))
			}
			if err != nil {
				return err
			}
		}
		var mu sync.Mutex
		if err := each(len(r.judged), func(j int) error {
			parts, held := make([]*history.Part, len(r.of[j])), int64(0)
			defer func() { r.loader.Release(held) }()
			for i, t := range r.of[j] {
				series, err := readers.take(ctx, w, extra+t)
				if err != nil {
					return err
				}
				held += history.Size(series)
				if r.o.Rules != nil {
					series = r.o.Rules.foreign(series)
				}
				if len(series) > 0 {
					target := r.out.Found.Targets[t]
					parts[i] = history.NewPart(target, series)
					if r.o.Rules != nil {
						if err := r.o.Rules.AddTarget(ctx, target, parts[i]); err != nil {
							return fmt.Errorf("rules: %w", err)
						}
					}
				}
				mu.Lock()
				done++
				if r.o.Progress != nil {
					r.o.Progress(done+(w+1)*extra, total)
				}
				mu.Unlock()
			}
			return r.judged[j].Window(ctx, window, parts)
		}); err != nil {
			return err
		}
		if r.o.Rules != nil {
			if err := r.o.Rules.Evaluate(ctx, window); err != nil {
				return fmt.Errorf("rules: %w", err)
			}
		}
	}
	return nil
}

// extra takes series that belong to no target.
func (r *run) extra(ctx context.Context, selector string, series []promapi.Series) error {
	if selector == ownAlerts {
		r.alerts.see(series)
		return nil
	}
	return r.o.Rules.Add(ctx, series)
}

// each calls f for the numbers below n, as many at a time as there are processors. It
// returns the error of the lowest number that has one.
func each(n int, f func(i int) error) error {
	errs := make([]error, n)
	next := make(chan int)
	var wg sync.WaitGroup
	for range min(n, runtime.GOMAXPROCS(0)) {
		wg.Go(func() {
			for i := range next {
				errs[i] = f(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// readers read parts in the order in which they are needed.
type readers struct {
	loader    *history.Loader
	selectors []string
	windows   []history.Span
	// fail ends everything at the first part that cannot be read.
	fail context.CancelCauseFunc

	// parts has a place for each part of the windows that are being read.
	mu    sync.Mutex
	parts map[int]chan []promapi.Series
	// room has an element for each part that was read and not taken yet, or is being read.
	room chan struct{}
	done sync.WaitGroup
}

func (r *readers) start(ctx context.Context, parallel, ahead int) {
	r.parts, r.room = map[int]chan []promapi.Series{}, make(chan struct{}, ahead)
	queue := make(chan int)
	r.done.Go(func() {
		defer close(queue)
		for i := range len(r.windows) * len(r.selectors) {
			select {
			case r.room <- struct{}{}:
			case <-ctx.Done():
				return
			}
			select {
			case queue <- i:
			case <-ctx.Done():
				return
			}
		}
	})
	for range max(1, parallel) {
		r.done.Go(func() {
			for i := range queue {
				series, err := r.loader.Load(ctx, r.selectors[i%len(r.selectors)], r.windows[i/len(r.selectors)])
				if err != nil {
					r.fail(err)
					return
				}
				r.place(i) <- series
			}
		})
	}
}

// place is where a part is put.
func (r *readers) place(i int) chan []promapi.Series {
	r.mu.Lock()
	defer r.mu.Unlock()
	c, known := r.parts[i]
	if !known {
		c = make(chan []promapi.Series, 1)
		r.parts[i] = c
	}
	return c
}

// take waits for a part.
func (r *readers) take(ctx context.Context, window, selector int) ([]promapi.Series, error) {
	i := window*len(r.selectors) + selector
	select {
	case one := <-r.place(i):
		r.mu.Lock()
		delete(r.parts, i)
		r.mu.Unlock()
		<-r.room
		return one, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (r *readers) wait() { r.done.Wait() }
