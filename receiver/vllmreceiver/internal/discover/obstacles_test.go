package discover

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-vllm/otelcol-vllm/internal/test/kubeapi"
)

// hindered runs a discovery and returns its newest obstacle and its log.
func hindered(t *testing.T, text string) (newest func() string, logs *observer.ObservedLogs) {
	t.Helper()
	var mu sync.Mutex
	last := "none yet"
	core, logs := observer.New(zap.InfoLevel)
	r, err := NewRunner(parse(t, text), Options{
		Logger: zap.New(core), Defaults: defaults, Limit: 10, Delay: 100 * time.Millisecond, Retry: 100 * time.Millisecond,
		Wanted: func(_ context.Context, _ []Target, _ int) bool { return true },
		Obstacle: func(sentence string) {
			mu.Lock()
			defer mu.Unlock()
			last = sentence
		},
	})
	require.NoError(t, err)
	require.NoError(t, r.Start())
	t.Cleanup(func() { assert.NoError(t, r.Shutdown(context.Background())) })
	return func() string {
		mu.Lock()
		defer mu.Unlock()
		return last
	}, logs
}

// A Role may have the InferencePool and not its pods, or the other way round.
func TestWhatHindersAPoolIsReported(t *testing.T) {
	t.Parallel()
	for denied, rule := range map[string]string{
		kubeapi.Pods:  `Add to the Role of its service account: apiGroups: [""], resources: ["pods"], verbs: [get, list, watch]`,
		kubeapi.Pools: `Add to the Role of its service account: apiGroups: ["inference.networking.k8s.io"], resources: ["inferencepools"], verbs: [get, list, watch]`,
	} {
		t.Run(denied, func(t *testing.T) {
			t.Parallel()
			api := kubeapi.New(t, kubeapi.Pools)
			api.Forbid(denied, true)
			api.Apply(kubeapi.Pods, vllmPod("a", "10.0.0.1"))
			api.Apply(kubeapi.Pools, kubeapi.Pool("inference", "llama", vllmLabels, 8000))
			newest, logs := hindered(t, poolSection(api))
			require.Eventually(t, func() bool { return strings.Contains(newest(), rule) }, within, 10*time.Millisecond)
			assert.Equal(t, 1, logs.FilterMessageSnippet(rule).FilterLevelExact(zap.WarnLevel).Len())
			api.Forbid(denied, false)
			require.Eventually(t, func() bool { return newest() == "" }, within, 10*time.Millisecond)
			assert.Equal(t, 1, logs.FilterMessageSnippet(rule).Len(), "the watch does not say it again")
		})
	}
}

// A permission can be withdrawn while the collector runs.
func TestAPermissionThatIsLostLaterIsLogged(t *testing.T) {
	t.Parallel()
	api := kubeapi.New(t, kubeapi.Pools)
	api.Apply(kubeapi.Pods, vllmPod("a", "10.0.0.1"))
	api.Apply(kubeapi.Pools, kubeapi.Pool("inference", "llama", vllmLabels, 8000))
	for _, text := range []string{poolSection(api), shortForm(api, "")} {
		r := run(t, 10, text)
		r.waitFor("the server", "http://10.0.0.1:8000/metrics")
		api.Forbid(kubeapi.Pods, true)
		api.Disconnect()
		r.waitForLog(`does not let this collector list and watch pods in the namespace "inference"`)
		r.waitFor("what is known is scraped", "http://10.0.0.1:8000/metrics")
		api.Forbid(kubeapi.Pods, false)
	}
}

func TestAnAPIServerThatDoesNotAnswerIsAnObstacle(t *testing.T) {
	t.Parallel()
	newest, _ := hindered(t, "kubernetes: {namespaces: [models], selector: a=b, api_server: 'http://127.0.0.1:1'}")
	require.Eventually(t, func() bool {
		return strings.Contains(newest(), `Kubernetes cannot be asked for pods in the namespace "models"`)
	}, within, 10*time.Millisecond)
}

func TestOneObstacleIsReportedUntilThereIsNone(t *testing.T) {
	t.Parallel()
	var got []string
	o := newObstacles(func(sentence string) { got = append(got, sentence) })
	for _, change := range [][2]string{{"a", ""}, {"a", "second"}, {"b", "first"}, {"b", "first"}, {"b", ""}, {"a", ""}, {"a", ""}} {
		o.set(change[0], change[1])
	}
	assert.Equal(t, []string{"second", "first", "second", ""}, got)
	newObstacles(nil).set("a", "nothing asks for it")
}
