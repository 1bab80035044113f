//go:build e2e && linux

package probes

import (
	"flag"
	"net/http/httputil"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var (
	realServers = flag.String("real", "", "addresses of two vLLM servers with the model tiny, with a comma; lab/vllm/serve has their flags")
	realEngine  = flag.Int("real.engine", 0, "the number of the first one's process VLLM::EngineCore, which is stopped")
)

// The process of a real engine is stopped; its server goes on and answers /health.
func TestARealStalledEngineGetsNoMoreRequests(t *testing.T) {
	if *realServers == "" {
		t.Skip("needs -real and -real.engine: vLLM servers that run")
	}
	var nodes []*node
	for address := range strings.SplitSeq(*realServers, ",") {
		there, err := url.Parse(address)
		require.NoError(t, err)
		nodes = append(nodes, newNode(t, httputil.NewSingleHostReverseProxy(there)))
	}
	w := newWorld(t, nodes)
	w.startCollector(t)
	w.waitUntilServing(t)
	w.send(t, "probe", "tiny", time.Second)
	w.send(t, "health", "tiny", time.Second)
	time.Sleep(45 * time.Second)
	stall := time.Now()
	require.Greater(t, *realEngine, 1)
	require.NoError(t, syscall.Kill(*realEngine, syscall.SIGSTOP))
	t.Cleanup(func() { require.NoError(t, syscall.Kill(*realEngine, syscall.SIGCONT)) })
	shown(t, w, stall, stall.Add(150*time.Second))
}
