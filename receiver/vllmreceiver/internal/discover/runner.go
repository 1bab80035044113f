package discover

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/discovery"
	"github.com/prometheus/prometheus/discovery/kubernetes"
	"github.com/prometheus/prometheus/discovery/targetgroup"
	"github.com/prometheus/prometheus/model/relabel"
	"go.uber.org/zap"

	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/remote"
)

// The sets of addresses that one runner looks for.
const (
	setMechanisms = "mechanisms"
	setKubernetes = "kubernetes"
	setPool       = "inference_pool"
)

// Options are what a Runner needs to know besides the settings.
type Options struct {
	Logger   *zap.Logger
	Defaults Defaults
	// Limit is the most targets.
	Limit int
	// Wanted is told all targets that are wanted now, each address once, and how
	// many more there are above the limit. It is called by one goroutine and
	// may take its time; its context ends with the runner. Where it returns
	// false, it is told the same again after Retry.
	Wanted func(ctx context.Context, targets []Target, over int) bool
	// Delay is the most that a change waits for others; 0 is 5 s.
	Delay time.Duration
	// Hold is how long the servers of a pool whose selector has changed stay, so
	// that those which the new selector finds too do not end meanwhile.
	Hold time.Duration
	// Retry is the time between two tries of what has failed, such as to get what
	// Kubernetes denied; 0 is one minute.
	Retry time.Duration
}

// Runner runs the mechanisms.
type Runner struct {
	settings *Settings
	options  Options
	manager  *discovery.Manager
	metrics  *discovery.SDMetrics
	registry *prometheus.Registry
	probers  []*prober
	follower *follower
	pools    chan *pool
	// podsChanged is signalled when the state of a pod has changed.
	podsChanged chan struct{}
	watchers    []*podWatcher

	cancel context.CancelFunc
	wg     sync.WaitGroup

	// Below: only for the goroutine of loop.

	groups map[string][]*targetgroup.Group
	// books have the state of the pods of each set.
	books map[string]*podBook
	pool  *pool
	// leavePool ends the watch of the pods of the pool.
	leavePool context.CancelFunc
	// held are the targets of a pool whose selector has just changed: they stay
	// until the new selector has had the time to find them again.
	held      []Target
	heldUntil <-chan time.Time
	targets   []Target
	// again is set while Wanted has not done all.
	again    <-chan time.Time
	reported bool
	said     *saidOnce
	// limited is true while there are more targets than the limit.
	limited bool
	// short are the groups of which it was said that their interval is too short.
	short map[string]bool
}

// NewRunner prepares the mechanisms. What cannot work at all, such as a
// certificate that cannot be read or a cluster that this process is not in, is
// an error.
func NewRunner(settings *Settings, options Options) (*Runner, error) {
	if options.Delay == 0 {
		options.Delay = 5 * time.Second
	}
	if options.Hold == 0 {
		options.Hold = 2 * options.Delay
	}
	if options.Retry == 0 {
		options.Retry = time.Minute
	}
	r := &Runner{
		settings: settings, options: options, registry: prometheus.NewRegistry(),
		pools: make(chan *pool, 1), said: newSaidOnce(),
		podsChanged: make(chan struct{}, 1), books: map[string]*podBook{}, short: map[string]bool{}, leavePool: func() {},
	}
	var err error
	// The library's own metrics go into a registry that nobody reads: the
	// collector has other ways to tell the same.
	r.metrics, err = discovery.CreateAndRegisterSDMetrics(r.registry)
	if err != nil {
		return nil, err
	}
	for set, configs := range r.configs() {
		r.books[set] = newPodBook(r.podsChanged)
		for _, c := range configs {
			if err := r.prepare(c, r.books[set]); err != nil {
				return nil, fmt.Errorf("%s: %w", set, err)
			}
		}
	}
	if settings.InferencePool != nil {
		r.follower, err = newFollower(settings.InferencePool, options.Logger, r.poolChanged)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", setPool, err)
		}
	}
	return r, nil
}

