package discover

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/internal/test/kubeapi"
)

const addressA, addressB = "http://10.0.0.1:8000/metrics", "http://10.0.0.2:8000/metrics"

func terminating(p *kubeapi.Pod) { p.Terminating = true }

func phase(name string) func(*kubeapi.Pod) {
	return func(p *kubeapi.Pod) { p.Phase, p.Unready = name, true }
}

// A pod that fails is not ready even before its container has ended. Its failure must
// be reported.
func TestAPodThatWasReadyStaysUntilItIsGone(t *testing.T) {
	t.Parallel()
	ends := map[string]func(*kubeapi.Server){
		"deleted": func(api *kubeapi.Server) { api.Delete(kubeapi.Pods, "inference", "a") },
		"failed":  func(api *kubeapi.Server) { api.Apply(kubeapi.Pods, vllmPod("a", "10.0.0.1", phase("Failed"))) },
		"succeeded": func(api *kubeapi.Server) {
			api.Apply(kubeapi.Pods, vllmPod("a", "10.0.0.1", phase("Succeeded")))
		},
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			api := kubeapi.New(t)
			api.Apply(kubeapi.Pods, vllmPod("a", "10.0.0.1"))
			r := run(t, 10, shortForm(api, ""))
			r.waitForPod("ready", addressA, Pod{Ready: true})
			api.Apply(kubeapi.Pods, vllmPod("a", "10.0.0.1", unready))
			r.waitForPod("not ready any more, and still a target", addressA, Pod{})
			// The kubelet is lost.
			api.Apply(kubeapi.Pods, vllmPod("a", "10.0.0.1", phase("Unknown")))
			api.Apply(kubeapi.Pods, vllmPod("b", "10.0.0.2"))
			r.waitFor("a phase that is not known ends nothing", addressA, addressB)
			end(api)
			r.waitFor("it is gone", addressB)
		})
	}
}

func TestAPodThatWasNeverReadyIsATargetOnlyWithoutReadyOnly(t *testing.T) {
	t.Parallel()
	api := kubeapi.New(t)
	api.Apply(kubeapi.Pods, vllmPod("a", "10.0.0.1", unready))
	api.Apply(kubeapi.Pods, vllmPod("b", "10.0.0.2"))
	api.Apply(kubeapi.Pods, vllmPod("c", "10.0.0.3", func(p *kubeapi.Pod) { p.Pending = true }))
	ready := run(t, 10, shortForm(api, ""))
	all := run(t, 10, shortForm(api, ", ready_only: false"))
	ready.waitFor("ready_only", addressB)
	all.waitFor("ready_only: false", addressA, addressB)
	all.waitForPod("not ready", addressA, Pod{})
}

// A collector that restarts while a pod dies has not seen it ready.
func TestAPodThatWasReadyBeforeTheCollectorStartedIsATarget(t *testing.T) {
	t.Parallel()
	api := kubeapi.New(t)
	api.Apply(kubeapi.Pods, vllmPod("a", "10.0.0.1", unready, func(p *kubeapi.Pod) {
		p.Started, p.ReadyChanged = "2026-06-01T10:00:00Z", "2026-06-01T11:00:00Z"
	}))
	api.Apply(kubeapi.Pods, vllmPod("b", "10.0.0.2", unready, func(p *kubeapi.Pod) {
		p.Started, p.ReadyChanged = "2026-06-01T10:00:00Z", "2026-06-01T10:00:01Z"
	}))
	r := run(t, 10, shortForm(api, ""))
	r.waitFor("only the one whose readiness has changed", addressA)
	r.waitForPod("not ready", addressA, Pod{})
}

