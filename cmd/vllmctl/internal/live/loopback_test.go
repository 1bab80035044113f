package live

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.uber.org/goleak"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim"
)

// serve answers on a free port of the loopback address until the test ends.
func serve(t *testing.T, handler http.Handler) (address string) {
	t.Helper()
	web := httptest.NewServer(handler)
	t.Cleanup(web.Close)
	return web.URL
}

// opened starts a session on real connections, which has ended all it began when the test
// ends.
func opened(t *testing.T, times Times, addresses ...string) *Session {
	t.Helper()
	client := confighttp.NewDefaultClientConfig()
	client.Timeout = time.Second
	plan, err := OfAddresses(addresses, &client, times)
	require.NoError(t, err)
	s := NewSession(plan, NewLog())
	running := goleak.IgnoreCurrent()
	require.NoError(t, s.Start(t.Context(), componenttest.NewNopHost()))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		require.NoError(t, s.Shutdown(ctx))
		goleak.VerifyNone(t, running, goleak.IgnoreAnyFunction("net/http.(*conn).serve"), goleak.IgnoreAnyFunction("net/http.(*connReader).backgroundRead"))
	})
	return s
}

func TestAServerThatHangsDelaysNoOther(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // It accepts, and never answers.
	require.NoError(t, err)
	defer silent.Close()
	drip := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			fmt.Fprintln(w, "# a comment")
			_ = http.NewResponseController(w).Flush()
			time.Sleep(50 * time.Millisecond)
		}
	}))
	well := serve(t, simulated(t, 8, vllmsim.Config{}))
	s := opened(t, Times{Interval: time.Second}, "http://"+silent.Addr().String(), drip, well)
	began := time.Now()
	require.Eventually(t, func() bool {
		table := s.Table(false)
		return table.Reads >= 3 && table.Failing == 2
	}, 20*time.Second, 50*time.Millisecond)
	assert.Less(t, time.Since(began), 10*time.Second)
	table := s.Table(false)
	assert.Equal(t, 3, table.Servers)
	for i := range table.Rows {
		r := &table.Rows[i]
		if "http://"+r.Address == well {
			assert.Empty(t, r.Unread)
			assert.NotEqual(t, "-", r.cell(ByTokens, table.At))
		} else {
			assert.Equal(t, "timeout", r.UnreadKind)
			assert.NotEmpty(t, r.Unread)
			assert.NotContains(t, r.Unread, "the scrape failed", "the receiver's sentence is there")
		}
	}
}

// On real connections and in real time, with scrapes ten times as often as people may choose.
func TestSlowStepsAreReportedOnLoopback(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes ten seconds; the same is tested in virtual time")
	}
	const from = 8 * time.Second
	address := serve(t, simulated(t, 20, vllmsim.Config{}, slow(from, time.Hour)...))
	began := time.Now()
	client := confighttp.NewDefaultClientConfig()
	plan, err := OfAddresses([]string{address}, &client, Times{Interval: time.Second, Window: 2 * time.Second})
	require.NoError(t, err)
	pipeline := &plan.Pipelines[0]
	pipeline.Receivers[0].Config.Controller.CollectionInterval = 100 * time.Millisecond
	pipeline.Processor.Window = time.Second
	s := NewSession(plan, NewLog())
	require.NoError(t, s.Start(t.Context(), componenttest.NewNopHost()))
	defer func() { require.NoError(t, s.Shutdown(context.Background())) }()
	require.Eventually(t, func() bool {
		table := s.Table(false)
		return len(table.Rows) == 1 && table.Rows[0].Verdict.String() == "degraded: slow_steps"
	}, time.Minute, 50*time.Millisecond)
	assert.Greater(t, time.Since(began), from, "not before it is slow")
}
