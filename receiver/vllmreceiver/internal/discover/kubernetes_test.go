package discover

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/internal/test/kubeapi"
)

// vllmPod is a ready pod with one container that declares its port.
func vllmPod(name, ip string, change ...func(*kubeapi.Pod)) kubeapi.Object {
	p := kubeapi.Pod{
		Namespace: "inference", Name: name, Node: "node-1", IP: ip,
		Labels:     map[string]string{"app": "vllm", "pod-template-hash": "5d4f"},
		OwnerKind:  "ReplicaSet",
		OwnerName:  "llama-5d4f",
		Containers: []kubeapi.Container{{Name: "vllm", Port: 8000}},
	}
	for _, c := range change {
		c(&p)
	}
	return p.Object()
}

func unready(p *kubeapi.Pod) { p.Unready = true }

func shortForm(api *kubeapi.Server, more string) string {
	return "kubernetes: {namespaces: [inference], selector: app=vllm, api_server: " + api.URL + more + "}"
}

func TestPodsComeAndGoInBothProtocolsOfAList(t *testing.T) {
	t.Parallel()
	for name, api := range map[string]*kubeapi.Server{
		"streamed list":  kubeapi.New(t),
		"list and watch": kubeapi.New(t).WithoutStreaming(),
	} {
		t.Run(name, func(t *testing.T) {
			api.Apply(kubeapi.Pods, vllmPod("a", "10.0.0.1"))
			r := run(t, 10, shortForm(api, ""))
			r.waitFor("the pod that was there", "http://10.0.0.1:8000/metrics")
			assert.Equal(t, map[string]string{
				"k8s.namespace.name": "inference", "k8s.pod.name": "a", "k8s.pod.uid": "uid-a", "k8s.node.name": "node-1",
				"k8s.container.name": "vllm", "k8s.replicaset.name": "llama-5d4f", "k8s.deployment.name": "llama",
			}, r.attributes("http://10.0.0.1:8000/metrics"))

			api.Apply(kubeapi.Pods, vllmPod("b", "10.0.0.2", unready))
			api.Apply(kubeapi.Pods, vllmPod("c", "10.0.0.3", func(p *kubeapi.Pod) { p.Labels = map[string]string{"app": "other"} }))
			api.Apply(kubeapi.Pods, vllmPod("d", "10.0.0.4", func(p *kubeapi.Pod) { p.Namespace = "elsewhere" }))
			api.Apply(kubeapi.Pods, vllmPod("e", "", func(p *kubeapi.Pod) { p.Pending = true }))
			api.Apply(kubeapi.Pods, vllmPod("f", "10.0.0.6"))
			r.waitFor("only ready pods of the selector and the namespace", "http://10.0.0.1:8000/metrics", "http://10.0.0.6:8000/metrics")

			api.Apply(kubeapi.Pods, vllmPod("b", "10.0.0.2"))
			r.waitFor("the pod has become ready", "http://10.0.0.1:8000/metrics", "http://10.0.0.2:8000/metrics", "http://10.0.0.6:8000/metrics")

			api.Delete(kubeapi.Pods, "inference", "a")
			api.Delete(kubeapi.Pods, "inference", "f")
			r.waitFor("two are deleted", "http://10.0.0.2:8000/metrics")
			assert.Positive(t, r.logged("Discovered targets have changed"))
		})
	}
}

func TestOnlyThePodsOfThisNodeAreTargets(t *testing.T) {
	t.Parallel()
	api := kubeapi.New(t)
	api.Apply(kubeapi.Pods, vllmPod("llama-0", "10.0.0.1"))
	api.Apply(kubeapi.Pods, vllmPod("llama-1", "10.0.0.2", func(p *kubeapi.Pod) { p.Node = "node-2" }))
	here := run(t, 10, shortForm(api, ", node: node-1"))
	there := run(t, 10, shortForm(api, ", node: node-2"))
	here.waitFor("this node's pod", "http://10.0.0.1:8000/metrics")
	there.waitFor("the other node's pod", "http://10.0.0.2:8000/metrics")

	// A pod never changes its node: it is deleted and made again under its name.
	api.Delete(kubeapi.Pods, "inference", "llama-0")
	api.Apply(kubeapi.Pods, vllmPod("llama-0", "10.0.0.3", func(p *kubeapi.Pod) { p.Node = "node-2" }))
	here.waitFor("it has gone from here")
	there.waitFor("it is there", "http://10.0.0.2:8000/metrics", "http://10.0.0.3:8000/metrics")
	assert.Equal(t, "node-2", there.attributes("http://10.0.0.3:8000/metrics")["k8s.node.name"])
}

func TestWatchesThatBreakOffOrExpireLoseNothing(t *testing.T) {
	t.Parallel()
	api := kubeapi.New(t).WithoutStreaming()
	api.Apply(kubeapi.Pods, vllmPod("a", "10.0.0.1"))
	r := run(t, 10, shortForm(api, ""))
	r.waitFor("the first pod", "http://10.0.0.1:8000/metrics")

	api.Disconnect()
	api.Apply(kubeapi.Pods, vllmPod("b", "10.0.0.2"))
	r.waitFor("what happened while the watch was broken", "http://10.0.0.1:8000/metrics", "http://10.0.0.2:8000/metrics")

	lists := api.Asked("list " + kubeapi.Pods)
	api.Apply(kubeapi.Pods, vllmPod("c", "10.0.0.3"))
	api.Delete(kubeapi.Pods, "inference", "a")
	api.Expire()
	r.waitFor("the state after 410 Gone", "http://10.0.0.2:8000/metrics", "http://10.0.0.3:8000/metrics")
	api.Apply(kubeapi.Pods, vllmPod("d", "10.0.0.4"))
	r.waitFor("what happens after that", "http://10.0.0.2:8000/metrics", "http://10.0.0.3:8000/metrics", "http://10.0.0.4:8000/metrics")
	assert.Greater(t, api.Asked("list "+kubeapi.Pods), lists, "410 is answered with a new list")
}

