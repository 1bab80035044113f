package fleet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
)

// patience is far above what anything here takes on a busy machine.
const patience = 30 * time.Second

// A shell says that it is ready, and then does with SIGTERM what the case says.
func shell(t *testing.T, script string) (p *Process, log string) {
	t.Helper()
	log = filepath.Join(t.TempDir(), "log")
	p, err := Start(t.Context(), log, []string{"SAID=ready"}, "/bin/sh", "-c", script+"; echo $SAID $HOME; while :; do sleep 0.05; done")
	require.NoError(t, err)
	require.NoError(t, Wait(t.Context(), patience, "the shell", func() (bool, error) {
		text, err := os.ReadFile(log)
		return strings.Contains(string(text), "ready"), errors.Join(err, p.Ended())
	}))
	return p, log
}

func TestAProcessEndsAsItWasAsked(t *testing.T) {
	p, log := shell(t, "trap 'exit 0' TERM")
	used, err := p.Use()
	require.NoError(t, err)
	assert.Positive(t, used.Resident)
	assert.GreaterOrEqual(t, used.Peak, used.Resident)
	assert.GreaterOrEqual(t, used.Resident, used.Anonymous)
	assert.GreaterOrEqual(t, used.Files, 3)
	took, err := p.Stop(patience)
	require.NoError(t, err)
	assert.Less(t, took, patience)
	text, err := os.ReadFile(log)
	require.NoError(t, err)
	assert.Equal(t, "ready\n", string(text), "it has its variables and no others")
	require.ErrorContains(t, p.Ended(), "sh ended: it ended by itself")
	_, err = p.Use()
	require.Error(t, err)

	p, _ = shell(t, "trap 'exit 3' TERM")
	_, err = p.Stop(patience)
	require.ErrorContains(t, err, "exit status 3")

	p, _ = shell(t, "trap : TERM")
	_, err = p.Stop(100 * time.Millisecond)
	require.ErrorContains(t, err, "did not end within 100ms of SIGTERM")
	require.Error(t, p.Ended())

	p, _ = shell(t, ":")
	p.Kill()
	require.ErrorContains(t, p.Exit(), "killed")
}

func TestOwnMetricsOfOneNameAreAdded(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "# TYPE otelcol_sent counter\notelcol_sent{a=\"1\"} 3\notelcol_sent{a=\"2\"} 4e1\notelcol_queue 5\ngo_threads 9\n")
	}))
	defer server.Close()
	own, err := Own(t.Context(), strings.TrimPrefix(server.URL, "http://"))
	require.NoError(t, err)
	assert.Equal(t, map[string]float64{"otelcol_sent": 43, "otelcol_queue": 5}, own)
}

func TestAWaitEnds(t *testing.T) {
	require.ErrorContains(t, Wait(t.Context(), time.Millisecond, "nothing", func() (bool, error) { return false, nil }), "waited 1ms for nothing")
	require.ErrorIs(t, Wait(t.Context(), patience, "a process", func() (bool, error) { return true, errEnded }), errEnded)
	ended, end := context.WithCancel(t.Context())
	end()
	require.ErrorIs(t, Wait(ended, patience, "nothing", func() (bool, error) { return false, nil }), context.Canceled)
}

func TestHostsHaveAnAddressEach(t *testing.T) {
	hosts, err := NewHosts(t.Context(), func(ip string) http.Handler {
		if ip == IP(30, 251) {
			return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, ip) })
		}
		return nil
	})
	require.NoError(t, err)
	defer hosts.Close()
	url := func(ip string) string { return "http://" + net.JoinHostPort(ip, strconv.Itoa(hosts.Port)) }
	page, err := Get(t.Context(), url("127.30.1.2"))
	require.NoError(t, err)
	assert.Equal(t, "127.30.1.2", string(page))
	_, err = Get(t.Context(), url("127.30.1.3"))
	require.ErrorContains(t, err, "404")
}

// A backend that looks later has taken what it answered, in the order in which it came.
func TestALateBackendAnswersBeforeItLooks(t *testing.T) {
	var names []string
	look := make(chan struct{})
	b, err := NewLateBackend(t.Context(), func(r *Request) {
		<-look
		names = append(names, r.Metrics.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Name())
	})
	require.NoError(t, err)
	defer b.Close()
	post := func(content []byte) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+b.Address+"/v1/metrics", bytes.NewReader(content))
		require.NoError(t, err)
		response, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		assert.Equal(t, http.StatusOK, response.StatusCode)
	}
	for _, name := range []string{"a", "b"} {
		md := pmetric.NewMetrics()
		md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty().SetName(name)
		content, err := pmetricotlp.NewExportRequestFromMetrics(md).MarshalProto()
		require.NoError(t, err)
		post(content)
	}
	post([]byte("no OTLP"))
	assert.False(t, b.Idle())
	close(look)
	require.NoError(t, Wait(t.Context(), patience, "the backend", func() (bool, error) { return b.Idle(), nil }))
	assert.Equal(t, []string{"a", "b"}, names)
	taken := b.Taken()
	assert.Equal(t, []int{2, 0, 1}, []int{taken.Requests, taken.Repeated, taken.Broken})
}
