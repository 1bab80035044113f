//go:build linux

package real

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/lab/judge"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllm/client"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllm/live"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllm/serve"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllm/story"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/realruns"
)

// Unsettled is how long the beginning of a phase is not counted.
const Unsettled = 10 * time.Second

// scraping is how a server is read while clients send requests.
type scraping struct {
	name       string
	collectors int
	every      time.Duration
}

// scrapings are played in this order. The first and the last are equal: they differ by chance, and by
// what has changed on the machine.
var scrapings = []scraping{
	{"none, at the beginning", 0, 0},
	{"every 15 s", 1, 15 * time.Second},
	{"every 5 s", 1, 5 * time.Second},
	{"every 1 s", 1, time.Second},
	{"every 1 s, three collectors", 3, time.Second},
	{"none, at the end", 0, 0},
}

// Felt is what clients and the server had in one phase.
type Felt struct {
	Name string
	// Scrapes is how many the server answered, Requests how many had all of their tokens.
	Scrapes, Requests int
	// First are the times to the first token, Between those from one part of an answer to the next, in seconds.
	First, Between []float64
	// Core is the share of a processor core that the API server used.
	Core float64
}

const scraper = `
receivers:
  vllm: {endpoint: "%s", collection_interval: %s}
processors:
  vllm:
exporters:
  nop:
service:
  pipelines:
    metrics: {receivers: [vllm], processors: [vllm], exporters: [nop]}
  telemetry: {metrics: {level: none}}
`

// Scraped sends the requests of the play's first phase once for each scraping, to one server.
func Scraped(ctx context.Context, p *story.Play, o *Options) (all []Felt, err error) {
	s := p.Server
	// The same requests come again: none may find the prompt of the phase before. And where a processor has
	// only AVX2, a step with bfloat16 can take a minute.
	s.Flags = append(slices.Clone(s.Flags), "--no-enable-prefix-caching", "--dtype=float32")
	server, err := start(ctx, &s, o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	served, err := capacity(ctx, server, o)
	if err != nil {
		return nil, err
	}
	o.say("it serves %.2f requests/s, and gets %.2f", served, served*p.Phases[0].Load)
	for _, s := range scrapings {
		o.say("%s, for %s", s.name, p.Phases[0].For)
		one, err := s.play(ctx, server, o, &p.Phases[0], p.Source(0, served, o.Seed))
		if err != nil {
			return all, err
		}
		all = append(all, *one)
	}
	return all, nil
}

// play returns when all requests are answered. The scrapes go on until then.
func (s *scraping) play(ctx context.Context, server *serve.Server, o *Options, phase *story.Phase, source *story.Source) (f *Felt, err error) {
	var stops []func() error
	defer func() {
		for _, stop := range stops {
			err = errors.Join(err, stop())
		}
	}()
	for n := range s.collectors {
		stop, failed := live.Run(o.Collector, fmt.Sprintf(scraper, server.URL(), s.every), filepath.Join(o.Logs, fmt.Sprintf("collector-%d", n+1)))
		if failed != nil {
			return nil, failed
		}
		stops = append(stops, stop)
	}
	clients := client.New(server.URL(), serve.Model, serve.Adapter, time.Now())
	sent := make(chan struct{})
	go func() {
		clients.Phase(ctx, phase, source)
		close(sent)
	}()
	select {
	case <-time.After(Unsettled):
	case <-ctx.Done():
	}
	before, err1 := look(server)
	<-sent
	after, err2 := look(server)
	clients.Wait()
	if err := errors.Join(ctx.Err(), err1, err2); err != nil {
		return nil, err
	}
	f = &Felt{Name: s.name, Scrapes: after.scrapes - before.scrapes, Core: (after.cpu - before.cpu).Seconds() / after.at.Sub(before.at).Seconds()}
	err = f.take(clients.Sent())
	return f, err
}

// looked is what the server has done until a moment.
type looked struct {
	at      time.Time
	cpu     time.Duration
	scrapes int
}

func look(server *serve.Server) (l looked, err error) {
	log, err := os.ReadFile(server.Log)
	if err != nil {
		return l, err
	}
	l.at, l.scrapes = time.Now(), bytes.Count(log, []byte(`"GET /metrics HTTP/1.1" 200`))
	l.cpu, err = server.CPU()
	return l, err
}

// take adds the requests that were sent after the beginning of a phase.
func (f *Felt) take(sent []judge.Sent) error {
	for i := range sent {
		s := &sent[i]
		if s.How != judge.Answered || len(s.Tokens) == 0 {
			return fmt.Errorf("%s: a request was not answered (%s, status %d)", f.Name, s.How, s.Status)
		}
		if s.At < Unsettled.Seconds() {
			continue
		}
		f.Requests++
		f.First = append(f.First, s.Tokens[0])
		for n := 1; n < len(s.Tokens); n++ {
			f.Between = append(f.Between, s.Tokens[n]-s.Tokens[n-1])
		}
	}
	return nil
}

// FeltTable has a row for each phase.
func FeltTable(all []Felt) string {
	var b strings.Builder
	b.WriteString("| Scrapes | Answered | Requests | TTFT, mean, ms | 99 % | Inter-token latency, mean, ms | 99 % | API server, % of a core |\n|---|---|---|---|---|---|---|---|\n")
	for i := range all {
		f := &all[i]
		first, late := summary(f.First)
		between, slow := summary(f.Between)
		fmt.Fprintf(&b, "| %s | %d | %d | %.1f | %.1f | %.2f | %.2f | %.1f |\n", f.Name, f.Scrapes, f.Requests, first, late, between, slow, 100*f.Core)
	}
	return b.String()
}

// summary returns the mean in milliseconds, and the least value that 99 % do not exceed.
func summary(seconds []float64) (mean, p99 float64) {
	if len(seconds) == 0 {
		return 0, 0
	}
	for _, s := range seconds {
		mean += 1000 * s / float64(len(seconds))
	}
	return mean, 1000 * realruns.Quantile(seconds, 0.99)
}