func TestAPodIsOneTargetWhateverItsContainersDeclare(t *testing.T) {
	t.Parallel()
	containers := func(c ...kubeapi.Container) func(*kubeapi.Pod) {
		return func(p *kubeapi.Pod) { p.Containers = c }
	}
	api := kubeapi.New(t)
	api.Apply(kubeapi.Pods, vllmPod("single", "10.0.0.1", containers(kubeapi.Container{Name: "engine"})))
	api.Apply(kubeapi.Pods, vllmPod("sidecar", "10.0.0.2", containers(
		kubeapi.Container{Name: "proxy", Port: 9000}, kubeapi.Container{Name: "vllm", Port: 8080}, kubeapi.Container{Name: "lora"})))
	api.Apply(kubeapi.Pods, vllmPod("unsure", "10.0.0.3", containers(
		kubeapi.Container{Name: "proxy"}, kubeapi.Container{Name: "vllm"})))
	api.Apply(kubeapi.Pods, vllmPod("six", "fd00::6"))
	r := run(t, 10, shortForm(api, ", port: 8080, path: /engine/metrics, scheme: https"))
	r.waitFor("one target each",
		"https://10.0.0.1:8080/engine/metrics", "https://10.0.0.2:8080/engine/metrics",
		"https://10.0.0.3:8080/engine/metrics", "https://[fd00::6]:8080/engine/metrics")
	assert.Equal(t, "engine", r.attributes("https://10.0.0.1:8080/engine/metrics")["k8s.container.name"])
	assert.Equal(t, "vllm", r.attributes("https://10.0.0.2:8080/engine/metrics")["k8s.container.name"])
	assert.NotContains(t, r.attributes("https://10.0.0.3:8080/engine/metrics"), "k8s.container.name", "a guess")
	assert.Equal(t, "unsure", r.attributes("https://10.0.0.3:8080/engine/metrics")["k8s.pod.name"])
}

func TestADeniedListIsLoggedOnceWithTheRuleToAdd(t *testing.T) {
	t.Parallel()
	api := kubeapi.New(t)
	api.Apply(kubeapi.Pods, vllmPod("a", "10.0.0.1"))
	api.Forbid(kubeapi.Pods, true)
	r := run(t, 10, shortForm(api, ""))
	r.waitForLog(`does not let this collector list and watch pods in the namespace "inference". Add to the Role of its service account: ` +
		`apiGroups: [""], resources: ["pods"], verbs: [get, list, watch]`)
	tries := api.Asked("forbidden " + kubeapi.Pods)
	require.Eventually(t, func() bool { return api.Asked("forbidden "+kubeapi.Pods) > tries+3 }, within, 10*time.Millisecond)
	assert.Equal(t, 1, r.logged("does not let this collector"))

	api.Forbid(kubeapi.Pods, false)
	r.waitForLog("now lets this collector")
	r.waitFor("the permission is granted", "http://10.0.0.1:8000/metrics")
}

func TestTheLongFormHasWhatPrometheusHas(t *testing.T) {
	t.Parallel()
	api := kubeapi.New(t)
	api.Apply(kubeapi.Pods, vllmPod("a", "10.0.0.1", func(p *kubeapi.Pod) {
		p.OwnerKind, p.OwnerName = "StatefulSet", "llama"
		p.Labels["team"] = "search"
	}))
	r := run(t, 10, `
kubernetes_sd_configs:
  - role: pod
    api_server: `+api.URL+`
    selectors: [{role: pod, label: app=vllm}]
relabel_configs:
  - source_labels: [__meta_kubernetes_pod_label_team]
    target_label: team
  - target_label: __scrape_interval__
    replacement: 5s
`)
	r.waitFor("the pod with its declared port", "http://10.0.0.1:8000/metrics")
	attributes := r.attributes("http://10.0.0.1:8000/metrics")
	assert.Equal(t, "llama", attributes["k8s.statefulset.name"])
	assert.Equal(t, "search", attributes["team"])
	assert.NotContains(t, attributes, "k8s.deployment.name")
	assert.Equal(t, 5*time.Second, r.targets[0].Interval)
	assert.Equal(t, 5*time.Second, r.targets[0].Timeout, "cut to the interval")
}

func TestAKubeconfigReachesTheClusterToo(t *testing.T) {
	t.Parallel()
	api := kubeapi.New(t, kubeapi.Pools)
	api.Apply(kubeapi.Pods, vllmPod("a", "10.0.0.1"))
	api.Apply(kubeapi.Pools, kubeapi.Pool("inference", "llama", vllmLabels, 8001))
	file := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(file, []byte(`
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "`+api.URL+`"}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
users: [{name: u, user: {}}]
current-context: x
`), 0o600))
	r := run(t, 10, `
kubernetes: {selector: app=vllm, kubeconfig_file: `+file+`}
inference_pool: {name: llama, namespace: inference, kubeconfig_file: `+file+`}
`)
	r.waitFor("both forms", "http://10.0.0.1:8000/metrics", "http://10.0.0.1:8001/metrics")
	assert.NotContains(t, r.attributes("http://10.0.0.1:8000/metrics"), PoolAttribute)
	assert.Equal(t, "llama", r.attributes("http://10.0.0.1:8001/metrics")[PoolAttribute])
}
