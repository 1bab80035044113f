package discover

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-vllm/otelcol-vllm/internal/test/kubeapi"
)

func poolSection(api *kubeapi.Server) string {
	return "inference_pool: {name: llama, namespace: inference, api_server: " + api.URL + "}"
}

var vllmLabels = map[string]string{"app": "vllm"}

func TestAnInferencePoolIsFollowed(t *testing.T) {
	t.Parallel()
	api := kubeapi.New(t, kubeapi.Pools)
	api.Apply(kubeapi.Pods, vllmPod("a", "10.0.0.1"))
	api.Apply(kubeapi.Pods, vllmPod("b", "10.0.0.2", func(p *kubeapi.Pod) { p.Labels = map[string]string{"app": "other"} }))
	r := run(t, 10, poolSection(api))
	r.waitForLog(`There is no InferencePool "llama" in the namespace "inference"`)

	api.Apply(kubeapi.Pools, kubeapi.Pool("inference", "mistral", vllmLabels, 9999))
	api.Apply(kubeapi.Pools, kubeapi.Pool("inference", "llama", vllmLabels, 8000))
	r.waitFor("the pool is made", "http://10.0.0.1:8000/metrics")
	assert.Equal(t, "llama", r.attributes("http://10.0.0.1:8000/metrics")[PoolAttribute])
	assert.Equal(t, "a", r.attributes("http://10.0.0.1:8000/metrics")["k8s.pod.name"])

	api.Apply(kubeapi.Pools, kubeapi.Pool("inference", "llama", vllmLabels, 8000, 8001))
	r.waitFor("a second port on each pod", "http://10.0.0.1:8000/metrics", "http://10.0.0.1:8001/metrics")

	api.Apply(kubeapi.Pools, kubeapi.Pool("inference", "llama", map[string]string{"app": "other"}, 8000))
	r.waitFor("another selector", "http://10.0.0.2:8000/metrics")

	api.Delete(kubeapi.Pools, "inference", "llama")
	r.waitFor("the pool is deleted")
	assert.Positive(t, r.logged("The InferencePool is gone"))
}

func TestServersOfBothSelectorsDoNotEnd(t *testing.T) {
	t.Parallel()
	api := kubeapi.New(t, kubeapi.Pools)
	api.Apply(kubeapi.Pools, kubeapi.Pool("inference", "llama", vllmLabels, 8000))
	api.Apply(kubeapi.Pods, vllmPod("a", "10.0.0.1"))
	r := run(t, 10, poolSection(api))
	r.waitFor("the pool's server", "http://10.0.0.1:8000/metrics")
	r.mu.Lock()
	before := len(r.history)
	r.mu.Unlock()
	api.Apply(kubeapi.Pods, vllmPod("b", "10.0.0.2"))
	r.waitFor("two", "http://10.0.0.1:8000/metrics", "http://10.0.0.2:8000/metrics")
	api.Apply(kubeapi.Pools, kubeapi.Pool("inference", "llama", map[string]string{"app": "vllm", "pod-template-hash": "5d4f"}, 8000))
	r.waitForLog("The InferencePool has changed")
	api.Delete(kubeapi.Pods, "inference", "b")
	r.waitFor("the new selector works", "http://10.0.0.1:8000/metrics")
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, wanted := range r.history[before:] {
		assert.Contains(t, wanted, "http://10.0.0.1:8000/metrics", "it never ended")
	}
}

// Permissions may cover only one of the two groups.
func TestAPoolOfEitherGroupIsFound(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		has, denied string
		pool        kubeapi.Object
	}{
		"v1":       {kubeapi.Pools, kubeapi.OldPools, kubeapi.Pool("inference", "llama", vllmLabels, 8000)},
		"v1alpha2": {kubeapi.OldPools, kubeapi.Pools, kubeapi.OldPool("inference", "llama", vllmLabels, 8000)},
	} {
		t.Run(name, func(t *testing.T) {
			api := kubeapi.New(t, c.has)
			api.Forbid(c.denied, true)
			api.Apply(kubeapi.Pods, vllmPod("a", "10.0.0.1"))
			api.Apply(c.has, c.pool)
			r := run(t, 10, poolSection(api))
			r.waitFor("the pool's server", "http://10.0.0.1:8000/metrics")
			for _, line := range r.lines() {
				assert.False(t, strings.HasPrefix(line, "warn"), line)
			}
		})
	}
}

