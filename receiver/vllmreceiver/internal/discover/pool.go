package discover

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/prometheus/prometheus/discovery/kubernetes"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// pool is the part of an InferencePool that selects its servers.
type pool struct {
	selector string
	ports    []int
}

func (p *pool) equal(other *pool) bool {
	if p == nil || other == nil {
		return p == other
	}
	return p.selector == other.selector && slices.Equal(p.ports, other.ports)
}

// poolKinds are the API groups of InferencePools, the newer first. Kubernetes treats them
// as different resources, so a cluster may have both.
var poolKinds = []schema.GroupVersionResource{
	{Group: "inference.networking.k8s.io", Version: "v1", Resource: "inferencepools"},
	{Group: "inference.networking.x-k8s.io", Version: "v1alpha2", Resource: "inferencepools"},
}

// readPool reads the selector and the ports of an InferencePool of either group.
func readPool(object *unstructured.Unstructured) (*pool, error) {
	spec, _, err := unstructured.NestedMap(object.Object, "spec")
	if err != nil {
		return nil, err
	}
	match, found, err := unstructured.NestedStringMap(spec, "selector", "matchLabels")
	if err != nil || !found {
		// In the older group the labels are not below matchLabels.
		match, _, err = unstructured.NestedStringMap(spec, "selector")
	}
	if err != nil || len(match) == 0 {
		return nil, fmt.Errorf("the InferencePool %s/%s has no selector", object.GetNamespace(), object.GetName())
	}
	out := &pool{selector: labels.SelectorFromSet(match).String()}
	if number, ok := spec["targetPortNumber"].(int64); ok {
		out.ports = append(out.ports, int(number))
	}
	ports, _ := spec["targetPorts"].([]any)
	for _, port := range ports {
		if fields, ok := port.(map[string]any); ok {
			if number, ok := fields["number"].(int64); ok {
				out.ports = append(out.ports, int(number))
			}
		}
	}
	slices.Sort(out.ports)
	out.ports = slices.Compact(out.ports)
	if len(out.ports) == 0 {
		return nil, fmt.Errorf("the InferencePool %s/%s has no target port", object.GetNamespace(), object.GetName())
	}
	return out, nil
}

// follower watches one InferencePool.
type follower struct {
	*access
	form *InferencePool
	// changed is called with the new pool; nil if there is no pool.
	changed   func(*pool)
	obstacles *obstacles

	mu     sync.Mutex
	states map[schema.GroupVersionResource]poolState
	last   *pool
}

// poolState is the state of the pool in one API group.
type poolState struct {
	synced bool
	pool   *pool
	// obstacle is why the pool could not be read, as a sentence.
	obstacle string
	// absent is true where the cluster does not have the group.
	absent bool
}

// run watches the pool in both API groups until ctx ends.
func (f *follower) run(ctx context.Context) {
	defer f.close()
	var wg sync.WaitGroup
	for _, kind := range poolKinds {
		wg.Go(func() { f.watch(ctx, kind) })
	}
	wg.Wait()
}

// watch watches the pool in one API group.
func (f *follower) watch(ctx context.Context, kind schema.GroupVersionResource) {
	w := objectWatch{
		objects: f.client.Resource(kind).Namespace(f.form.Namespace),
		fields:  fields.OneTermEqualSelector(metav1.ObjectNameField, f.form.Name).String(),
		seen: func(object *unstructured.Unstructured, deleted bool) {
			if deleted {
				f.update(kind, func(state *poolState) { state.pool = nil })
				return
			}
			f.seen(kind, object)
		},
		failed: func(err error) { f.failed(kind, err) },
		listed: func(n int) {
			f.update(kind, func(state *poolState) {
				// A pool that was found is known only after the call of seen.
				state.synced = state.synced || n == 0
				state.absent, state.obstacle = false, ""
			})
		},
		// A streamed list that finds nothing calls neither seen nor listed.
		synced: func() { f.update(kind, func(state *poolState) { state.synced = true }) },
	}
	w.run(ctx)
}

func (f *follower) seen(kind schema.GroupVersionResource, object *unstructured.Unstructured) {
	found, err := readPool(object)
	f.update(kind, func(state *poolState) {
		state.synced, state.absent, state.obstacle = true, false, ""
		if err != nil {
			state.pool, state.obstacle = nil, err.Error()
			return
		}
		state.pool = found
	})
}

func (f *follower) failed(kind schema.GroupVersionResource, err error) {
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		// A watch that is too old starts again by itself.
		return
	}
	f.update(kind, func(state *poolState) {
		if state.pool != nil && (apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err)) {
			f.logged.warn(f.logger, inWords(err, kind, f.form.Namespace))
		}
		state.absent = apierrors.IsNotFound(err)
		if !state.synced && !state.absent {
			state.obstacle = inWords(err, kind, f.form.Namespace)
		}
	})
}

// update changes the state of one group, and calls changed if the pool is another one.
func (f *follower) update(kind schema.GroupVersionResource, change func(*poolState)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	state := f.states[kind]
	change(&state)
	f.states[kind] = state
	var found *pool
	for _, kind := range slices.Backward(poolKinds) {
		if p := f.states[kind].pool; p != nil {
			found = p
		}
	}
	if !f.last.equal(found) {
		f.changed(found)
		f.last = found
	}
	if found == nil {
		f.warnMissing()
	} else {
		f.obstacles.set(f, "")
	}
}

// warnMissing logs once why there is no pool, after both groups have answered. An
// obstacle in one group does not matter if the other has the pool.
func (f *follower) warnMissing() {
	absent := 0
	obstacles := map[string]bool{}
	for _, kind := range poolKinds {
		state := f.states[kind]
		switch {
		case state.obstacle != "":
			obstacles[state.obstacle] = true
		case state.absent:
			absent++
		case !state.synced:
			return
		}
	}
	switch {
	case len(obstacles) > 0:
		for _, obstacle := range slices.Sorted(maps.Keys(obstacles)) {
			f.logged.warn(f.logger, obstacle)
			f.obstacles.set(f, obstacle)
		}
	case absent == len(poolKinds):
		const obstacle = "The cluster does not know InferencePools: the Gateway API Inference Extension is not installed"
		f.logged.warn(f.logger, obstacle)
		f.obstacles.set(f, obstacle)
	default:
		f.obstacles.set(f, "")
		f.logged.warn(f.logger, fmt.Sprintf("There is no InferencePool %q in the namespace %q; its servers will be scraped as soon as it exists", f.form.Name, f.form.Namespace))
	}
}

// expand returns the configuration of Prometheus for the servers of a pool.
func (p *InferencePool) expand(found *pool) *kubernetes.SDConfig {
	return p.Pods.expand([]string{p.Namespace}, found.selector)
}
