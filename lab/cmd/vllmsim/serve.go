package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/gpu"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/surface"
)

const (
	defaultListen = "127.0.0.1:18000"
	// defaultExporter has the port of dcgm-exporter.
	defaultExporter = "127.0.0.1:9400"
)

func serve(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var cfg vllmsim.Config
	flags := newFlags("serve", "", "Exposes /metrics, /health, /ping, /version and /v1/models like vLLM servers under a changing load.", stderr)
	listen := flags.String("listen", defaultListen, "first loopback address and port; further servers take the next addresses")
	exporters := flags.String("gpu-listen", defaultExporter, "first loopback address and port of the exporters of GPU metrics, one for each server; with -gpus or a scenario that has gpus")
	gpus := flags.Bool("gpus", false, "simulate the GPUs of each server, and NVIDIA's exporter of their metrics with all families")
	limit := flags.Duration("for", 0, "stop after this time (0: when interrupted)")
	uptime := flags.Duration("uptime", 0, "pretend to have been up and busy for this long already")
	flags.StringVar(&cfg.Dialect, "dialect", "v1", "what to imitate: "+strings.Join(surface.Dialects(), ", "))
	flags.StringVar(&cfg.Version, "vllm-version", "", "vLLM version to imitate (default: one typical of the dialect)")
	flags.StringVar(&cfg.Model, "model", "", "value of the model_name label (default a Llama 3.1 8B)")
	flags.IntVar(&cfg.Engines, "engines", 1, "engines (data parallel ranks) per server")
	flags.IntVar(&cfg.Targets, "targets", 1, "servers, on consecutive loopback addresses and the same port (other systems than Linux need those addresses set up first)")
	flags.IntVar(&cfg.APIServers, "api-servers", 2, "API server processes, for v1-multiproc")
	flags.DurationVar(&cfg.Period, "period", time.Minute, "length of one wave of load")
	flags.Float64Var(&cfg.Rate, "rate", 6, "mean arrival rate per engine, requests per second")
	flags.Uint64Var(&cfg.Seed, "seed", 1, "seed of the load")
	flags.IntVar(&cfg.KVCacheTokens, "kv-cache-tokens", 0, "capacity of each engine's KV cache in tokens (0: 40960, with -hardware what that holds)")
	flags.IntVar(&cfg.MaxModelLen, "max-model-len", 0, "longest prompt and output together, in tokens (0: 8192, with -hardware 16384)")
	flags.IntVar(&cfg.MaxSeqs, "max-num-seqs", 0, "most requests in one batch (0: 48, with -hardware vLLM's default for that GPU)")
	flags.StringVar(&cfg.Hardware, "hardware", "", "simulated hardware and model: "+strings.Join(vllmsim.Models(), ", ")+
		" (default: 8b-h100 with the low limits of -kv-cache-tokens, -max-model-len and -max-num-seqs)")
	flags.BoolVar(&cfg.LoRA, "lora", false, "requests use LoRA adapters")
	flags.BoolVar(&cfg.SpecDecode, "spec-decode", false, "speculative decoding")
	flags.BoolVar(&cfg.FlopsCounters, "mfu", false, "count estimated FLOPs and memory traffic")
	flags.DurationVar(&cfg.HostUptime, "host-uptime", 0, "for how long the host has been up when the server is ready (0: ten days); durations of requests that were never scheduled are wrong by it")
	flags.BoolVar(&cfg.Hybrid, "hybrid-model", false, "a model with layers of several kinds, whose KV blocks have 512 tokens")
	flags.BoolVar(&cfg.Quantized, "quantized-model", false, "a quantized model, for -mfu")
	flags.BoolVar(&cfg.Latent, "latent-attention", false, "a model with multi-head latent attention, for -mfu")
	flags.BoolVar(&cfg.LostHandlers, "lost-handlers", false, "HTTP metrics without a handler, from v0.24 on")
	flags.StringVar(&cfg.ServedModel, "served-model-name", "", "name under which the model is served (default: that of -model)")
	truth := flags.String("truth", "", "file for what became of each request and what was injected when, one JSON object per line")
	flags.Func("change", "what happens and when, as TIME:PARAMETER=VALUE or TIME:PARAMETER=VALUE@ENGINE, for example 60s:bandwidth=0.5; repeatable; lab/docs/scenarios.md has the parameters", func(text string) error {
		change, err := parseChange(text)
		cfg.Changes = append(cfg.Changes, change)
		return err
	})
	file := flags.String("scenario", "", "file with a server, its load, and the changes over time; examples/scenarios has some")
	speed := flags.Float64("speed", 1, "virtual seconds per second; above 1 timestamps within the metrics lie ahead of the clock")
	noLoad := flags.Bool("no-load", false, "no requests but those sent to /v1/completions")
	rest, err := parse(flags, args)
	if err != nil {
		return err
	}
	if len(rest) > 0 {
		return usagef("unexpected argument %q", rest[0])
	}
	if *uptime < 0 || *uptime > 24*time.Hour {
		return usagef("-uptime %s is not between 0 and 24h", *uptime)
	}
	if !(*speed >= 0.01 && *speed <= 1000) {
		return usagef("-speed %v is not between 0.01 and 1000", *speed)
	}
	if *gpus {
		cfg.GPUs = &gpu.Config{Families: gpu.Groups()}
	}
	var story []string
	if *file != "" {
		if cfg, story, err = withScenario(*file, cfg, flags); err != nil {
			return err
		}
	}
	slices.SortStableFunc(cfg.Changes, func(a, b engine.Change) int { return cmp.Compare(a.At, b.At) })
	if *noLoad {
		cfg.Workload = &engine.Workload{Prompt: engine.Lengths{Median: 1}, Output: engine.Lengths{Median: 1}}
	}
	if *truth != "" {
		out, err := os.Create(*truth)
		if err != nil {
			return err
		}
		defer out.Close()
		lines := newTruthFile(out, stderr)
		cfg.Truth, cfg.Injected = lines.outcome, lines.injected
	}
	began := time.Now()
	cfg.Clock = func() time.Time {
		return began.Add(time.Duration(float64(time.Since(began)) * *speed))
	}
	cfg.Start = began.Add(-*uptime)
	server, err := vllmsim.New(cfg)
	if err != nil {
		return usageError{err}
	}
	ctx, cancel := bounded(ctx, *limit)
	defer cancel()
	if cfg.GPUs == nil {
		return serveAll(ctx, server, *listen, cfg.Dialect, story, stdout)
	}
	// Their line comes first, so that the two do not write at the same time.
	failed, listening := make(chan error, 1), make(chan []string, 1)
	go func() {
		failed <- server.ServeExporters(ctx, *exporters, func(urls []string) { listening <- urls })
		cancel()
	}()
	select {
	case urls := <-listening:
		fmt.Fprintf(stdout, "vllmsim serve: GPUs, metrics at %s\n", vllmsim.Where(metricsURLs(urls)))
	case err := <-failed:
		return err
	}
	err = serveAll(ctx, server, *listen, cfg.Dialect, story, stdout)
	cancel()
	return errors.Join(err, <-failed)
}

// serveAll serves the servers and prints where, and their story.
func serveAll(ctx context.Context, server *vllmsim.Server, listen, dialect string, story []string, stdout io.Writer) error {
	return server.Serve(ctx, listen, func(urls []string) {
		fmt.Fprintf(stdout, "vllmsim serve: %s, metrics at %s\n", dialect, vllmsim.Where(metricsURLs(urls)))
		for _, line := range story {
			fmt.Fprintf(stdout, "  %s\n", line)
		}
	})
}

func metricsURLs(urls []string) []string {
	var out []string
	for _, u := range urls {
		out = append(out, u+"/metrics")
	}
	return out
}
