//go:build linux

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/lab/judge"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllm/client"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllm/front"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllm/said"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllm/serve"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllm/story"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/probe"
)

// showGateway compares what vllm.pool.gateway_delay says of a gateway before a real vLLM with what its
// clients felt, without and with requests held back.
func showGateway(ctx context.Context, book *story.Book, args []string) (err error) {
	var i installed
	flags := flag.NewFlagSet("gateway", flag.ExitOnError)
	i.flags(flags)
	url := flags.String("url", "", "the `address` of a server that runs already, with the model tiny; empty starts vLLM")
	length := flags.Duration("for", 100*time.Second, "how `long` clients send requests, each time")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if err := i.resolve(); err != nil {
		return err
	}
	logs := filepath.Join(i.folder, "gateway")
	if err := os.MkdirAll(logs, 0o755); err != nil {
		return err
	}
	if *url != "" {
		return compareGateways(ctx, book, *url, *length)
	}
	server := &serve.Server{Folder: i.folder, Version: i.version, Log: filepath.Join(logs, "server.log")}
	if err := server.Start(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	return compareGateways(ctx, book, server.URL(), *length)
}

func compareGateways(ctx context.Context, book *story.Book, server string, length time.Duration) error {
	gateway, err := front.New(server)
	if err != nil {
		return err
	}
	listening := httptest.NewServer(gateway)
	defer listening.Close()

	phase := lengths(book)
	phase.Load, phase.Clients, phase.KeepAlive = 0, 3, true
	phase.Output.Mean = 16 // Short answers are many in a window.
	began := time.Now()
	clients := client.New(listening.URL, serve.Model, serve.Adapter, began)
	clients.Phase(ctx, &story.Phase{For: 20 * time.Second, Clients: 3, KeepAlive: true, Prompt: phase.Prompt, Output: phase.Output}, source(&phase))
	clients.Wait()
	fmt.Println("held back  until        said     felt minus servers  servers")
	for _, held := range []time.Duration{0, 2 * time.Second} {
		gateway.Hold.Store(int64(held))
		if err := compareGateway(ctx, server, gateway, listening.URL, &phase, length, held); err != nil {
			return err
		}
	}
	return nil
}

func source(phase *story.Phase) *story.Source {
	return (&story.Play{Phases: []story.Phase{*phase}}).Source(0, 0, 1)
}

// compareGateway prints what is said after a time of requests, and what clients felt in its last minute.
func compareGateway(ctx context.Context, server string, gateway *front.Gateway, url string, phase *story.Phase, length, held time.Duration) (err error) {
	began := time.Now()
	clients := client.New(url, serve.Model, serve.Adapter, began)
	during := *phase
	during.For = length
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		clients.Phase(ctx, &during, source(phase))
		clients.Wait()
	}()
	replays, err := probe.NewReplays(vllmreceiver.NewFactory().CreateDefaultConfig().(*vllmreceiver.Config))
	if err != nil {
		return err
	}
	receiver, err := replays.Target(server, nil)
	if err != nil {
		return err
	}
	defer receiver.Close()
	processor, err := judge.NewProcessor(ctx, map[string]any{
		"pool": map[string]any{"interval": "5s"},
		"metrics": map[string]any{
			"vllm.pool.time_to_first_token_mean": map[string]any{"enabled": true}, "vllm.pool.e2e_request_latency_mean": map[string]any{"enabled": true},
		},
	}, began)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, processor.Close(ctx)) }()
	var times []float64
	said := map[string]float64{}
	for now := 5 * time.Second; now <= length; now += 5 * time.Second {
		time.Sleep(time.Until(began.Add(now)))
		body, err := get(ctx, server+"/metrics")
		if err != nil {
			return err
		}
		at := time.Now()
		times = append(times, at.Sub(began).Seconds())
		measured, err := gateway.Metrics(ctx, at)
		if err != nil {
			return err
		}
		if _, err := processor.Observe(ctx, at.Sub(began).Seconds(), receiver.Scrape(at, body, "")); err != nil {
			return err
		}
		if _, err := processor.Observe(ctx, at.Sub(began).Seconds(), measured); err != nil {
			return err
		}
		said = delaysOf(processor)
	}
	<-ended
	to := times[len(times)-1]
	from := times[0] // The newest look that is at least as old as the window.
	for _, t := range times {
		if t <= to-60 {
			from = t
		}
	}
	first, whole := mean{}, mean{}
	for _, s := range clients.Sent() {
		if len(s.Tokens) > 0 && s.At+s.Tokens[0] > from && s.At+s.Tokens[0] <= to {
			first.add(s.Tokens[0])
		}
		if s.How == judge.Answered && s.At+s.End > from && s.At+s.End <= to {
			whole.add(s.End)
		}
	}
	for _, until := range []struct {
		name, servers string
		felt          mean
	}{{"first_token", "vllm.pool.time_to_first_token_mean", first}, {"end", "vllm.pool.e2e_request_latency_mean", whole}} {
		servers := said[until.servers]
		fmt.Printf("%-9s  %-11s  %.4f s  %.4f s (%.0f)     %.4f s\n", held, until.name, said[until.name], until.felt.value()-servers, until.felt.n, servers)
	}
	return nil
}

type mean struct{ sum, n float64 }

func (m *mean) add(x float64) { m.sum, m.n = m.sum+x, m.n+1 }

func (m *mean) value() float64 { return m.sum / m.n }

// delaysOf are what the pools say: the delays by until, the means of the servers by metric. What is withheld is NaN.
func delaysOf(processor *judge.Processor) map[string]float64 {
	all := map[string]float64{"first_token": math.NaN(), "end": math.NaN()}
	for _, p := range said.Points(processor.Pools(), "vllm.pool.gateway_delay") {
		until, _ := p.Attributes().Get("until")
		all[until.AsString()] = p.DoubleValue()
	}
	for _, name := range []string{"vllm.pool.time_to_first_token_mean", "vllm.pool.e2e_request_latency_mean"} {
		all[name] = math.NaN()
		for _, p := range said.Points(processor.Pools(), name) {
			all[name] = p.DoubleValue()
		}
	}
	return all
}

func get(ctx context.Context, url string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	return io.ReadAll(response.Body)
}