func TestWhyThereIsNoPoolIsLoggedOnce(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		prepare func(*kubeapi.Server)
		want    string
	}{
		"not installed": {func(*kubeapi.Server) {}, "the Gateway API Inference Extension is not installed"},
		"denied": {
			func(api *kubeapi.Server) {
				api.Forbid(kubeapi.Pools, true)
				api.Forbid(kubeapi.OldPools, true)
			},
			`apiGroups: ["inference.networking.k8s.io"], resources: ["inferencepools"], verbs: [get, list, watch]`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			api := kubeapi.New(t)
			c.prepare(api)
			r := run(t, 10, poolSection(api))
			r.waitForLog(c.want)
			time.Sleep(time.Second)
			assert.Equal(t, 1, r.logged(c.want))
		})
	}
}

func TestAPoolSurvivesABrokenWatchAnd410(t *testing.T) {
	t.Parallel()
	api := kubeapi.New(t, kubeapi.Pools).WithoutStreaming()
	api.Apply(kubeapi.Pods, vllmPod("a", "10.0.0.1"))
	api.Apply(kubeapi.Pools, kubeapi.Pool("inference", "llama", vllmLabels, 8000))
	r := run(t, 10, poolSection(api))
	r.waitFor("the pool's server", "http://10.0.0.1:8000/metrics")
	api.Disconnect()
	api.Apply(kubeapi.Pools, kubeapi.Pool("inference", "llama", vllmLabels, 8001))
	r.waitFor("after the break", "http://10.0.0.1:8001/metrics")
	api.Expire()
	api.Apply(kubeapi.Pools, kubeapi.Pool("inference", "llama", vllmLabels, 8002))
	r.waitFor("after 410", "http://10.0.0.1:8002/metrics")
	require.Zero(t, r.logged("The InferencePool is gone"))
}

func TestAPoolThatCannotBeReadIsExplained(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		pool kubeapi.Object
		want string
	}{
		"no selector": {kubeapi.Pool("inference", "llama", nil, 8000), "the InferencePool inference/llama has no selector"},
		"no port":     {kubeapi.Pool("inference", "llama", vllmLabels), "the InferencePool inference/llama has no target port"},
	} {
		t.Run(name, func(t *testing.T) {
			api := kubeapi.New(t, kubeapi.Pools)
			api.Apply(kubeapi.Pools, c.pool)
			r := run(t, 10, poolSection(api))
			r.waitForLog(c.want)
		})
	}
}

// A list that has found the pool must not be logged as a missing pool.
func TestAPoolThatExistsIsNotReportedAsMissing(t *testing.T) {
	t.Parallel()
	for _, has := range []string{kubeapi.Pools, kubeapi.OldPools} {
		api := kubeapi.New(t, kubeapi.Pools, kubeapi.OldPools).WithoutStreaming()
		api.Apply(kubeapi.Pods, vllmPod("a", "10.0.0.1"))
		pool := kubeapi.Pool("inference", "llama", vllmLabels, 8000)
		if has == kubeapi.OldPools {
			pool = kubeapi.OldPool("inference", "llama", vllmLabels, 8000)
		}
		api.Apply(has, pool)
		r := run(t, 10, poolSection(api))
		r.waitFor("the pool's server", "http://10.0.0.1:8000/metrics")
		require.Zero(t, r.logged("There is no InferencePool"), "%v", r.lines())
	}
}

// The book of a pool that is gone must not stay in memory, and its states must not be used
// for the pool's successor.
func TestTheBookOfAFormerPoolIsForgotten(t *testing.T) {
	t.Parallel()
	api := kubeapi.New(t, kubeapi.Pools)
	core, logs := observer.New(zap.DebugLevel)
	r, err := NewRunner(parse(t, poolSection(api)), Options{Logger: zap.New(core), Defaults: defaults, Limit: 1})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	r.pool = &pool{selector: "app=vllm", ports: []int{8000}}
	r.followPods(ctx)
	first := r.books[setPool]
	require.NotNil(t, first)
	r.followPods(ctx)
	require.NotNil(t, r.books[setPool])
	assert.NotSame(t, first, r.books[setPool], "another selector")
	r.pool = nil
	r.followPods(ctx)
	assert.NotContains(t, r.books, setPool, "no pool")

	r.pool = &pool{selector: "app=vllm", ports: []int{8000}}
	r.followPods(ctx)
	require.Contains(t, r.books, setPool)
	r.settings.InferencePool.Pods.KubeConfig = "absent"
	r.followPods(ctx)
	assert.NotContains(t, r.books, setPool, "its pods cannot be watched")
	assert.Equal(t, 1, logs.FilterMessageSnippet("The pods of the InferencePool cannot be watched").Len())
	cancel()
	r.wg.Wait()
}
