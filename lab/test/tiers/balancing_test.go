//go:build e2e

package tiers

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/lab/test/collector"
)

// models are five pools and a server without one. Neighbours are on different nodes.
var (
	nodes  = []string{"node-0", "node-1"}
	models = []string{"a", "a", "b", "b", "c", "c", "d", "d", "e", "e", "a", ""}
)

// backendsOf is the setting with the collectors of the second tier.
func backendsOf(addresses []string) string {
	return "exporters::load_balancing::resolver::static::hostnames: [" + strings.Join(addresses, ", ") + "]"
}

// manySinks are enough that chance hardly ever puts all pools on one.
const manySinks = 8

// openSinks starts n sinks with one account.
func openSinks(t *testing.T, n int) (sinks []*sink, addresses []string, arrived *account) {
	t.Helper()
	arrived = newAccount()
	for i := range n {
		s := &sink{name: fmt.Sprint("pool-", i), address: fmt.Sprintf("127.0.26.%d:0", taken.Add(1)), account: arrived}
		s.open(t)
		t.Cleanup(s.close)
		sinks, addresses = append(sinks, s), append(addresses, s.address)
	}
	return sinks, addresses, arrived
}

// Each key of the load-balancing exporter, with all versions of the servers changing
// meanwhile. Only the attribute of the pool keeps scrapes, servers and pools whole.
func TestWhichKeyKeepsAPoolWhole(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name    string
		key     string
		correct func(t *testing.T, got findings)
	}{
		{"the pool", "attributes, routing_attributes: [pool]", func(t *testing.T, got findings) {
			t.Helper()
			assert.Zero(t, got.Split)
			assert.Zero(t, got.Servers)
			assert.Zero(t, got.Pools)
		}},
		{"resource", "resource, routing_attributes: []", func(t *testing.T, got findings) {
			t.Helper()
			assert.Positive(t, got.Servers, "a version moves a server")
			assert.LessOrEqual(t, got.Split, got.Servers, "a scrape has the end of the old version too")
			assert.Positive(t, got.Pools)
		}},
		{"model_name", "attributes, routing_attributes: [model_name]", func(t *testing.T, got findings) {
			t.Helper()
			assert.Positive(t, got.Split, "vllm.up has no model_name")
		}},
		{"service", "service, routing_attributes: []", func(t *testing.T, got findings) {
			t.Helper()
			assert.Zero(t, got.Split)
			assert.Zero(t, got.Pools)
			assert.Equal(t, 1, got.Collectors, "all servers have one service.name")
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, 21, nodes, models)
			_, addresses, arrived := openSinks(t, manySinks)
			var agents []*collector.Process
			for _, node := range nodes {
				agents = append(agents, start(t, "agent-load-balancing.yaml", f.env(node), append(quick, backendsOf(addresses),
					"exporters::load_balancing: {routing_key: "+test.key+"}")...))
			}
			agents[0].WaitFor(t, "scrapes of all servers", func() bool { return arrived.whole(f, 3) })
			for _, s := range f.servers {
				s.restart()
			}
			agents[0].WaitFor(t, "scrapes of all new processes", func() bool { return arrived.whole(f, 8) })
			for _, agent := range agents {
				agent.Stop(t)
				assert.Empty(t, agent.Complaints())
			}
			got := arrived.findings(f)
			t.Logf("%+v", got)
			assert.Zero(t, got.Lost)
			assert.Zero(t, got.Twice)
			require.Len(t, arrived.homes(), len(models))
			test.correct(t, got)
		})
	}
}

// above is a queue of the load-balancing exporter itself in place of a queue for each
// collector.
func above(batch string) []string {
	return []string{
		"exporters::load_balancing::protocol::otlp::retry_on_failure: {enabled: false}",
		"exporters::load_balancing::protocol::otlp::sending_queue: {enabled: false}",
		"exporters::load_balancing::retry_on_failure: {enabled: true, initial_interval: 500ms, max_interval: 1s, max_elapsed_time: 0}",
		"exporters::load_balancing::sending_queue: {sizer: requests, queue_size: 1000, num_consumers: 1" + batch + "}",
	}
}

// A collector of the second tier is away for some seconds. With a queue for each collector
// the others do not notice. With one queue above them, they wait; and what is batched is sent
// to them again with each attempt.
func TestADeadCollectorOfTheSecondTier(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name     string
		settings []string
		correct  func(t *testing.T, got findings, others int)
	}{
		{"a queue for each", nil, func(t *testing.T, got findings, others int) {
			t.Helper()
			assert.Zero(t, got.Twice)
			assert.Zero(t, got.Late)
			assert.GreaterOrEqual(t, others, 6, "the others go on")
		}},
		{"a queue above", above(""), func(t *testing.T, got findings, others int) {
			t.Helper()
			assert.Zero(t, got.Late, "with one consumer")
			assert.LessOrEqual(t, others, 2, "the others wait")
		}},
		{"a queue above with batches", above(", batch: {sizer: items, min_size: 10000, flush_timeout: 500ms}"), func(t *testing.T, got findings, _ int) {
			t.Helper()
			assert.Positive(t, got.Twice, "whole batches are sent again")
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, 22, nodes[:1], models)
			sinks, addresses, arrived := openSinks(t, manySinks)
			agent := start(t, "agent-load-balancing.yaml", f.env(nodes[0]), append(append(quick, backendsOf(addresses),
				"exporters::load_balancing::protocol::otlp::retry_on_failure: {initial_interval: 200ms, max_interval: 500ms}"), test.settings...)...)
			agent.WaitFor(t, "scrapes of all servers", func() bool { return arrived.whole(f, 3) })
			homes := arrived.homes()
			of := map[string][]string{}
			for instance, names := range homes {
				require.Len(t, names, 1)
				of[names[0]] = append(of[names[0]], instance)
			}
			require.Greater(t, len(of), 1, "chance has put all pools on one collector")
			dead := sinks[0]
			for _, s := range sinks {
				if len(of[s.name]) > 0 {
					dead = s
				}
			}
			served := func() (n int) {
				for _, s := range f.servers {
					s.mu.Lock()
					n += s.served[1]
					s.mu.Unlock()
				}
				return n
			}
			count := func(during bool) int {
				arrived.mu.Lock()
				defer arrived.mu.Unlock()
				least := 1 << 30
				for instance, all := range arrived.scrapes {
					if homes[instance][0] == dead.name == during {
						distinct := map[int]bool{}
						for _, s := range all {
							distinct[s.number] = true
						}
						least = min(least, len(distinct))
					}
				}
				return least
			}
			dead.close()
			before, others := served(), count(false)
			agent.WaitFor(t, "six scrapes of each server", func() bool { return served() >= before+6*len(models) })
			first := others
			if test.settings == nil {
				agent.WaitFor(t, "the same at the others", func() bool { return count(false) >= first+6 })
			}
			others = count(false) - first
			dead.open(t)
			had := served()
			agent.WaitFor(t, "what has waited", func() bool {
				return served() >= had+3*len(models) && arrived.findings(f).Lost == 0 && count(true) >= (before+6*len(models))/len(models)
			})
			agent.Stop(t)
			got := arrived.findings(f)
			t.Logf("%s: %d of %d servers are on the dead collector; each of the others had at least %d new scrapes meanwhile; in all %+v",
				test.name, len(of[dead.name]), len(models), others, got)
			assert.Zero(t, got.Lost)
			test.correct(t, got, others)
		})
	}
}
