//go:build e2e

package tiers

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/lab/test/collector"
)

// broker starts a broker in this process with these topics, and returns its addresses as the
// value of KAFKA_BROKERS.
func broker(t *testing.T, partitions int32, topics ...string) string {
	t.Helper()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(partitions, topics...))
	require.NoError(t, err)
	t.Cleanup(cluster.Close)
	return "[" + strings.Join(cluster.ListenAddrs(), ", ") + "]"
}

// through returns the environment with the broker.
func through(brokers string, env map[string]string) map[string]string {
	env["KAFKA_BROKERS"] = brokers
	return env
}

// Agents write into Kafka, and the collectors behind it are away for a while: one was stopped
// and one has crashed. Nothing is lost and the scrapes of a server stay in order.
func TestAnOutageWaitsInKafka(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 24, nodes, models)
	behind := newBackend(t)
	topics := []string{"vllm.none"}
	for _, model := range []string{"a", "b", "c", "d", "e"} {
		topics = append(topics, "vllm.models."+model)
	}
	brokers := broker(t, 1, topics...)
	queues := []string{t.TempDir(), t.TempDir()}
	consumers := func() (out []*collector.Process) {
		for i, queue := range queues {
			out = append(out, start(t, "pool-kafka.yaml", through(brokers, map[string]string{
				"POD_NAME": fmt.Sprint("pool-", i), "OTLP_ENDPOINT": fmt.Sprintf("%s/pool-%d", behind.url, i), "QUEUE_DIR": queue,
				"SESSION_TIMEOUT": "60s", "KAFKA_REFRESH": "5s",
			}), soon...))
		}
		return out
	}
	first := consumers()
	var agents []*collector.Process
	for _, node := range nodes {
		agents = append(agents, start(t, "agent-kafka.yaml", through(brokers, f.env(node)), quick...))
	}
	agents[0].WaitFor(t, "all servers in their pools", func() bool {
		return behind.whole(f, 3) && maps.Equal(f.sizes(), behind.newest())
	})
	homes := behind.homes()
	first[0].Stop(t)
	first[1].Kill(t)
	away, began := f.least(), time.Now()
	agents[0].WaitFor(t, "six scrapes of each server", func() bool { return f.least() >= away+6 })
	outage := time.Since(began)
	second := consumers()
	began = time.Now()
	agents[0].WaitFor(t, "what has waited", func() bool {
		n := f.least()
		for instance := range f.servers {
			all := map[int]bool{}
			for _, s := range scrapesOf(behind.account, instance) {
				all[s.number] = true
			}
			if len(all) < n-1 {
				return false
			}
		}
		return true
	})
	t.Logf("the collectors were away for %s; all that had waited has arrived %s after their start", outage.Round(time.Second), time.Since(began).Round(time.Second))
	for _, c := range append(agents, second...) {
		c.Stop(t)
	}
	got := behind.findings(f)
	t.Logf("%+v", got)
	assert.Zero(t, got.Lost)
	assert.Zero(t, got.Late)
	// The one that crashed had not reported all that it had read, which is done once a second.
	assert.LessOrEqual(t, got.Twice, 5*len(models))
	assert.LessOrEqual(t, got.Split, got.Twice, "a scrape is at two collectors only if it was read twice")
	// Kafka gives a member that comes back in time the topics that it had. This broker does so
	// only if the whole request is the same, which it is not with cooperative-sticky.
	moved := 0
	for instance, now := range behind.homes() {
		if len(now) > 1 || now[0] != homes[instance][0] {
			moved++
		}
	}
	t.Logf("%d of %d servers have another collector", moved, len(models))
	for _, c := range agents {
		assert.Empty(t, c.Complaints())
	}
}

// With partitions instead of topics the key is all attributes of a server. A new version
// then moves it to another partition, so that its order is lost, and a pool is cut apart.
func TestAVersionMovesAServerToAnotherPartition(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 25, nodes[:1], models)
	brokers := broker(t, 16, "vllm.none")
	agent := start(t, "agent-kafka.yaml", through(brokers, f.env(nodes[0])), append(quick,
		"exporters::kafka::topic_from_attribute: ''", "exporters::kafka::partition_metrics_by_resource_attributes: true")...)
	client, err := kgo.NewClient(kgo.SeedBrokers(strings.Trim(brokers, "[]")), kgo.ConsumeTopics("vllm.none"))
	require.NoError(t, err)
	t.Cleanup(client.Close)
	arrived := newAccount()
	read := func() {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		client.PollFetches(ctx).EachRecord(func(r *kgo.Record) {
			md, err := (&pmetric.ProtoUnmarshaler{}).UnmarshalMetrics(r.Value)
			require.NoError(t, err)
			assert.Equal(t, 1, md.ResourceMetrics().Len(), "a message is of one server")
			arrived.add(fmt.Sprint("partition-", r.Partition), md)
		})
	}
	agent.WaitFor(t, "scrapes of all servers", func() bool { read(); return arrived.whole(f, 3) })
	before := arrived.findings(f)
	assert.Zero(t, before.Servers)
	for _, s := range f.servers {
		s.restart()
	}
	agent.WaitFor(t, "scrapes of all new processes", func() bool { read(); return arrived.whole(f, 8) })
	agent.Stop(t)
	after := arrived.findings(f)
	t.Logf("%d of %d servers have moved; %+v", after.Servers, len(models), after)
	assert.Positive(t, after.Servers)
	assert.Positive(t, before.Pools, "pools are cut apart from the beginning")
}
