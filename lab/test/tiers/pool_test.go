//go:build e2e

package tiers

import (
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/lab/test/collector"
)

// soon sends a batch when a test wants to see it.
var soon = []string{
	"exporters::otlp_http::sending_queue::batch::flush_timeout: 100ms", "processors::vllm::pool::interval: 1s",
}

// sizes are the numbers of servers of each pool.
func (f *fleet) sizes() map[string]int {
	out := map[string]int{}
	for _, model := range f.pools {
		out["models.m"+model]++
	}
	return out
}

// newest are the newest numbers of servers of each pool. Of several collectors it is the
// largest: one from which a pool has moved counts its servers until max_staleness.
func (a *account) newest() map[string]int {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := map[string]int{}
	for pool, by := range a.replicas {
		for _, n := range by {
			out[pool] = max(out[pool], n)
		}
	}
	return out
}

// Agents of two nodes and three collectors that derive: each pool is whole at one of them,
// and each scrape arrives whole and once. With a fourth collector some pools move.
func TestAPoolMeetsInOneCollector(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 23, nodes, models)
	behind := newBackend(t)
	var addresses []string
	var running []*collector.Process
	for i := range 4 {
		address := ownAddress(t)
		addresses = append(addresses, address)
		running = append(running, start(t, "pool-otlp.yaml", map[string]string{
			"OTLP_LISTEN": address, "OTLP_ENDPOINT": fmt.Sprintf("%s/pool-%d", behind.url, i),
		}, soon...))
	}
	agents := func(n int) (out []*collector.Process) {
		for _, node := range nodes {
			out = append(out, start(t, "agent-load-balancing.yaml", f.env(node), append(quick, backendsOf(addresses[:n]))...))
		}
		return out
	}
	stop := func(all []*collector.Process) {
		for _, c := range all {
			c.Stop(t)
			assert.Empty(t, c.Complaints())
		}
	}
	three := agents(3)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("pools %v, wanted %v", behind.newest(), f.sizes())
		}
	})
	running[0].WaitFor(t, "all servers in their pools", func() bool {
		return behind.whole(f, 5) && maps.Equal(f.sizes(), behind.newest())
	})
	stop(three)
	// The collectors send what they have got.
	served := func() bool {
		for instance, s := range f.servers {
			s.mu.Lock()
			n := s.served[1]
			s.mu.Unlock()
			if len(scrapesOf(behind.account, instance)) < n {
				return false
			}
		}
		return true
	}
	running[0].WaitFor(t, "all scrapes", served)
	got := behind.findings(f)
	t.Logf("three collectors: %+v", got)
	assert.Zero(t, got.Split)
	assert.Zero(t, got.Lost)
	assert.Zero(t, got.Twice)
	assert.Zero(t, got.Late)
	assert.Zero(t, got.Pools)
	assert.Zero(t, behind.incomplete())
	before := behind.homes()
	behind.mu.Lock()
	for instance := range f.servers {
		require.NotEmpty(t, behind.derived[instance], instance)
	}
	behind.mu.Unlock()

	// The agents get a list with one more.
	four := agents(4)
	first := len(before)
	running[0].WaitFor(t, "scrapes by the new agents", func() bool {
		for instance, s := range f.servers {
			s.mu.Lock()
			n := s.served[1]
			s.mu.Unlock()
			if n < 8 || len(scrapesOf(behind.account, instance)) < n-1 {
				return false
			}
		}
		return true
	})
	stop(four)
	running[0].WaitFor(t, "all scrapes", served)
	after := behind.findings(f)
	moved := 0
	for _, homes := range behind.homes() {
		if len(homes) > 1 {
			moved++
		}
	}
	t.Logf("with a fourth: %d of %d servers, in %d pools, have moved; %+v", moved, first, after.Pools, after)
	assert.Zero(t, after.Split)
	assert.Zero(t, after.Lost, "raw data")
	assert.Zero(t, after.Twice)
	stop(running)
}

func scrapesOf(a *account, instance string) []scrape {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.scrapes[instance]
}

// The files name what the programs have; what needs neither load balancing nor Kafka needs only
// the small one.
func TestTheExamplesAreValid(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(root, "examples", "tiers", "*.yaml"))
	require.NoError(t, err)
	require.Len(t, files, 5)
	for _, file := range files {
		program, args := configurations(t, filepath.Base(file))
		command := exec.CommandContext(t.Context(), program, append([]string{"validate"}, args...)...)
		command.Env = []string{"K8S_NODE_NAME=node-0", "POD_NAME=pool-0", "OTLP_ENDPOINT=http://127.0.0.1:1"}
		output, err := command.CombinedOutput()
		assert.NoError(t, err, "%s %s: %s", program, file, output)
	}
}