// prepare finds the mistakes of a mechanism that only its library can see, which
// the manager would only log.
func (r *Runner) prepare(c discovery.Config, book *podBook) error {
	if sd, ok := c.(*kubernetes.SDConfig); ok {
		p, err := newProber(sd, r.options.Logger, r.options.Retry)
		if err != nil {
			return err
		}
		r.probers = append(r.probers, p)
		w, err := newPodWatcher(sd, r.options.Logger, book)
		if err != nil {
			return err
		}
		if w != nil {
			r.watchers = append(r.watchers, w)
		}
	}
	_, err := c.NewDiscoverer(discovery.DiscovererOptions{
		Logger: newLogger(zap.NewNop()), Metrics: r.metrics.MechanismMetrics[c.Name()], SetName: "prepare",
	})
	return err
}

// configs are the mechanisms of each set now.
func (r *Runner) configs() map[string]discovery.Configs {
	out := map[string]discovery.Configs{}
	if len(r.settings.Mechanisms) > 0 {
		out[setMechanisms] = bounded(r.settings.Mechanisms)
	}
	if k := r.settings.Kubernetes; k != nil {
		out[setKubernetes] = discovery.Configs{k.Pods.expand(k.Namespaces, k.Selector)}
	}
	if r.pool != nil {
		out[setPool] = discovery.Configs{r.settings.InferencePool.expand(r.pool)}
	}
	return out
}

// sources are the discovered addresses with what is done to them. The user's own
// rules come after those of a short form.
func (r *Runner) sources() []source {
	own := r.settings.RelabelConfigs
	out := []source{{groups: r.groups[setMechanisms], chains: [][]*relabel.Config{own}, pods: r.books[setMechanisms]}}
	if k := r.settings.Kubernetes; k != nil {
		port := k.Port
		if port == 0 {
			port = defaultPort
		}
		out = append(out, source{
			groups: r.groups[setKubernetes], chains: [][]*relabel.Config{append(k.Pods.rules(port), own...)},
			pods: r.books[setKubernetes], choose: k.Pods.scraped,
		})
	}
	if r.pool != nil {
		s := source{
			groups: r.groups[setPool], attributes: map[string]string{PoolAttribute: r.settings.InferencePool.Name},
			pods: r.books[setPool], choose: r.settings.InferencePool.Pods.scraped,
		}
		for _, port := range r.pool.ports {
			s.chains = append(s.chains, append(r.settings.InferencePool.Pods.rules(port), own...))
		}
		out = append(out, s)
	}
	return out
}

// Start starts to look for targets.
func (r *Runner) Start() error {
	ctx, cancel := context.WithCancel(context.Background())
	r.manager = discovery.NewManager(ctx, newLogger(r.options.Logger), r.registry, r.metrics,
		discovery.Updatert(r.options.Delay), discovery.Name("otelcol_vllm"))
	if r.manager == nil {
		cancel()
		return errors.New("the discovery manager could not be made")
	}
	r.cancel = cancel
	if err := r.manager.ApplyConfig(r.configs()); err != nil {
		cancel()
		return err
	}
	r.wg.Go(func() { _ = r.manager.Run() })
	r.wg.Go(func() { r.loop(ctx) })
	for _, p := range r.probers {
		r.wg.Go(func() { p.run(ctx) })
	}
	for _, w := range r.watchers {
		r.wg.Go(func() { w.run(ctx) })
	}
	if r.follower != nil {
		r.wg.Go(func() { r.follower.run(ctx) })
	}
	return nil
}

// Shutdown stops to look for targets and waits until Wanted has returned for
// the last time, or ctx ends. It is safe without Start.
func (r *Runner) Shutdown(ctx context.Context) error {
	if r.cancel == nil {
		return nil
	}
	r.cancel()
	ended := make(chan struct{})
	go func() { r.wg.Wait(); close(ended) }()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("discovery did not end in time: %w", ctx.Err())
	}
}

