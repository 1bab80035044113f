package discover

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/discovery/kubernetes"
	"github.com/prometheus/prometheus/discovery/targetgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/remote"
)

// Pod is what Kubernetes reports about the pod of a target.
type Pod struct {
	// Ready is the condition Ready of the pod.
	Ready bool
	// Terminating is true once the pod has a deletion timestamp.
	Terminating bool
}

// podState is the state of a pod.
type podState struct {
	Pod
	// wasReady is true if the pod was ever ready.
	wasReady bool
	// running is true in the phase Running, ended in Succeeded and Failed.
	running, ended bool
	// deleted is true if the API server no longer has the pod, or no longer selects it.
	// The library may report it for some more seconds.
	deleted bool
}

// scraped reports whether the short forms scrape a pod. A pod that was ever ready is
// scraped until it has ended: a pod that fails is not ready, and its failure must be
// reported.
func (p *podState) scraped(readyOnly bool) bool {
	switch {
	case p.ended || p.deleted:
		return false
	case p.Ready || p.wasReady:
		return true
	}
	return p.running && !readyOnly
}

// uidLabel is the label with the UID of a pod.
const uidLabel = model.LabelName(metaPrefix + "pod_uid")

// podOf reads the state of a pod from the labels of its target.
func podOf(target, group model.LabelSet) (uid string, state podState) {
	get := func(name model.LabelName) string {
		if value, ok := target[name]; ok {
			return string(value)
		}
		return string(group[name])
	}
	phase := get(metaPrefix + "pod_phase")
	state.Ready = get(metaPrefix+"pod_ready") == "true"
	state.running, state.ended = phase == phaseRunning, hasEnded(phase)
	return get(uidLabel), state
}

const phaseRunning = "Running"

func hasEnded(phase string) bool { return phase == "Succeeded" || phase == "Failed" }

// podBook has the states of the watched pods by UID. Prometheus's library does not
// report whether a pod was ready before or is being deleted.
type podBook struct {
	// changed has room for one signal, which means that at least one pod has changed.
	changed chan<- struct{}

	mu   sync.Mutex
	pods map[string]podState
}

func newPodBook(changed chan struct{}) *podBook {
	return &podBook{changed: changed, pods: map[string]podState{}}
}

// find returns the state of a pod from the watch, or fromLabels if the watch does not
// have the pod.
func (b *podBook) find(uid string, fromLabels podState) podState {
	if b == nil {
		return fromLabels
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if known, ok := b.pods[uid]; ok {
		return known
	}
	return fromLabels
}

// set stores the newest state of a pod.
func (b *podBook) set(uid string, state podState) {
	b.mu.Lock()
	known, ok := b.pods[uid]
	state.wasReady = state.wasReady || known.wasReady
	b.pods[uid] = state
	b.mu.Unlock()
	if !ok || known != state {
		select {
		case b.changed <- struct{}{}:
		default:
		}
	}
}

// forget removes the deleted pods that the library no longer reports.
func (b *podBook) forget(groups []*targetgroup.Group) {
	reported := map[string]bool{}
	for _, group := range groups {
		reported[string(group.Labels[uidLabel])] = true
		for _, target := range group.Targets {
			reported[string(target[uidLabel])] = true
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for uid, state := range b.pods {
		if state.deleted && !reported[uid] {
			delete(b.pods, uid)
		}
	}
}

// podWatcher watches the pods of one Kubernetes discovery.
type podWatcher struct {
	*access
	book *podBook
}

// hasPods reports whether a discovery has pods.
func hasPods(sd *kubernetes.SDConfig) bool {
	return slices.Contains([]kubernetes.Role{kubernetes.RolePod, kubernetes.RoleEndpoint, kubernetes.RoleEndpointSlice}, sd.Role)
}

// run watches until ctx ends.
func (w *podWatcher) run(ctx context.Context) {
	defer w.close()
	var wg sync.WaitGroup
	for _, namespace := range namespacesOf(w.sd, "pods") {
		wg.Go(func() { w.watch(ctx, namespace) })
	}
	wg.Wait()
}

func (w *podWatcher) watch(ctx context.Context, namespace string) {
	pods := objectWatch{
		objects: w.client.Resource(core("pods")).Namespace(namespace),
		seen:    w.seen,
		failed: func(err error) {
			if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
				// Also later, when the prober has ended.
				w.logged.warn(w.logger, inWords(err, core("pods"), namespace))
				return
			}
			// A watch that ends starts again.
			w.logger.Debug("The pods cannot be watched: " + remote.Text(err.Error()))
		},
		trim: onlyState,
	}
	for _, s := range w.sd.Selectors {
		if s.Role == kubernetes.RolePod {
			pods.labels, pods.fields = s.Label, s.Field
		}
	}
	pods.run(ctx)
}

func (w *podWatcher) seen(pod *unstructured.Unstructured, deleted bool) {
	state := readPod(pod)
	state.deleted = deleted
	w.book.set(string(pod.GetUID()), state)
}

// onlyState removes from a pod all that readPod does not read.
func onlyState(object any) (any, error) {
	pod, ok := object.(*unstructured.Unstructured)
	if !ok {
		return object, nil
	}
	delete(pod.Object, "spec")
	if status, ok := pod.Object["status"].(map[string]any); ok {
		pod.Object["status"] = map[string]any{
			"phase": status["phase"], "startTime": status["startTime"], "conditions": status["conditions"],
		}
	}
	pod.SetManagedFields(nil)
	pod.SetAnnotations(nil)
	pod.SetLabels(nil)
	return pod, nil
}

// readyAfterStart is the shortest time from the start of a pod to a change of its
// condition Ready that is not the first value.
const readyAfterStart = 5 * time.Second

// readPod reads the state of a pod. A pod was ready before if its condition Ready has
// changed since the start. So a collector that restarts also knows this.
func readPod(pod *unstructured.Unstructured) podState {
	phase, _, _ := unstructured.NestedString(pod.Object, "status", "phase")
	state := podState{running: phase == phaseRunning, ended: hasEnded(phase)}
	state.Terminating = pod.GetDeletionTimestamp() != nil
	conditions, _, _ := unstructured.NestedSlice(pod.Object, "status", "conditions")
	for _, item := range conditions {
		condition, ok := item.(map[string]any)
		if !ok || condition["type"] != "Ready" {
			continue
		}
		status, _ := condition["status"].(string)
		state.Ready = strings.EqualFold(status, "True")
		started, _, _ := unstructured.NestedString(pod.Object, "status", "startTime")
		changed, _ := condition["lastTransitionTime"].(string)
		from, err := time.Parse(time.RFC3339, started)
		to, err2 := time.Parse(time.RFC3339, changed)
		state.wasReady = state.Ready || err == nil && err2 == nil && to.Sub(from) >= readyAfterStart
	}
	return state
}
