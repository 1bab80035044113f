//go:build e2e && linux

package probes

import (
	"flag"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllm/serve"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllm/story"
)

var (
	realFolder  = flag.String("real", "", "the folder of make vllm, to stall a real engine")
	realVersion = flag.String("real.version", "0.32.0", "the release that is installed there")
)

// The process of a real engine is stopped; its server goes on and answers /health.
func TestARealStalledEngineGetsNoMoreRequests(t *testing.T) {
	if *realFolder == "" {
		t.Skip("needs -real, the folder of make vllm")
	}
	var nodes []*node
	var servers []*serve.Server
	for _, name := range []string{"a", "b"} {
		server := &serve.Server{Folder: *realFolder, Version: *realVersion, Log: filepath.Join(t.TempDir(), name)}
		require.NoError(t, server.Start(t.Context()))
		t.Cleanup(func() { require.NoError(t, server.Stop()) })
		there, err := url.Parse(server.URL())
		require.NoError(t, err)
		nodes, servers = append(nodes, newNode(t, httputil.NewSingleHostReverseProxy(there))), append(servers, server)
	}
	w := newWorld(t, nodes)
	w.startCollector(t)
	w.waitUntilServing(t)
	w.send(t, "probe", serve.Model, time.Second)
	w.send(t, "health", serve.Model, time.Second)
	time.Sleep(45 * time.Second)
	stall := time.Now()
	end, err := servers[0].Begin(t.Context(), &story.Fault{Do: "stop", Of: "core"})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, end()) })
	shown(t, w, stall, stall.Add(150*time.Second))
	require.True(t, servers[0].Healthy(t.Context()), "/health answers all the time")
}
