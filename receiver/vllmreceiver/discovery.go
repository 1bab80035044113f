package vllmreceiver

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/discover"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/emit"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/metadata"
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
func startDiscovery(r *vllmReceiver, configured []target) (*targetDiscovery, error) {
	cfg := r.shared.config
	if !cfg.Discovery.IsSet() {
		return nil, nil
	}
	d := &targetDiscovery{receiver: r, configured: map[string]bool{}, keys: map[string]string{}, scraped: map[string]discover.Target{}}
	for _, t := range configured {
		d.configured[t.address.String()] = true
		d.keys[keyOf(cfg, t.address, t.attributes, nil)] = instanceID(t.address)
	}
	var err error
	d.runner, err = discover.NewRunner(&cfg.Discovery.Settings, discover.Options{
		Logger:   r.shared.settings.Logger,
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
				d.receiver.shared.settings.Logger.Warn("The end of a target was refused; it is sent again every minute",
					zap.String("target", instanceID(t.URL)), zap.Error(err))
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
			d.receiver.setPod(t.URL, podOf(t.Pod))
			continue
		}
		client := d.receiver.shared.config.Client
		client.Endpoint = address
		client.Timeout = t.Timeout
		err := d.receiver.Add(ctx, target{
			address: t.URL, client: client, discovered: t.Attributes, interval: t.Interval, pod: podOf(t.Pod),
			canary: d.receiver.shared.config.Canary.Get(),
		})
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", instanceID(t.URL), err))
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
		d.receiver.shared.settings.Logger.Warn("Discovered targets cannot be started; this is tried again every minute. The first one: "+
			failed[0].Error(), zap.Int("targets", len(failed)))
	}
	d.notStarted = len(failed)
}

// podOf converts the state of a pod from package discover to package emit.
func podOf(pod *discover.Pod) *emit.Pod {
	if pod == nil {
		return nil
	}
	return &emit.Pod{Ready: pod.Ready, Terminating: pod.Terminating}
}

// discoverySetters set the resource attributes from discovery that can be switched off.
var discoverySetters = map[string]func(*metadata.ResourceBuilder, string){
	discover.PoolAttribute: (*metadata.ResourceBuilder).SetInferenceGatewayPoolName,
	"k8s.container.name":   (*metadata.ResourceBuilder).SetK8sContainerName,
	"k8s.cronjob.name":     (*metadata.ResourceBuilder).SetK8sCronjobName,
	"k8s.daemonset.name":   (*metadata.ResourceBuilder).SetK8sDaemonsetName,
	"k8s.deployment.name":  (*metadata.ResourceBuilder).SetK8sDeploymentName,
	"k8s.job.name":         (*metadata.ResourceBuilder).SetK8sJobName,
	"k8s.namespace.name":   (*metadata.ResourceBuilder).SetK8sNamespaceName,
	"k8s.node.name":        (*metadata.ResourceBuilder).SetK8sNodeName,
	"k8s.pod.name":         (*metadata.ResourceBuilder).SetK8sPodName,
	"k8s.pod.uid":          (*metadata.ResourceBuilder).SetK8sPodUID,
	"k8s.replicaset.name":  (*metadata.ResourceBuilder).SetK8sReplicasetName,
	"k8s.statefulset.name": (*metadata.ResourceBuilder).SetK8sStatefulsetName,
	"service.instance.id":  (*metadata.ResourceBuilder).SetServiceInstanceID,
	"service.name":         (*metadata.ResourceBuilder).SetServiceName,
}
