package content

import "github.com/prometheus/prometheus/promql"

type sample = promql.Sample

// withoutData are the panels that have no data on the simulated deployments, each with the
// reason. A panel that has data must not be here.
var withoutData = map[string]string{
	"vllm-collector: Lines that could not be read":          "the simulated servers write pages without mistakes",
	"vllm-collector: Lost series":                           "no limit is reached",
	"vllm-collector: Lost log records":                      "no log record is refused",
	"vllm-collector: Points that could not be used":         "the simulated servers send no contradictory points",
	"vllm-features: Bytes moved":                            "the simulator has no offloading connector",
	"vllm-features: Offloading cache in use":                "the simulator has no offloading connector",
	"vllm-features: Cached tokens that were computed again": "the simulated engine never computes all of a cached prompt again",
	"vllm-features: Items from the multi-modal cache":       "the simulated models take text only",
	"vllm-features: Time of a transfer, p95 (NIXL)":         "the simulator counts transfers that fail and no times",
	"vllm-overview: Dropped requests":                       "the simulated version does not count them",
}

// withoutDataWhenHealthy are those that have data only after something has happened.
var withoutDataWhenHealthy = map[string]string{
	"vllm-collector: Restarts of servers":    "no server restarts",
	"vllm-engine: Causes now":                "no engine is degraded",
	"vllm-engine: Shares of the harm":        "no engine is degraded",
	"vllm-engine: Why a scrape failed":       "no scrape fails",
	"vllm-overview: Causes now":              "no engine is degraded",
	"vllm-overview: Causes of pools now":     "no pool is degraded",
	"vllm-overview: Time at warning or page": "no engine is degraded",
	"vllm-pool: Causes now":                  "no pool is degraded",
	"vllm-pool: Errors by code":              "the gateway refuses nothing",
	"vllm-wall: Primary causes":              "no engine is degraded",
}
