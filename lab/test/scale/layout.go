package scale

import (
	"crypto/md5" //nolint:gosec // the hash that Prometheus's relabelling uses
	"encoding/binary"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/otelcol-vllm/otelcol-vllm/lab/test/fleet"
)

const (
	// poolSize is how many engines a pool has.
	poolSize = 15
	// namespace is that of all pods.
	namespace = "models"
)

// engine is one server of the fleet.
type engine struct {
	ip, pod, model string
	// pool is the label of the pod; empty for an engine without a pool, which is a model alone.
	pool string
	kind kind
}

// newLayout makes so many engines: nine of ten in pools, the others alone. Every tenth pool has
// five late engines, every tenth two that stall.
func newLayout(engines int) []engine {
	out := make([]engine, engines)
	pooled := engines * 9 / 10 / poolSize * poolSize
	for i := range out {
		e := &out[i]
		e.ip = fleet.IP(20, i)
		e.pod = podPrefix + strconv.Itoa(i)
		place := i % poolSize
		if i < pooled {
			e.pool = fmt.Sprintf("pool-%d", i/poolSize)
			e.model = "scale/" + e.pool
		} else {
			e.model = fmt.Sprintf("scale/single-%d", i)
			place = 0
		}
		// The hash of the names divides the pools among the shards, so any order will do.
		switch group := i / poolSize % 10; {
		case group == 1 && place < 5:
			e.kind = late
		case group == 2 && place < 2:
			e.kind = stalled
		}
	}
	return out
}

// podPrefix stands before the number of an engine.
const podPrefix = "inference-"

// engineOf is the number of an engine by its pod.
func engineOf(pod string) (int, bool) {
	rest, is := strings.CutPrefix(pod, podPrefix)
	n, err := strconv.Atoi(rest)
	return n, is && err == nil
}

// shardOf is the shard that examples/shards.yaml gives an engine: the last eight bytes of the
// MD5 sum of its pool, else of its address, as a number, modulo the number of shards.
func shardOf(e *engine, port, shards int) int {
	key := net.JoinHostPort(e.ip, strconv.Itoa(port))
	if e.pool != "" {
		key = namespace + ";" + e.pool
	}
	sum := md5.Sum([]byte(key)) //nolint:gosec // see above
	return int(binary.BigEndian.Uint64(sum[8:]) % uint64(shards))
}