func TestAPodThatIsBeingDeletedIsTerminating(t *testing.T) {
	t.Parallel()
	pool := func(api *kubeapi.Server) string {
		api.Apply(kubeapi.Pools, kubeapi.Pool("inference", "llama", map[string]string{"app": "vllm"}, 8000))
		return "inference_pool: {name: llama, namespace: inference, api_server: " + api.URL + "}"
	}
	full := func(api *kubeapi.Server) string {
		return `kubernetes_sd_configs: [{role: pod, api_server: ` + api.URL + `, namespaces: {names: [inference]}}]`
	}
	for name, configured := range map[string]func(*kubeapi.Server) string{
		"kubernetes":            func(api *kubeapi.Server) string { return shortForm(api, "") },
		"inference_pool":        pool,
		"kubernetes_sd_configs": full,
	} {
		t.Run(name, func(t *testing.T) {
			api := kubeapi.New(t, kubeapi.Pools)
			api.Apply(kubeapi.Pods, vllmPod("a", "10.0.0.1"))
			r := run(t, 10, configured(api))
			r.waitForPod("it runs", addressA, Pod{Ready: true})
			api.Apply(kubeapi.Pods, vllmPod("a", "10.0.0.1", terminating))
			r.waitForPod("it is being deleted", addressA, Pod{Ready: true, Terminating: true})
			api.Apply(kubeapi.Pods, vllmPod("a", "10.0.0.1", terminating, unready))
			r.waitForPod("it drains", addressA, Pod{Terminating: true})
			api.Delete(kubeapi.Pods, "inference", "a")
			r.waitFor("it is gone")
			// The same name and address, as of a StatefulSet, is another pod.
			api.Apply(kubeapi.Pods, vllmPod("a", "10.0.0.1", func(p *kubeapi.Pod) { p.UID = "another" }))
			r.waitForPod("its successor", addressA, Pod{Ready: true})
		})
	}
}

// The state of a pod must survive a watch that is cut or too old.
func TestChangesOfAPodDuringABrokenWatchAreSeenAfterIt(t *testing.T) {
	t.Parallel()
	api := kubeapi.New(t).WithoutStreaming()
	api.Apply(kubeapi.Pods, vllmPod("a", "10.0.0.1"))
	api.Apply(kubeapi.Pods, vllmPod("b", "10.0.0.2"))
	r := run(t, 10, shortForm(api, ""))
	r.waitFor("both", addressA, addressB)
	api.Apply(kubeapi.Pods, vllmPod("a", "10.0.0.1", unready, terminating))
	api.Delete(kubeapi.Pods, "inference", "b")
	api.Expire()
	api.Disconnect()
	r.waitFor("one is deleted", addressA)
	r.waitForPod("the other drains", addressA, Pod{Terminating: true})
}

func TestTheBookOfPodsForgetsDeletedPods(t *testing.T) {
	t.Parallel()
	api := kubeapi.New(t)
	r := run(t, 10, shortForm(api, ""))
	for i := range 5 {
		// As in Kubernetes, no two pods have the same UID. The library and the book watch on
		// their own, so an old deletion in the book would hide a successor with its UID.
		api.Apply(kubeapi.Pods, vllmPod("a", "10.0.0.1", func(p *kubeapi.Pod) { p.UID = fmt.Sprintf("uid-a%d", i) }))
		r.waitFor("it is there", addressA)
		api.Delete(kubeapi.Pods, "inference", "a")
		r.waitFor("it goes")
	}
	book := r.runner.books[setKubernetes]
	known := func() []string {
		book.mu.Lock()
		defer book.mu.Unlock()
		return slices.Sorted(maps.Keys(book.pods))
	}
	// The library may have reported the last deletion first. Then the book forgets the pod
	// at the library's next report.
	api.Apply(kubeapi.Pods, vllmPod("b", "10.0.0.2"))
	require.Eventually(t, func() bool { return slices.Contains(known(), "uid-b") }, within, 10*time.Millisecond)
	api.Apply(kubeapi.Pods, vllmPod("c", "10.0.0.3"))
	want := []string{"uid-b", "uid-c"}
	assert.Eventually(t, func() bool { return slices.Equal(want, known()) }, within, 10*time.Millisecond)
	require.Equal(t, want, known())
}

// With host networking, or soon after an address is free again, a new pod may
// have the address of one that is not deleted yet.
func TestAnAddressBelongsToThePodThatServes(t *testing.T) {
	t.Parallel()
	for name, change := range map[string][]func(*kubeapi.Pod){
		"not ready any more": {unready},
		"being deleted":      {terminating},
	} {
		t.Run(name, func(t *testing.T) {
			api := kubeapi.New(t)
			api.Apply(kubeapi.Pods, vllmPod("a", "10.0.0.1"))
			r := run(t, 10, shortForm(api, ""))
			r.waitForPod("the first", addressA, Pod{Ready: true})
			api.Apply(kubeapi.Pods, vllmPod("a", "10.0.0.1", change...))
			api.Apply(kubeapi.Pods, vllmPod("z", "10.0.0.1"))
			assert.Eventually(t, func() bool { return r.attributes(addressA)["k8s.pod.name"] == "z" }, within, 10*time.Millisecond)
			r.waitForPod("the second", addressA, Pod{Ready: true})
			assert.Equal(t, "uid-z", r.attributes(addressA)["k8s.pod.uid"])
		})
	}
}
