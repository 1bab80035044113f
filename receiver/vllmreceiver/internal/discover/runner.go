package discover

import (
	"cmp"
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
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/remote"
)

// The sets of addresses that one runner looks for.
const (
	setMechanisms = "mechanisms"
	setKubernetes = "kubernetes"
	setPool       = "inference_pool"
)

// Options are the options of a Runner.
type Options struct {
	Logger   *zap.Logger
	Defaults Defaults
	// Limit is the maximum number of targets.
	Limit int
	// Wanted is called with all targets to scrape, each address once, and with the
	// number of targets above the limit. One goroutine calls it, and it may block; its
	// context ends with the runner. If it returns false, it is called again after Retry.
	Wanted func(ctx context.Context, targets []Target, over int) bool
	// Obstacle, if not nil, is called when it changes why Kubernetes cannot be asked for
	// targets, with a sentence, or with "" once it can. It must not call the runner.
	Obstacle func(sentence string)
	// Counted is called before Wanted with what the relabelling rules keep; nil if this is
	// not wanted.
	Counted func(Counts)
	// Delay is how long a change may wait for further changes; 0 means 5 s.
	Delay time.Duration
	// Hold is how long the servers of a pool stay after a change of its selector, so
	// that the servers of both selectors do not end; 0 means twice Delay.
	Hold time.Duration
	// Retry is the time until a failed operation is tried again, such as a request that
	// Kubernetes denied; 0 means one minute.
	Retry time.Duration
}

// Runner runs the mechanisms.
type Runner struct {
	settings *Settings
	options  Options
	manager  *discovery.Manager
	metrics  *discovery.SDMetrics
	registry *prometheus.Registry
	// jobs ask Kubernetes until their context ends.
	jobs  []func(context.Context)
	pools chan *pool
	// podsChanged is signalled when the state of a pod has changed.
	podsChanged chan struct{}

	cancel context.CancelFunc
	wg     sync.WaitGroup

	// Only the goroutine of loop uses the fields below.

	groups map[string][]*targetgroup.Group
	// books have the state of the pods of each set.
	books map[string]*podBook
	pool  *pool
	// leavePool ends the watch of the pool's pods.
	leavePool context.CancelFunc
	// held are the targets of a pool before a change of its selector. They stay until
	// heldUntil, so that the new selector can find them again.
	held      []Target
	heldUntil <-chan time.Time
	targets   []Target
	// again is set after Wanted has returned false.
	again    <-chan time.Time
	reported bool
	warnings *warnings
	// denied are the warnings about what Kubernetes denies. Any goroutine may use it.
	denied *warnings
	// advised is the limit that the log has advised while there are more targets than the
	// limit, else 0.
	advised int
	// sharding is how the rules divide the targets; nil if they do not.
	sharding *sharding
	share    shareLog
	// short are the groups whose too short interval was logged.
	short map[string]bool
}

// NewRunner prepares the mechanisms. It returns an error if one of them can never work,
// for example if a certificate cannot be read or this process is not in a cluster.
func NewRunner(settings *Settings, options Options) (*Runner, error) {
	options.Delay = cmp.Or(options.Delay, 5*time.Second)
	options.Hold = cmp.Or(options.Hold, 2*options.Delay)
	options.Retry = cmp.Or(options.Retry, time.Minute)
	r := &Runner{
		settings: settings, options: options, registry: prometheus.NewRegistry(),
		pools: make(chan *pool, 1), warnings: newWarnings(), denied: newWarnings(),
		podsChanged: make(chan struct{}, 1), books: map[string]*podBook{}, short: map[string]bool{}, leavePool: func() {},
		sharding: shardingOf(settings.RelabelConfigs), share: shareLog{gap: 2 * options.Delay},
	}
	obstacles := newObstacles(options.Obstacle)
	var err error
	// The library requires a registry for its own metrics. It is not exposed: the
	// receiver has self-telemetry.
	r.metrics, err = discovery.CreateAndRegisterSDMetrics(r.registry)
	if err != nil {
		return nil, err
	}
	for set, configs := range r.configs() {
		r.books[set] = newPodBook(r.podsChanged)
		for _, c := range configs {
			if err := r.prepare(c, r.books[set], obstacles); err != nil {
				return nil, fmt.Errorf("%s: %w", set, err)
			}
		}
	}
	if form := settings.InferencePool; form != nil {
		// Its pods are asked for once it is found.
		access, err := r.probe(form.expand(&pool{}), obstacles)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", setPool, err)
		}
		f := &follower{
			access: access, form: form, changed: r.poolChanged, obstacles: obstacles, states: map[schema.GroupVersionResource]poolState{},
		}
		r.jobs = append(r.jobs, f.run)
	}
	return r, nil
}

