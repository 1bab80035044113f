package vllmreceiver

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/discover"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/emit"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/scrape"
)

// targetDiscovery adds discovered targets to the receiver, and removes those that are gone.
type targetDiscovery struct {
	receiver *vllmReceiver
	runner   *discover.Runner
	// configured are the addresses of the configuration. Discovery ignores them.
	configured map[string]bool
	// keys are the identities of these targets, with their instances.
	keys map[string]string
	// same is how many discovered targets shared an identity when they were last compared.
	same int
	// scraped are the discovered targets, by address. Only the runner's
	// goroutine uses it.
	scraped map[string]discover.Target
	// notStarted is how many targets could not be started in the last attempt.
	notStarted int
}

// removals is how many targets are ended at a time. Each end is sent through the
// pipeline, which may be slow.
const removals = 8

// startDiscovery starts the discovery; it returns nil if none is configured.
func startDiscovery(r *vllmReceiver, configured []scrape.Server) (*targetDiscovery, error) {
	cfg := r.config
	if !cfg.Discovery.IsSet() {
		return nil, nil
	}
	d := &targetDiscovery{receiver: r, configured: map[string]bool{}, keys: map[string]string{}, scraped: map[string]discover.Target{}}
	for _, t := range configured {
		d.configured[t.Address.String()] = true
		d.keys[scrape.KeyOf(cfg, t.Address, t.Attributes, nil)] = scrape.InstanceID(t.Address)
	}
	var err error
	d.runner, err = discover.NewRunner(&cfg.Discovery.Settings, discover.Options{
		Logger:   r.settings.Logger,
		Defaults: discover.Defaults{Interval: cfg.Controller.CollectionInterval, Timeout: cfg.Client.Timeout},
		Limit:    cfg.Limits.Targets, Wanted: d.reconcile, Obstacle: r.status.hindered,
		Counted: func(c discover.Counts) { r.counts.Store(&c) },
	})
	if err != nil {
		return nil, err
	}
	return d, d.runner.Start()
}

func (d *targetDiscovery) shutdown(ctx context.Context) error {
	if d == nil {
		return nil
	}
	return d.runner.Shutdown(ctx)
}

// reconcile ends the targets that are gone and starts those that are new. A target that
// has changed is ended and started again, because its attributes identify its series. It
// returns false if a target could not be started or an end was refused, so that it is
// called again.
func (d *targetDiscovery) reconcile(ctx context.Context, wanted []discover.Target, over int) bool {
	d.receiver.overflow.Store(int64(over))
	wanted = slices.DeleteFunc(slices.Clone(wanted), func(t discover.Target) bool { return d.configured[t.URL.String()] })
	next := map[string]discover.Target{}
	for _, t := range d.apart(wanted) {
		next[t.URL.String()] = t
	}
	d.receiver.resend(ctx, pcommon.NewTimestampFromTime(time.Now()))
	slots := make(chan struct{}, removals)
	var wg sync.WaitGroup
	for address, t := range d.scraped {
		if same, ok := next[address]; ok && same.Equal(&t) {
			continue
		}
		delete(d.scraped, address)
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			if err := d.receiver.Remove(ctx, t.URL); err != nil && ctx.Err() == nil {
				d.receiver.settings.Logger.Warn("The pipeline refused the staleness markers of a removed target; they are sent again every minute",
					zap.String("target", scrape.InstanceID(t.URL)), zap.Error(err))
			}
		})
	}
	wg.Wait()
	var failed []error
	for address, t := range next {
		if ctx.Err() != nil {
			break
		}
		if _, ok := d.scraped[address]; ok {
			d.receiver.setPod(t.URL, (*emit.Pod)(t.Pod))
			continue
		}
		if err := d.receiver.Add(ctx, scrape.Discovered(d.receiver.config, &t)); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", scrape.InstanceID(t.URL), err))
			continue
		}
		d.scraped[address] = t
	}
	if ctx.Err() == nil {
		d.logFailed(failed)
	}
	return len(failed) == 0 && !d.receiver.owes()
}

// observeCounts observes how many targets discovery has found; nothing before it has.
func observeCounts(o metric.Int64Observer, name attribute.KeyValue, counts *discover.Counts) {
	if counts == nil {
		return
	}
	for stage, n := range map[string]int{"found": counts.Found, "shared": counts.Shared, "kept": counts.Kept} {
		if n >= 0 {
			o.Observe(int64(n), metric.WithAttributeSet(attribute.NewSet(name, attribute.String("stage", stage))))
		}
	}
}

// logFailed logs that targets cannot be started, each time their number has changed.
func (d *targetDiscovery) logFailed(failed []error) {
	if len(failed) > 0 && len(failed) != d.notStarted {
		d.receiver.settings.Logger.Warn("Discovered targets cannot be started; this is tried again every minute. The first one: "+
			failed[0].Error(), zap.Int("targets", len(failed)))
	}
	d.notStarted = len(failed)
}

// apart returns the discovered targets with an identity for each. Those that share one get their
// address as the instance; one that has the instance of another target even then is left out.
func (d *targetDiscovery) apart(wanted []discover.Target) []discover.Target {
	cfg := d.receiver.config
	named := map[string][]string{}
	for key, instance := range d.keys {
		named[key] = []string{instance}
	}
	keys := make([]string, len(wanted))
	for i, t := range wanted {
		keys[i] = scrape.KeyOf(cfg, t.URL, nil, t.Attributes)
		named[keys[i]] = append(named[keys[i]], scrape.InstanceID(t.URL))
	}
	taken := map[string]string{}
	maps.Copy(taken, d.keys)
	out := make([]discover.Target, 0, len(wanted))
	same, example := 0, ""
	for i, t := range wanted {
		key := keys[i]
		if twins := named[key]; len(twins) > 1 {
			same++
			if same == 1 {
				example = fmt.Sprintf("%s and %s", twins[0], twins[1])
			}
			t.Attributes = maps.Clone(t.Attributes)
			t.Attributes[scrape.InstanceAttribute] = scrape.InstanceID(t.URL)
			key = scrape.KeyOf(cfg, t.URL, nil, t.Attributes)
		}
		if _, twin := taken[key]; !twin {
			taken[key] = scrape.InstanceID(t.URL)
			out = append(out, t)
		}
	}
	if same != d.same && same > 0 {
		d.receiver.settings.Logger.Warn("Several targets have the same service.instance.id, for example "+example+
			". Each gets its address as the id; of targets with the same address, only the first is scraped. "+
			"Give each its own label instance, or remove that label", zap.Int("targets", same), zap.Int("left_out", len(wanted)-len(out)))
	}
	d.same = same
	return out
}
