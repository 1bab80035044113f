package discover

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/discovery/kubernetes"
	"github.com/prometheus/prometheus/discovery/targetgroup"
	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/remote"
)

// Pod is what Kubernetes reports about the pod of a target.
type Pod struct {
	// Ready is the pod's condition of this name.
	Ready bool
	// Terminating is true from the time on when the pod is being deleted.
	Terminating bool
}

// podState is what is known of a pod.
type podState struct {
	Pod
	// wasReady is true once the pod was ready.
	wasReady bool
	// running is true in the phase Running, ended in Succeeded and Failed.
	running, ended bool
	// deleted is true where the API server does not have the pod any more, or not
	// under the selector. The library may report it for some more seconds.
	deleted bool
}

// scraped reports whether the short forms scrape a pod. A pod that was ready
// once is scraped until it is gone: one that dies is not ready any more, and its
// failure must be seen.
func (p *podState) scraped(readyOnly bool) bool {
	switch {
	case p.ended || p.deleted:
		return false
	case p.Ready || p.wasReady:
		return true
	}
	return p.running && !readyOnly
}

// uidLabel has the identity of a pod.
const uidLabel = model.LabelName(metaPrefix + "pod_uid")

// podOf reads what the labels of a discovered pod tell.
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

// podBook has the state of the pods that the watchers follow, by their identity.
// Prometheus's library reports neither that a pod was ready before nor that it is
// being deleted.
type podBook struct {
	// changed has room for one signal, which stands for any number of changes.
	changed chan<- struct{}

	mu   sync.Mutex
	pods map[string]podState
}

func newPodBook(changed chan struct{}) *podBook {
	return &podBook{changed: changed, pods: map[string]podState{}}
}

// find returns what is known of a pod: by the watchers, else by its labels.
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

// set takes the newest state of a pod.
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

// forget drops what is deleted and not reported any more.
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

// podWatcher follows the pods of one Kubernetes discovery.
type podWatcher struct {
	sd     *kubernetes.SDConfig
	client dynamic.Interface
	close  func()
	logger *zap.Logger
	book   *podBook
}

// newPodWatcher returns nil for a discovery that does not look for pods.
func newPodWatcher(sd *kubernetes.SDConfig, logger *zap.Logger, book *podBook) (*podWatcher, error) {
	switch sd.Role {
	case kubernetes.RolePod, kubernetes.RoleEndpoint, kubernetes.RoleEndpointSlice:
	default:
		return nil, nil
	}
	client, closeIdle, err := newClient(sd)
	if err != nil {
		return nil, err
	}
	return &podWatcher{sd: sd, client: client, close: closeIdle, logger: logger, book: book}, nil
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
			// The prober reports what is denied, and a watch that ends starts again.
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

// readyAfterStart is how much later than the start of a pod its condition Ready
// changes at least where it is not its first value.
const readyAfterStart = 5 * time.Second

// readPod reads the state of a pod. A pod that is not ready, and whose condition
// Ready has changed since it was started, was ready before: so a collector that
// restarts knows, too.
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