// probe adds the check of the permissions of a discovery, and returns another access.
func (r *Runner) probe(sd *kubernetes.SDConfig, found *obstacles) (*access, error) {
	access, err := newAccess(sd, r.options.Logger, r.denied)
	if err != nil {
		return nil, err
	}
	p := &prober{access: access, again: r.options.Retry, found: found}
	r.jobs = append(r.jobs, p.run)
	return newAccess(sd, r.options.Logger, r.denied)
}

// prepare returns the mistakes of a mechanism that its library finds. The manager would
// only log them.
func (r *Runner) prepare(c discovery.Config, book *podBook, found *obstacles) error {
	if sd, ok := c.(*kubernetes.SDConfig); ok {
		access, err := r.probe(sd, found)
		if err != nil {
			return err
		}
		if hasPods(sd) {
			w := &podWatcher{access: access, book: book}
			r.jobs = append(r.jobs, w.run)
		}
	}
	_, err := c.NewDiscoverer(discovery.DiscovererOptions{
		Logger: newLogger(zap.NewNop()), Metrics: r.metrics.MechanismMetrics[c.Name()], SetName: "prepare",
	})
	return err
}

// configs returns the current mechanisms of each set.
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

// sources returns the discovered addresses with their rules. The configured rules are
// after those of a short form.
func (r *Runner) sources() []source {
	own := r.settings.RelabelConfigs
	out := []source{{groups: r.groups[setMechanisms], chains: [][]*relabel.Config{own}, pods: r.books[setMechanisms]}}
	if k := r.settings.Kubernetes; k != nil {
		out = append(out, source{
			groups: r.groups[setKubernetes], chains: [][]*relabel.Config{append(k.Pods.rules(cmp.Or(k.Port, defaultPort)), own...)},
			pods: r.books[setKubernetes], choose: k.Pods.scraped,
		})
	}
	if r.pool != nil {
		s := source{
			groups: r.groups[setPool], attributes: map[string]string{PoolAttribute: r.settings.InferencePool.Name},
			labels: map[string]string{
				poolNameLabel: r.settings.InferencePool.Name, poolNamespaceLabel: r.settings.InferencePool.Namespace,
			},
			pods: r.books[setPool], choose: r.settings.InferencePool.Pods.scraped,
		}
		for _, port := range r.pool.ports {
			s.chains = append(s.chains, append(r.settings.InferencePool.Pods.rules(port), own...))
		}
		out = append(out, s)
	}
	return out
}

// Start starts the discovery.
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
	for _, run := range r.jobs {
		r.wg.Go(func() { run(ctx) })
	}
	return nil
}

// Shutdown stops the discovery. It waits until Wanted has returned for the last time or
// ctx ends. It is safe without Start.
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

// poolChanged passes the new state of the pool to the loop. Its calls follow each other.
func (r *Runner) poolChanged(p *pool) {
	select {
	case <-r.pools:
		// loop has not read this older state yet.
	default:
	}
	r.pools <- p
}

