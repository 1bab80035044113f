//go:build e2e

package examples

import (
	"crypto/md5"
	"encoding/binary"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/internal/test/kubeapi"
	"github.com/otelcol-vllm/otelcol-vllm/lab/test/collector"
)

// shardedFleet has pods on loopback addresses, and counts which shard scrapes which of them.
type shardedFleet struct {
	vllmServer
	api  *kubeapi.Server
	port string
	// keys are what the example hashes, by address.
	keys map[string]string

	mu sync.Mutex
	// scraped are the shards that have scraped an address.
	scraped map[string]map[int]bool
}

// newShardedFleet starts a fleet of 12 pools, one of which has half of the servers, and of
// three servers without a pool.
func newShardedFleet(t *testing.T) *shardedFleet {
	t.Helper()
	f := &shardedFleet{
		vllmServer: vllmServer{path: "/metrics"}, api: kubeapi.New(t),
		keys: map[string]string{}, scraped: map[string]map[int]bool{},
	}
	// One port on all addresses, as pods have it.
	_, port, err := net.SplitHostPort(collector.FreeAddr(t))
	require.NoError(t, err)
	f.port = port
	add := func(model string) {
		n := len(f.keys)
		ip := fmt.Sprintf("127.0.17.%d", n+1)
		address := net.JoinHostPort(ip, f.port)
		listener, err := net.Listen("tcp", address)
		require.NoError(t, err)
		server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: f}}
		server.Start()
		t.Cleanup(server.Close)
		labels := map[string]string{"app.kubernetes.io/component": "inference"}
		f.keys[address] = address
		if model != "" {
			labels["app.kubernetes.io/model"] = model
			f.keys[address] = "models;" + model
		}
		f.api.Apply(kubeapi.Pods, kubeapi.Pod{
			Namespace: "models", Name: fmt.Sprintf("inference-%d", n), Node: "node-1", IP: ip, Labels: labels,
			Containers: []kubeapi.Container{{Name: "proxy", Port: 9}, {Name: "inference"}},
		}.Object())
	}
	for range 30 {
		add("large")
	}
	for i := range 27 {
		add(fmt.Sprintf("model-%d", i%11))
	}
	for range 3 {
		add("")
	}
	return f
}

// ServeHTTP counts the shard that asks, and answers like a server.
func (f *shardedFleet) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if shard, err := strconv.Atoi(r.Header.Get("X-Shard")); err == nil && r.URL.Path == f.path {
		f.mu.Lock()
		if f.scraped[local.String()] == nil {
			f.scraped[local.String()] = map[int]bool{}
		}
		f.scraped[local.String()][shard] = true
		f.mu.Unlock()
	}
	f.vllmServer.ServeHTTP(w, r)
}

// predicted is the shard of each address, computed without Prometheus: the last eight bytes
// of the MD5 sum of the key as a number, modulo the number of shards.
func (f *shardedFleet) predicted(shards uint64) map[string]int {
	out := map[string]int{}
	for address, key := range f.keys {
		sum := md5.Sum([]byte(key))
		out[address] = int(binary.BigEndian.Uint64(sum[8:]) % shards)
	}
	return out
}

