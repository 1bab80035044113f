package discover

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/prometheus/discovery/kubernetes"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"github.com/otelcol-vllm/otelcol-vllm/internal/test/kubeapi"
)

// podAPI is an API server without a network, so that its clients can run on a clock of
// the test. It has no streamed lists.
type podAPI struct {
	dynamic.NamespaceableResourceInterface

	mu              sync.Mutex
	version, oldest int
	pods            map[string]*unstructured.Unstructured
	// open is the watch of the client; nil without one.
	open *watch.FakeWatcher
	// down is true while the server does not answer.
	down bool
	// selected are the selectors of the requests.
	selected map[string]bool
}

func newPodAPI(pods ...kubeapi.Object) *podAPI {
	api := &podAPI{version: 100, pods: map[string]*unstructured.Unstructured{}, selected: map[string]bool{}}
	for _, p := range pods {
		api.set(p)
	}
	return api
}

var errDown = errors.New("connection refused")

func (a *podAPI) Resource(schema.GroupVersionResource) dynamic.NamespaceableResourceInterface {
	return a
}

func (a *podAPI) Namespace(string) dynamic.ResourceInterface { return a }

func (a *podAPI) List(_ context.Context, options metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.selected[options.LabelSelector+" "+options.FieldSelector] = true
	if a.down {
		return nil, errDown
	}
	out := &unstructured.UnstructuredList{}
	out.SetResourceVersion(strconv.Itoa(a.version))
	for _, p := range a.pods {
		out.Items = append(out.Items, *p.DeepCopy())
	}
	return out, nil
}

func (a *podAPI) Watch(_ context.Context, options metav1.ListOptions) (watch.Interface, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.selected[options.LabelSelector+" "+options.FieldSelector] = true
	if a.down {
		return nil, errDown
	}
	if options.SendInitialEvents != nil {
		return nil, apierrors.NewBadRequest("lists are not streamed")
	}
	if from, err := strconv.Atoi(options.ResourceVersion); err != nil || from < a.oldest {
		return nil, apierrors.NewResourceExpired("too old resource version")
	}
	a.open = watch.NewFakeWithChanSize(100, false)
	return a.open, nil
}

// set adds or changes a pod. Only an open watch has the change.
func (a *podAPI) set(pod kubeapi.Object) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.version++
	object := &unstructured.Unstructured{}
	if text, err := json.Marshal(pod); err != nil {
		panic(err)
	} else if err := json.Unmarshal(text, &object.Object); err != nil {
		panic(err)
	}
	object.SetResourceVersion(strconv.Itoa(a.version))
	a.pods[object.GetName()] = object
	if a.open != nil {
		a.open.Modify(object.DeepCopy())
	}
}

// remove deletes a pod. Only an open watch has the change.
func (a *podAPI) remove(name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.version++
	object := a.pods[name].DeepCopy()
	object.SetResourceVersion(strconv.Itoa(a.version))
	delete(a.pods, name)
	if a.open != nil {
		a.open.Delete(object)
	}
}

// cut ends the watch.
func (a *podAPI) cut() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.open.Stop()
	a.open = nil
}

// expire forgets the history. With an open watch it also reports this there.
func (a *podAPI) expire() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.version++
	a.oldest = a.version
	if a.open != nil {
		status := apierrors.NewResourceExpired("too old resource version").Status()
		a.open.Error(&status)
		a.open = nil
	}
}

func (a *podAPI) setDown(down bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.down = down
}

// What happens to pods while their watch is broken is known soon after it works again. The
// waiting times are those of Kubernetes's library: from 0.8 s to 30 s, and up to twice as long by chance.
func TestNoChangeOfAPodIsLostWhileItsWatchIsBroken(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		old    time.Duration // how long the watch was open
		during func(api *podAPI, change func())
		within time.Duration
	}{
		"nothing breaks": {time.Hour, func(_ *podAPI, change func()) { change() }, 0},
		"the connection is cut": {time.Hour, func(api *podAPI, change func()) {
			api.cut()
			change()
			api.expire()
		}, 2 * time.Second},
		"the connection is cut soon after it began": {time.Millisecond, func(api *podAPI, change func()) {
			api.cut()
			change()
		}, 2 * time.Second},
		"the server has forgotten the history": {time.Hour, func(api *podAPI, change func()) {
			api.expire()
			change()
		}, 2 * time.Second},
		"a cut and a forgotten history, twice": {time.Hour, func(api *podAPI, change func()) {
			api.cut()
			api.expire()
			time.Sleep(4 * time.Second)
			api.cut()
			change()
			api.expire()
		}, 8 * time.Second},
		"the server is away for an hour": {time.Hour, func(api *podAPI, change func()) {
			api.setDown(true)
			api.cut()
			change()
			api.expire()
			time.Sleep(time.Hour)
			api.setDown(false)
		}, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api := newPodAPI(vllmPod("a", "10.0.0.1"), vllmPod("b", "10.0.0.2"))
				book := newPodBook(make(chan struct{}, 1))
				closed := false
				w := &podWatcher{book: book, access: &access{
					sd: &kubernetes.SDConfig{
						Role: kubernetes.RolePod, NamespaceDiscovery: kubernetes.NamespaceDiscovery{Names: []string{"inference"}},
						Selectors: []kubernetes.SelectorConfig{
							{Role: kubernetes.RoleNode, Label: "of=nodes"},
							{Role: kubernetes.RolePod, Label: "app=vllm", Field: "spec.nodeName=n"},
						},
					},
					client: api, close: func() { closed = true }, logger: zap.NewNop(),
				}}
				ctx, cancel := context.WithCancel(t.Context())
				var running sync.WaitGroup
				running.Go(func() { w.run(ctx) })
				state := func(name string) podState {
					synctest.Wait()
					return book.find("uid-"+name, podState{deleted: true, ended: true})
				}
				time.Sleep(c.old)
				serves := podState{Pod: Pod{Ready: true}, wasReady: true, running: true}
				require.Equal(t, serves, state("a"))
				require.Equal(t, serves, state("b"))

				c.during(api, func() {
					api.set(vllmPod("a", "10.0.0.1", unready, terminating))
					api.remove("b")
					api.set(vllmPod("c", "10.0.0.3", unready))
				})
				time.Sleep(c.within)
				assert.Equal(t, podState{Pod: Pod{Terminating: true}, wasReady: true, running: true}, state("a"), "changed")
				assert.Equal(t, podState{Pod: Pod{Ready: true}, wasReady: true, running: true, deleted: true}, state("b"), "deleted")
				assert.Equal(t, podState{running: true}, state("c"), "new")

				// The watch continues by itself.
				api.set(vllmPod("c", "10.0.0.3"))
				assert.Equal(t, serves, state("c"))
				assert.Equal(t, map[string]bool{"app=vllm spec.nodeName=n": true}, api.selected)
				cancel()
				running.Wait()
				assert.True(t, closed, "the connections are closed")
			})
		})
	}
}
