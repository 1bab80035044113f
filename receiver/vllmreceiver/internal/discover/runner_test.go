package discover

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/discovery"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
)

// While the pods of a large fleet change all the time, updates take a fifth of the time, and
// not all of it.
func TestChangesOfPodsLeaveTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const update, whole = 300 * time.Millisecond, time.Minute
		ctx, cancel := context.WithCancel(t.Context())
		var updates atomic.Int64
		r := &Runner{
			settings: parse(t, "static_configs: [{targets: [a]}]"), warnings: newWarnings(),
			podsChanged: make(chan struct{}, 1),
			options: Options{Logger: zap.NewNop(), Delay: 5 * time.Second, Wanted: func(context.Context, []Target, int) bool {
				updates.Add(1)
				time.Sleep(update)
				return true
			}},
		}
		registry := prometheus.NewRegistry()
		metrics, err := discovery.CreateAndRegisterSDMetrics(registry)
		require.NoError(t, err)
		r.manager = discovery.NewManager(ctx, newLogger(zap.NewNop()), registry, metrics)
		var ended sync.WaitGroup
		ended.Go(func() { _ = r.manager.Run() })
		ended.Go(func() { r.loop(ctx) })
		book := newPodBook(r.podsChanged)
		for began, i := time.Now(), 0; time.Since(began) < whole; i++ {
			book.set("pod", podState{ended: i%2 == 0})
			time.Sleep(10 * time.Millisecond)
		}
		// The last change is seen, and then there is nothing to do.
		time.Sleep(5 * update)
		assert.InDelta(t, int64(whole/(5*update)), updates.Load(), 2)
		after := updates.Load()
		time.Sleep(whole)
		assert.Equal(t, after, updates.Load())
		cancel()
		ended.Wait()
	})
}