// loop makes the updates. Each pod of a fleet that rolls out changes several times, and an
// update goes through all addresses. So after an update, changes of pods wait four times as
// long as it has taken.
func (r *Runner) loop(ctx context.Context) {
	// pods is nil while changes of pods wait, and rested ends the wait.
	pods := r.podsChanged
	var rested <-chan time.Time
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
		case <-pods:
		case <-rested:
			pods, rested = r.podsChanged, nil
			continue
		case p := <-r.pools:
			r.changePool(ctx, p)
		case <-r.heldUntil:
			r.held, r.heldUntil = nil, nil
		case <-r.again:
		case <-r.share.due:
			r.logShare()
			continue
		}
		if ctx.Err() == nil {
			began := time.Now()
			r.update(ctx)
			pods, rested = nil, time.After(min(4*time.Since(began), r.options.Delay))
		}
	}
}

// changePool starts to discover the servers of the changed pool.
func (r *Runner) changePool(ctx context.Context, p *pool) {
	before := r.pool
	r.pool = p
	logger := r.options.Logger.With(zap.String("pool", r.settings.InferencePool.Name))
	switch {
	case p == nil:
		logger.Info("The InferencePool is gone; its servers are no longer scraped")
		r.held, r.heldUntil = nil, nil
	case before == nil:
		logger.Info("Found the InferencePool", zap.String("selector", p.selector), zap.Ints("ports", p.ports))
	default:
		logger.Info("The InferencePool has changed", zap.String("selector", p.selector), zap.Ints("ports", p.ports))
		if before.selector != p.selector {
			// The new selector has found no server yet. Servers that it will find too
			// must not end.
			r.held = slices.DeleteFunc(slices.Clone(r.targets), func(t Target) bool {
				return t.Attributes[PoolAttribute] == ""
			})
			r.heldUntil = time.After(r.options.Hold)
		}
	}
	if p == nil || before == nil || before.selector != p.selector {
		delete(r.groups, setPool)
		r.followPods(ctx)
		// The manager logs errors; prepare has tried the same configuration before.
		_ = r.manager.ApplyConfig(r.configs())
	}
}

// followPods watches the pods of the changed pool.
func (r *Runner) followPods(ctx context.Context) {
	r.leavePool()
	r.leavePool = func() {}
	delete(r.books, setPool)
	if r.pool == nil {
		return
	}
	access, err := newAccess(r.settings.InferencePool.expand(r.pool), r.options.Logger, r.denied)
	if err != nil {
		r.options.Logger.Warn("The pods of the InferencePool cannot be watched, so pods that are being deleted are not recognised: " +
			remote.Text(err.Error()))
		return
	}
	ctx, r.leavePool = context.WithCancel(ctx)
	w := &podWatcher{access: access, book: newPodBook(r.podsChanged)}
	r.books[setPool] = w.book
	r.wg.Go(func() { w.run(ctx) })
}

// update computes the targets to scrape and calls Wanted.
func (r *Runner) update(ctx context.Context) {
	all := r.options.Defaults.resolve(r.sources(), r.sharding)
	found := all.targets
	known := addressesOf(found)
	for _, t := range r.held {
		if !known[t.URL.String()] {
			found = append(found, t)
		}
	}
	r.warnOfShort(all.short)
	for reason, n := range all.unusable {
		r.warnings.warn(r.options.Logger, "A discovered target cannot be scraped: "+remote.Text(reason), zap.Int("targets", n))
	}
	scraped := addressesOf(r.targets)
	targets, over := limit(found, scraped, r.options.Limit)
	r.logChanges(targets, scraped, over)
	r.noteShare(all.tally)
	if r.options.Counted != nil {
		counts := all.tally.Counts
		if r.sharding == nil {
			counts.Shared = -1
		}
		r.options.Counted(counts)
	}
	r.targets = targets
	r.again = nil
	if !r.options.Wanted(ctx, targets, over) {
		r.again = time.After(r.options.Retry)
	}
}

// addressesOf returns the full addresses of targets.
func addressesOf(targets []Target) map[string]bool {
	out := make(map[string]bool, len(targets))
	for i := range targets {
		out[targets[i].URL.String()] = true
	}
	return out
}
