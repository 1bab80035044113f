package content

import "github.com/prometheus/prometheus/promql"

type sample = promql.Sample

// withoutData are the panels that have no data on the simulated deployments, each with the
// reason. A panel that has data must not be here.
var withoutData = map[string]string{
	"vllm-collector: Unreadable lines":            "the simulated servers write pages without mistakes",
	"vllm-collector: Dropped points":              "no limit is reached",
	"vllm-collector: Lost log records":            "no log record is refused",
	"vllm-collector: Ignored points":              "the simulated servers send no contradictory points",
	"vllm-features: Cached prompt tokens by tier": "the simulated version does not have it",
	"vllm-features: Offload throughput":           "the simulator has no offloading connector",
	"vllm-features: Offload cache usage":          "the simulator has no offloading connector",
	"vllm-features: Recomputed cached tokens":     "the simulated engine never computes all of a cached prompt again",
	"vllm-features: Multi-modal cache hit ratio":  "the simulated models take text only",
	"vllm-features: Transfer time, p95 (NIXL)":    "the simulator counts transfers that fail and no times",
	"vllm-overview: Dropped requests":             "the simulated version does not count them",
}

// withoutDataWhenHealthy are those that have data only after something has happened.
var withoutDataWhenHealthy = map[string]string{
	"vllm-collector: Server restarts":         "no server restarts",
	"vllm-engine: Causes":                     "no engine is degraded",
	"vllm-engine: Share of the harm by cause": "no engine is degraded",
	"vllm-engine: Scrape failures":            "no scrape fails",
	"vllm-overview: Causes":                   "no engine is degraded",
	"vllm-pool: Causes":                       "no pool is degraded",
	"vllm-pool: Gateway errors by code":       "the gateway refuses nothing",
	"vllm-wall: Primary causes":               "no engine is degraded",
}
