package sim

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllm/story"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/surface"
)

// What a real vLLM 0.32.0 took on two processor cores, with the small model of install.sh. All
// are from the run hang-high of 2026-11-28, the one that was disturbed least by other programs,
// from the times of its clients' tokens.
const (
	// stepSeconds and perSequence: between two tokens of a sequence that was alone were 19.7 ms, of
	// nine 24.9 ms, and of sixteen 30 ms in the median, where no prompt came between.
	stepSeconds, perSequence = 18.2e-3, 0.35e-3
	// perToken: a step in which a prompt began took longer by 18 ms for prompts of 80 tokens, 42 ms
	// for 190, and 75 ms for 330.
	perToken = 0.205e-3
	// perPair is attention, per pair of tokens of a prompt. A lone prompt of 3,400 tokens took 2.6 s
	// while other programs made a lone sequence 1.7 times as slow, so 1.5 s.
	perPair = 1.4e-7
	// perCached is attention of a generating sequence, per token before. A sequence of 3,400
	// tokens was not slower than one of 85: it is less than what could be seen.
	perCached = 0.1e-6
	// hostSeconds is the part of a step that is not the worker's. It is a guess.
	hostSeconds = 1e-3
)

// model is the server's hardware.
func model(pace float64) (engine.Model, error) {
	var parts engine.Parts
	for n := 1.0; n <= 1<<14; n *= 2 {
		parts.Products = append(parts.Products, engine.Point{X: n, Seconds: pace * (stepSeconds + perToken*n)})
		parts.Head = append(parts.Head, engine.Point{X: n, Seconds: pace * perSequence * n})
		for before := 1.0; before <= 1<<13; before *= 2 {
			parts.Decode = append(parts.Decode, engine.Point{X: n, Y: before, Seconds: pace * perCached * n * before})
			parts.Prefill = append(parts.Prefill, engine.Point{X: n, Y: before, Seconds: pace * perPair * n * (n/2 + before)})
		}
	}
	tables, err := engine.NewTables(parts)
	return engine.Model{
		Name: "cpu", Tables: tables, StepSeconds: pace * hostSeconds, GPUs: 1,
		// Of the model's configuration: 8 layers of width 768, 6 of 12 heads of 64 in the cache.
		Layers: 8, Width: 768, KVBytes: 8 * 6 * 64 * 2 * 2, WeightBytes: 120e6, FlopsPerToken: 120e6,
		// The size of the KV cache is that of 1 GiB; the budget of tokens is vLLM's for processors.
		Blocks: kvTokens / 16, MaxSeqs: 16, MaxBatchedTokens: 2048,
	}, err
}

const (
	kvTokens  = 87296 // In blocks of 128 tokens: both are in the server's log.
	blockSize = 128
)

// frontEnd is the API server. Its processor time grew by 2.6 ms with each request, and by 0.5 ms
// with each step and 0.1 ms with each token. A lone prompt of 84 tokens got its first token after
// 49 ms; what the step and this work leave of it is the way between the processes.
var frontEnd = engine.FrontEnd{DelaySeconds: 7e-3, RequestSeconds: 2.6e-3, PromptTokenSeconds: 2e-6, BatchSeconds: 0.5e-3, TokenSeconds: 0.1e-3}

// config is the simulated server of a play.
func config(p *story.Play, o *Options) (vllmsim.Config, error) {
	pace := cmp.Or(o.Pace, 1)
	hardware, err := model(pace)
	front := frontEnd
	for _, seconds := range []*float64{&front.DelaySeconds, &front.RequestSeconds, &front.PromptTokenSeconds, &front.BatchSeconds, &front.TokenSeconds} {
		*seconds *= pace
	}
	s := &p.Server.Simulated
	cfg := vllmsim.Config{
		Dialect: string(surface.V1), Version: o.Version, Model: "tiny", Seed: o.Seed, Start: ready,
		Measured: &hardware, FrontEnd: &front, KVCacheTokens: kvTokens, BlockSize: blockSize, MaxModelLen: 4096, MaxSeqs: 16,
		Engines: s.Engines, LoRA: s.LoRA, MaxLoRAs: 2, SpecDecode: s.Draft > 0,
		// All requests are those of the clients here.
		Workload: &engine.Workload{Prompt: engine.Lengths{Median: 1}, Output: engine.Lengths{Median: 1}},
	}
	if s.APIServers > 1 {
		cfg.Dialect, cfg.APIServers = string(surface.V1MultiProcess), s.APIServers
	}
	if s.KVTokens > 0 {
		cfg.KVCacheTokens, cfg.BlockSize = s.KVTokens, s.BlockSize
	}
	for _, flag := range p.Server.Flags {
		if value, is := strings.CutPrefix(flag, "--max-model-len="); is && err == nil {
			cfg.MaxModelLen, err = strconv.Atoi(value)
		}
	}
	return cfg, err
}
