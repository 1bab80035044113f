//go:build e2e

package tiers

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-vllm/otelcol-vllm/lab/test/collector"
)

// The stock program in both tiers: agents of two nodes and one collector, which crashes. What is
// scraped waits in the agents, also in one that is restarted, and then arrives in order: the
// backend gets raw and derived values of the time without the second tier.
func TestOneCollectorBehindStockAgents(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 27, nodes, models)
	behind := newBackend(t)
	at := ownAddress(t)
	second := map[string]string{"OTLP_LISTEN": ownAddress(t), "OTLP_HTTP_LISTEN": at, "OTLP_ENDPOINT": behind.url + "/pool", "QUEUE_DIR": t.TempDir()}
	queues := []string{t.TempDir(), t.TempDir()}
	agent := func(i int) *collector.Process {
		env := f.env(nodes[i])
		env["POOL_ENDPOINT"], env["QUEUE_DIR"] = "http://"+at, queues[i]
		return start(t, "agent-otlp.yaml", env, append(quick, "exporters::otlp_http::retry_on_failure: {initial_interval: 200ms, max_interval: 500ms}")...)
	}
	pool := start(t, "pool-otlp.yaml", second, soon...)
	agents := []*collector.Process{agent(0), agent(1)}
	pools := func() bool { return maps.Equal(f.sizes(), behind.newest()) }
	pool.WaitFor(t, "all servers in their pools", func() bool { return behind.whole(f, 3) && pools() })

	pool.Kill(t)
	crashed, before := time.Now(), f.least()
	agents[0].WaitFor(t, "three scrapes of each server", func() bool { return f.least() >= before+3 })
	agents[1].Stop(t)
	agents[1] = agent(1)
	agents[0].WaitFor(t, "six scrapes of each server", func() bool { return f.least() >= before+6 })
	behind.mu.Lock()
	behind.replicas = map[string]map[string]int{}
	behind.mu.Unlock()
	back := time.Now()
	pool = start(t, "pool-otlp.yaml", second, soon...)
	pool.WaitFor(t, "all servers in their pools again", func() bool { return behind.whole(f, before+6) && pools() })
	for _, c := range agents {
		c.Stop(t)
		assert.Empty(t, c.Complaints())
	}
	pool.WaitFor(t, "all scrapes", func() bool { return behind.findings(f).Lost == 0 && behind.whole(f, f.least()) })
	pool.Stop(t)

	got := behind.findings(f)
	t.Logf("away for %s; %+v", back.Sub(crashed).Round(time.Second), got)
	assert.Zero(t, got.Lost)
	assert.Zero(t, behind.incomplete())
	// A request has the scrapes of all servers of a node.
	assert.LessOrEqual(t, got.Late, len(f.servers)/len(nodes), "the request that an agent was sending when it was stopped")
	assert.LessOrEqual(t, got.Twice, len(f.servers), "a request of each agent whose answer the crash has cut off")
	behind.mu.Lock()
	defer behind.mu.Unlock()
	for instance := range f.servers {
		derived := slices.DeleteFunc(behind.derived[instance]["pool"], func(at time.Time) bool { return at.Before(crashed) || at.After(back) })
		assert.GreaterOrEqual(t, len(derived), 3, "%s: derived values of the time without the second tier", instance)
	}
	assert.Regexp(t, "Will retry.*connection refused", agents[0].Log(), "it says why it waits")
}