// poolChanged passes the newest state of the pool to the loop.
func (r *Runner) poolChanged(p *pool) {
	for {
		select {
		case r.pools <- p:
			return
		default:
		}
		// An older state that nobody has read yet is of no use.
		select {
		case <-r.pools:
		default:
		}
	}
}

func (r *Runner) loop(ctx context.Context) {
	for {
		select {
		case groups, ok := <-r.manager.SyncCh():
			if !ok {
				return
			}
			r.groups = groups
			for set, book := range r.books {
				book.forget(groups[set])
			}
		case <-r.podsChanged:
		case p := <-r.pools:
			r.changePool(ctx, p)
		case <-r.heldUntil:
			r.held, r.heldUntil = nil, nil
		case <-r.again:
		}
		if ctx.Err() == nil {
			r.tell(ctx)
		}
	}
}

// changePool starts to look for the servers of the pool as it is now.
func (r *Runner) changePool(ctx context.Context, p *pool) {
	before := r.pool
	r.pool = p
	switch {
	case p == nil:
		r.options.Logger.Info("The InferencePool is gone; its servers are not scraped any more", zap.String("pool", r.settings.InferencePool.Name))
		r.held, r.heldUntil = nil, nil
	case before == nil:
		r.options.Logger.Info("Found the InferencePool", zap.String("pool", r.settings.InferencePool.Name),
			zap.String("selector", p.selector), zap.Ints("ports", p.ports))
	default:
		r.options.Logger.Info("The InferencePool has changed", zap.String("pool", r.settings.InferencePool.Name),
			zap.String("selector", p.selector), zap.Ints("ports", p.ports))
		if before.selector != p.selector {
			// The new selector begins with nothing. Servers that it selects too
			// should not end meanwhile.
			r.held = slices.DeleteFunc(slices.Clone(r.targets), func(t Target) bool {
				return t.Attributes[PoolAttribute] == ""
			})
			r.heldUntil = time.After(r.options.Hold)
		}
	}
	if p == nil || before == nil || before.selector != p.selector {
		delete(r.groups, setPool)
		r.followPods(ctx)
		// The manager logs what fails; prepare has tried the same before.
		_ = r.manager.ApplyConfig(r.configs())
	}
}

// followPods watches the pods of the pool as it is now.
func (r *Runner) followPods(ctx context.Context) {
	r.leavePool()
	r.leavePool = func() {}
	delete(r.books, setPool)
	if r.pool == nil {
		return
	}
	book := newPodBook(r.podsChanged)
	w, err := newPodWatcher(r.settings.InferencePool.expand(r.pool), r.options.Logger, book)
	if err != nil {
		r.options.Logger.Warn("The pods of the InferencePool cannot be watched; whether they are being deleted is not known: " +
			remote.Text(err.Error()))
		return
	}
	ctx, r.leavePool = context.WithCancel(ctx)
	r.books[setPool] = book
	r.wg.Go(func() { w.run(ctx) })
}

// tell finds out which targets are wanted now and says so.
func (r *Runner) tell(ctx context.Context) {
	all := r.options.Defaults.resolve(r.sources())
	found := all.targets
	known := map[string]bool{}
	for i := range found {
		known[found[i].URL.String()] = true
	}
	for _, t := range r.held {
		if !known[t.URL.String()] {
			found = append(found, t)
		}
	}
	r.sayShort(all.short)
	for reason, n := range all.unusable {
		r.said.warn(r.options.Logger, "A discovered target cannot be scraped: "+remote.Text(reason), zap.Int("targets", n))
	}
	scraped := map[string]bool{}
	for i := range r.targets {
		scraped[r.targets[i].URL.String()] = true
	}
	targets, over := limit(found, scraped, r.options.Limit)
	r.report(targets, scraped, over)
	r.targets = targets
	r.again = nil
	if !r.options.Wanted(ctx, targets, over) {
		r.again = time.After(r.options.Retry)
	}
}
