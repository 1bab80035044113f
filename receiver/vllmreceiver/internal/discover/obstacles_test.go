package discover

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
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

// The kubelet kills a collector that has not ended after 30 s, and then its state of the last
// minutes is lost. client-go waits longer and longer, so some attempts are made first.
func TestADiscoveryEndsSoonWhileTheAPIServerIsBusy(t *testing.T) {
	t.Parallel()
	var streams atomic.Int64
	busy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("sendInitialEvents") == "true" {
			streams.Add(1)
		}
		w.WriteHeader(http.StatusTooManyRequests)
	}))
	t.Cleanup(busy.Close)
	r, err := NewRunner(parse(t, "inference_pool: {namespace: models, name: llama, api_server: '"+busy.URL+"'}"), Options{
		Logger: zap.NewNop(), Defaults: defaults, Limit: 10, Wanted: func(context.Context, []Target, int) bool { return true },
	})
	require.NoError(t, err)
	require.NoError(t, r.Start())
	// Two groups, four attempts each: the next wait is 6 to 13 s.
	require.Eventually(t, func() bool { return streams.Load() >= 8 }, within, 10*time.Millisecond)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	assert.NoError(t, r.Shutdown(ctx))
}
