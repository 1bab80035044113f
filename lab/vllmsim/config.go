package vllmsim

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/gpu"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/surface"
)

// Config describes a stand-in deployment. The zero value is one V1 server with
// one engine.
type Config struct {
	// Dialect is one of surface.Dialects(); the default is "v1".
	Dialect string
	// Version is the vLLM version shown and imitated; the default depends on
	// the dialect.
	Version string
	// Model is the value of model_name.
	Model string
	// Engines is the number of engines of each server (data parallel ranks),
	// Targets the number of servers.
	Engines, Targets int
	// Shares let Targets simulated servers stand behind one router that gives each
	// its share of one Workload, whose rate is then that of all; none gives each
	// server a workload of its own. Servers with shares are ready at the same time. Of
	// traffic each request is for one server, by its number, and each client of a closed loop
	// stays with one server.
	Shares []float64
	// APIServers is the number of API server processes in multi-process mode.
	APIServers int
	// Period is the length of one wave of load, Rate the mean arrival rate of
	// each engine in requests per second.
	Period time.Duration
	Rate   float64
	// Seed makes the run reproducible.
	Seed uint64
	// BlockSize is that of the KV blocks in tokens; the default is 16.
	BlockSize int
	// FrontEnd is what the API servers cost; nil is engine.DefaultFrontEnd.
	FrontEnd *engine.FrontEnd
	// KVCacheTokens, MaxModelLen, MaxSeqs and MaxLoRAs are limits of each engine.
	KVCacheTokens, MaxModelLen, MaxSeqs, MaxLoRAs int
	// LoRA, SpecDecode and FlopsCounters switch features on.
	LoRA, SpecDecode, FlopsCounters bool
	// Hardware is one of Models() and brings its own limits. The default is a small
	// server: 8b-h100 with low limits.
	Hardware string
	// Measured replaces Hardware by another model, such as one of package profile.
	Measured *engine.Model
	// Lockstep lets the engines of a server begin their steps together, see
	// engine.Config.Lockstep.
	Lockstep bool
	// small is true if Hardware was not configured.
	small bool
	// Workload replaces the simulated engine's chat workload; then Rate and
	// Period mean nothing. Its rate is that of a whole server. With traffic and without
	// MaxModelLen, that is what the longest request needs, or the cache can hold.
	Workload *engine.Workload
	// Changes are changes of the simulated engines and their workload.
	Changes []engine.Change
	// TargetChanges are those of each server instead, where they differ.
	TargetChanges [][]engine.Change
	// Faults are faults of the server as its clients see it. They are in the order of
	// their times and do not overlap.
	Faults []Fault
	// Weights are the shares of the requests that each simulated engine gets; none
	// balances by load.
	Weights []float64
	// Transfer lets a simulated engine read KV blocks from other servers.
	Transfer engine.Transfer
	// Truth receives the outcome of each request, with the number of its server. Times
	// are in seconds since the first readiness, as in Changes. Neither they nor the
	// numbers of requests begin again after a restart: the process that was started n times
	// again has the numbers from n x engine.ProcessIDs. The server is locked during the call.
	Truth func(target int, o engine.Outcome)
	// Journal receives what really happens, with the number of its server. Otherwise it
	// is like Truth.
	Journal func(target int, e engine.Event)
	// origin is when the process of the engine was ready, on the clock of Journal, and first
	// the number of its first request.
	origin float64
	first  int
	// Tokens receives each part of an answer when the server passes it on, with the number of its
	// server, that of the request and how many tokens it has. Otherwise it is like Truth.
	Tokens func(target, request, tokens int, at float64)
	// Injected receives each change and fault at its time, before its consequences.
	// Otherwise it is like Truth.
	Injected func(target int, what Injection)
	// NaNCounter shows the counter of requests with corrupted logits.
	NaNCounter bool
	// FollowBlocks is the share of a simulated engine's KV blocks whose residency is
	// shown, as with --kv-cache-metrics; 0 is none.
	FollowBlocks float64
	// HostUptime is for how long the host had been up when the first server became ready;
	// 0 means ten days.
	HostUptime time.Duration
	// Operation and Priority are open changes of vLLM: #52249 divides latencies by `operation`,
	// #58078 the metrics of finished requests by `priority`, and observes the time to the first token
	// when the request ends. The labels divide each bucket, not the requests.
	Operation, Priority bool
	// Hybrid is a model with layers of several kinds, whose KV blocks are of 512 tokens.
	Hybrid bool
	// Quantized and Latent are a quantized model and one with multi-head latent attention;
	// with FlopsCounters.
	Quantized, Latent bool
	// LostHandlers is a web framework that gives routes no path, so that HTTP metrics have no
	// handler from v0.24 on.
	LostHandlers bool
	// ServedModel is the name under which the model is served; empty means Model.
	ServedModel string
	// GPUs simulates the GPUs of each server, and an exporter of their metrics on its node;
	// see Server.Exporters. Nil is none: changes of GPUs are refused then.
	GPUs *gpu.Config
	// Clock returns the time. If it is nil the servers have a clock of their own,
	// which starts at Start and moves only by Server.Advance.
	Clock func() time.Time
	// Start is when the first server became ready; the default is the time of
	// New, or the beginning of 2026 where Clock is nil.
	Start time.Time
}