// run runs all shards of the example until each has reported its part. It returns the shard
// of each address, and the attributes with which each address is exported.
func (f *shardedFleet) run(t *testing.T, shards int) (shardOf map[string]int, identity map[string]string) {
	t.Helper()
	f.mu.Lock()
	f.scraped = map[string]map[int]bool{}
	f.mu.Unlock()
	predicted := f.predicted(uint64(shards))
	running, pages := make([]*collector.Process, shards), make([]string, shards)
	for i := range shards {
		pages[i] = collector.FreeAddr(t)
		running[i] = startExample(t, example("shards.yaml"), map[string]string{
			"SHARD": strconv.Itoa(i), "SHARDS": strconv.Itoa(shards), "VLLM_NAMESPACE": "models", "VLLM_PORT": f.port,
			"KUBERNETES_API": f.api.URL, "PROMETHEUS_ADDR": pages[i],
		}, fmt.Sprintf("receivers::vllm::headers::X-Shard: %q", strconv.Itoa(i)))
	}
	identity = map[string]string{}
	for i, c := range running {
		wanted, large := 0, 0
		for address, shard := range predicted {
			if shard == i {
				wanted++
				if f.keys[address] == "models;large" {
					large++
				}
			}
		}
		c.WaitFor(t, "the report of what the shard keeps", func() bool {
			return strings.Contains(c.Log(), fmt.Sprintf("Discovery: relabelling keeps %d of 60 discovered targets for shard %d of %d", wanted, i, shards))
		})
		var page string
		c.WaitFor(t, "all servers of the shard", func() bool {
			page = string(collector.Get(t, "http://"+pages[i]+"/metrics"))
			return strings.Count(page, "\nvllm_up{") == wanted
		})
		for line := range strings.Lines(page) {
			if labels, ok := strings.CutPrefix(line, "vllm_up{"); ok {
				_, after, _ := strings.Cut(labels, `server_address="`)
				ip, _, _ := strings.Cut(after, `"`)
				identity[net.JoinHostPort(ip, f.port)] = labels
			}
		}
		c.Stop(t)
		if wanted == 0 {
			assert.Contains(t, c.Log(), "relabelling keeps none of 60 discovered targets")
		}
		if large > 0 {
			assert.Contains(t, c.Log(), "30 of 60 discovered targets have the same hash key")
		}
		assert.Empty(t, c.Complaints("relabelling keeps none of 60", "have the same hash key"))
	}
	shardOf = map[string]int{}
	f.mu.Lock()
	defer f.mu.Unlock()
	for address, by := range f.scraped {
		require.Len(t, by, 1, "%s is scraped by exactly one shard", address)
		for shard := range by {
			shardOf[address] = shard
		}
	}
	assert.Equal(t, predicted, shardOf)
	return shardOf, identity
}

// Four shards divide a fleet and six do: each server has one shard, pools are whole, and the
// servers that move are those that the hash predicts.
func TestShardsDivideAFleet(t *testing.T) {
	f := newShardedFleet(t)
	four, before := f.run(t, 4)
	six, after := f.run(t, 6)
	require.Len(t, four, 60)
	require.Len(t, six, 60)
	for _, shards := range []map[string]int{four, six} {
		pools := map[string]int{}
		for address, shard := range shards {
			if known, ok := pools[f.keys[address]]; ok {
				assert.Equal(t, known, shard, "%s is whole", f.keys[address])
			}
			pools[f.keys[address]] = shard
		}
	}
	moved, predicted := 0, 0
	predictedFour, predictedSix := f.predicted(4), f.predicted(6)
	for _, address := range slices.Sorted(maps.Keys(f.keys)) {
		if four[address] != six[address] {
			moved++
		}
		if predictedFour[address] != predictedSix[address] {
			predicted++
		}
		assert.NotEmpty(t, before[address])
		assert.Equal(t, before[address], after[address], "a server has the same attributes at each shard")
	}
	t.Logf("from 4 to 6 shards %d of 60 servers move", moved)
	assert.Positive(t, moved)
	assert.Equal(t, predicted, moved)
}

// A shard that does not know its number would scrape nothing, and no other its servers.
func TestAShardWithoutANumberDoesNotStart(t *testing.T) {
	for missing, env := range map[string]string{
		"discovery::relabel_configs::3::regex: is empty":   "SHARDS=4",
		"discovery::relabel_configs::2::modulus: is empty": "SHARD=0",
	} {
		command := exec.CommandContext(t.Context(), collector.Binary(t), "validate", "--config", example("shards.yaml"))
		command.Env = []string{env}
		output, err := command.CombinedOutput()
		require.Error(t, err)
		assert.Contains(t, string(output), missing)
	}
}
