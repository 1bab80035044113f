package vllmreceiver

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/metadata"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/scrape"
)

func newRound(all *rounds, targets int) *round {
	var r *round
	for range targets {
		r = all.join(time.Unix(1, 0))
	}
	return r
}

func none(ready []*answer) { panic(fmt.Sprint("nothing waits, and yet: ", len(ready))) }

// Nothing waits for a target that has answered, and at most mostTogether are taken at once.
func TestAnswersWaitUntilAllHaveAnsweredOrThereAreEnough(t *testing.T) {
	all := &rounds{open: map[time.Time]*round{}}
	r := newRound(all, mostTogether+3)
	ready := func() int { return len(all.add(r, &answer{asked: &scrape.Asked{}}, func([]*answer) {})) }
	for i := range mostTogether + 3 {
		switch want := ready(); i {
		case mostTogether - 1:
			assert.Equal(t, mostTogether, want)
		case mostTogether + 2:
			assert.Equal(t, 3, want)
		default:
			assert.Zero(t, want, i)
		}
	}
	assert.Empty(t, all.open, "a round ends with its last answer")
}

// One that is taken alone is not waited for.
func TestTheLastOneThatLeavesFreesTheOthers(t *testing.T) {
	all := &rounds{open: map[time.Time]*round{}}
	r := newRound(all, 2)
	taken := make(chan int, 1)
	assert.Empty(t, all.add(r, &answer{asked: &scrape.Asked{}}, func(ready []*answer) { taken <- len(ready) }))
	if ready := all.leave(r); len(ready) != 1 {
		// The machine was slow, and the wait was over.
		assert.Equal(t, 1, <-taken)
	}
	assert.Empty(t, all.open)
	r = newRound(all, 1)
	assert.Len(t, all.add(r, &answer{asked: &scrape.Asked{}}, none), 1)
}

// A server that hangs does not delay those that are due at the same time, for longer than the linger.
func TestAnswersDoNotWaitForAServerThatHangs(t *testing.T) {
	all := &rounds{open: map[time.Time]*round{}}
	r := newRound(all, 3)
	taken := make(chan int, 1)
	take := func(ready []*answer) { taken <- len(ready) }
	assert.Empty(t, all.add(r, &answer{asked: &scrape.Asked{}}, take))
	assert.Empty(t, all.add(r, &answer{asked: &scrape.Asked{}}, take))
	select {
	case n := <-taken:
		assert.Equal(t, 2, n)
	case <-time.After(within):
		t.Error("the answers wait for a server that hangs")
	}
	assert.Len(t, all.open, 1)
}

// startRound runs targets that are due at the same time: of so few, with so long an interval, all are in one group.
func startRound(t *testing.T, next consumer.Metrics, targets int, server http.HandlerFunc) *vllmReceiver {
	t.Helper()
	cfg := scrape.DefaultConfig()
	cfg.Controller.CollectionInterval, cfg.Controller.InitialDelay = 100*time.Millisecond, 0
	r, err := newReceiver(cfg, receivertest.NewNopSettings(metadata.Type), next)
	require.NoError(t, err)
	cfg.Targets = nil
	address := metricsServer(t, server)
	for i := range targets {
		cfg.Targets = append(cfg.Targets, TargetConfig{Client: cfg.Client})
		cfg.Targets[i].Client.Endpoint = fmt.Sprintf("%s/%d/metrics", address, i)
	}
	require.NoError(t, r.Start(t.Context(), componenttest.NewNopHost()))
	return r
}

// A server that restarts is asked for its version again, alone, and loses no point; the others go on together.
func TestServersThatRestartInARound(t *testing.T) {
	sink := new(consumertest.MetricsSink)
	var scrapes, versions atomic.Int64
	asked, answer := make(chan struct{}), make(chan struct{})
	began, again := time.Now().Add(-time.Hour), time.Time{}
	at := func(began time.Time) string { return process(fmt.Sprintf("%.3f", float64(began.UnixMilli())/1e3)) }
	r := startRound(t, sink, 6, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/version"):
			if versions.Add(1) == 7 {
				close(asked)
				<-answer
			}
			http.NotFound(w, r)
		case r.URL.Path == "/0/metrics" && scrapes.Add(1) > 5:
			if again.IsZero() {
				again = time.Now()
			}
			_, _ = fmt.Fprint(w, at(again)+counter("7"))
		default:
			_, _ = fmt.Fprint(w, at(began)+counter("1000"))
		}
	})
	tokens := func(path string) (all []string) {
		for _, m := range resources(sink) {
			if strings.Contains(render(m), path+`"`) && points(m, "vllm.prompt_tokens") != nil {
				all = append(all, points(m, "vllm.prompt_tokens")...)
			}
		}
		return all
	}
	<-asked
	before := len(tokens("/5/metrics"))
	require.Eventually(t, func() bool { return len(tokens("/5/metrics")) > before+2 }, within, 20*time.Millisecond, "the others do not wait for the version")
	close(answer)
	require.Eventually(t, func() bool { return len(tokens("/0/metrics")) > 7 && len(tokens("/5/metrics")) > 7 }, within, 20*time.Millisecond)
	require.NoError(t, r.Shutdown(t.Context()))
	all := tokens("/0/metrics")
	assert.Contains(t, all[4], "1000")
	assert.Contains(t, all[5], " 7", "the first point after the restart is there")
	assert.EqualValues(t, 7, versions.Load(), "each server is asked once, and the one that has restarted again")
	shared := 0
	for _, m := range sink.AllMetrics() {
		shared = max(shared, m.ResourceMetrics().Len())
	}
	assert.Greater(t, shared, 1, "several targets are in one request")
}

// A consumer that hangs with the points of several targets does not hold the removal of one of them, nor Shutdown.
func TestARemoveDoesNotWaitForTheRequestOfARound(t *testing.T) {
	next := &holding{Consumer: consumertest.NewNop(), entered: make(chan struct{}, 100)}
	r := startRound(t, next, 2, quick)
	<-next.entered
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = r.Remove(ctx, scrape.Configured(r.config)[0].Address)
		_ = r.Shutdown(ctx)
	}()
	select {
	case <-done:
	case <-time.After(within):
		t.Error("the end waits for a consumer that hangs")
	}
}

// holding waits for the end of the call with the points of two targets.
type holding struct {
	consumertest.Consumer
	entered chan struct{}
}

func (h *holding) ConsumeMetrics(ctx context.Context, metrics pmetric.Metrics) error {
	if metrics.ResourceMetrics().Len() < 2 {
		return nil
	}
	h.entered <- struct{}{}
	<-ctx.Done()
	return ctx.Err()
}

// After Shutdown nothing is sent, at once and not soon: also where the points of several targets were ready.
func TestNothingIsSentOnceAllSinksAreClosed(t *testing.T) {
	sink := new(consumertest.MetricsSink)
	r, err := newReceiver(scrape.DefaultConfig(), receivertest.NewNopSettings(metadata.Type), sink)
	require.NoError(t, err)
	of := func(closed bool) outgoing {
		to := newSink(nil)
		if closed {
			to.close()
		}
		t.Cleanup(to.close)
		out := pmetric.NewMetrics()
		out.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty().SetEmptyGauge().DataPoints().AppendEmpty()
		return outgoing{to: to, points: out}
	}
	for range 100 {
		require.ErrorIs(t, r.send(of(true), of(true)), errNotRunning)
	}
	assert.Empty(t, sink.AllMetrics())
	require.NoError(t, r.send(of(true), of(false), of(false)))
	assert.Len(t, sink.AllMetrics(), 1)
}