const (
	blockSize       = 16
	hybridBlockSize = 512
	// hostUptime is that of the host if it is not configured.
	hostUptime = 240 * time.Hour
)

// blockSize is the size of the KV blocks in tokens.
func (c Config) blockSize() int {
	if c.Hybrid {
		return hybridBlockSize
	}
	return cmp.Or(c.BlockSize, blockSize)
}

// changes are those of server number i.
func (c Config) changes(i int) []engine.Change {
	if i < len(c.TargetChanges) {
		return c.TargetChanges[i]
	}
	return c.Changes
}

// served is the name that clients use for the model.
func (c Config) served() string { return cmp.Or(c.ServedModel, c.Model) }

// withDefaults completes the configuration and checks it.
func (c Config) withDefaults() (Config, surface.Version, error) {
	var version surface.Version
	if c.Dialect == "" {
		c.Dialect = string(surface.V1)
	}
	if c.Version == "" {
		c.Version = surface.DefaultVersion(surface.Dialect(c.Dialect))
	}
	if c.Version != "" {
		var err error
		if version, err = surface.ParseVersion(c.Version); err != nil {
			return c, version, err
		}
	}
	if err := surface.Check(surface.Dialect(c.Dialect), version); err != nil {
		return c, version, err
	}
	if c.Model == "" {
		c.Model = "meta-llama/Llama-3.1-8B-Instruct"
	}
	if err := c.checkModel(); err != nil {
		return c, version, err
	}
	if c.Lockstep && c.Engines < 2 {
		return c, version, errors.New("lockstep: it needs two or more engines, which begin their steps together")
	}
	if err := c.checkFaults(); err != nil {
		return c, version, err
	}
	if err := c.checkShares(); err != nil {
		return c, version, err
	}
	if c.GPUs != nil {
		gpus, err := c.GPUs.WithDefaults()
		if err != nil {
			return c, version, fmt.Errorf("gpus: %w", err)
		}
		c.GPUs = &gpus
	}
	for _, number := range []struct {
		field        *int
		name         string
		preset, most int
	}{
		{&c.Engines, "engines", 1, 64},
		{&c.Targets, "targets", 1, 250},
		{&c.APIServers, "API servers", 1, 64},
		{&c.KVCacheTokens, "KV cache tokens", 0, 1 << 30},
		{&c.MaxModelLen, "maximum model length", 0, 1 << 20},
		{&c.MaxSeqs, "sequences", 0, 1024},
		{&c.MaxLoRAs, "LoRA slots", 2, 64},
	} {
		if *number.field == 0 {
			*number.field = number.preset
		}
		if *number.field < 1 || *number.field > number.most {
			return c, version, fmt.Errorf("%s: %d is not between 1 and %d", number.name, *number.field, number.most)
		}
	}
	if c.Engines > 1 && !surface.ManyEngines(surface.Dialect(c.Dialect), version) {
		return c, version, fmt.Errorf("engines: dialect %s of version %s has one engine per server", c.Dialect, version)
	}
	if c.BlockSize < 0 || c.BlockSize > 1<<16 {
		return c, version, fmt.Errorf("block size: %d is not between 0 and %d", c.BlockSize, 1<<16)
	}
	if c.HostUptime < 0 {
		return c, version, fmt.Errorf("uptime of the host %s is below 0", c.HostUptime)
	}
	if c.HostUptime == 0 {
		c.HostUptime = hostUptime
	}
	if c.Period == 0 {
		c.Period = time.Minute
	}
	if c.Rate == 0 {
		c.Rate = 6
	}
	if c.Start.IsZero() {
		c.Start = time.Date(2026, time.January, 5, 0, 0, 0, 0, time.UTC)
		if c.Clock != nil {
			c.Start = c.Clock()
		}
	}
	return c, version, nil
}
