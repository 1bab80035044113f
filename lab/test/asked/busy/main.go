// Program busy measures what it costs the pipeline that others ask the extension vllm_fleet: how long data take from the
// answer of a server to the backend, how much of a processor the collector uses, and how much memory, while nobody asks
// and while others do. The turns follow each other in one process, so that they compare on a busy machine too; it judges
// no figure. Run it in the root of the repository after "make build": go run ./lab/test/asked/busy.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/otelcol-vllm/otelcol-vllm/lab/test/fleet"
)

// The family that has the time of an answer in microseconds since 1970. The receiver keeps families that it does not know.
const sentFamily, sentMetric = "vllm:busy_sent", "vllm.busy_sent"

// step is the time that the recorded counters take for one step.
const step = 15 * time.Second

type options struct {
	collector        string
	targets, engines int
	interval         time.Duration
	rounds           int
}

func main() {
	o := options{}
	flag.StringVar(&o.collector, "collector", "bin/otelcol-vllm", "the collector `program`")
	flag.IntVar(&o.targets, "targets", 1000, "how many servers there are")
	flag.IntVar(&o.engines, "engines", 1, "how many engines a server has")
	flag.DurationVar(&o.interval, "interval", 15*time.Second, "the time between two scrapes of a server, and how long a turn is")
	flag.IntVar(&o.rounds, "rounds", 6, "how many turns each way of asking has")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "busy:", err)
		os.Exit(1) //nolint:gocritic // the process ends, and with it what the defer would undo
	}
}

// busy is a collector with its servers and its backend.
type busy struct {
	address string // of the extension
	targets []string

	mu sync.Mutex
	// delays are those of the present turn, and answers how long probes took.
	delays, answers []time.Duration
	refused, failed atomic.Int64
}

// ways are how others ask during a turn.
var ways = []struct {
	name string
	ask  func(b *busy, ctx context.Context)
}{
	{"nobody asks", func(*busy, context.Context) {}},
	{"1,000 requests a second, not to it", func(b *busy, ctx context.Context) { b.thousand(ctx, b.targets[0], nil) }},
	{"a proxy asks 1,000 probes a second", (*busy).proxy},
	{"20 slow readers of the page", (*busy).slowReaders},
	{"the page is open in two browsers", (*busy).browsers},
}

// turn is what was measured while others asked in one way.
type turn struct {
	scrapes   int
	median    time.Duration
	p99       time.Duration
	processor float64 // the share of one
	peak      int64   // resident bytes
}

func run(ctx context.Context, o options) error {
	template, err := fleet.Load(filepath.Join("testdata", "v1-0.20.0"))
	if err != nil {
		return err
	}
	b, began := &busy{}, time.Now().Add(-time.Hour)
	servers, err := fleet.NewHosts(ctx, func(string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasPrefix(r.URL.Path, "/probe/") {
				return
			}
			now := time.Now()
			body := fmt.Appendf(nil, "# TYPE %s gauge\n%s %d\n", sentFamily, sentFamily, now.UnixMicro())
			w.Header().Set("Content-Type", template.ContentType)
			_, _ = w.Write(template.Append(body, fleet.State{Engines: o.engines, Steps: now.Sub(began).Seconds() / step.Seconds()}))
		})
	})
	if err != nil {
		return err
	}
	defer servers.Close()
	for i := range o.targets {
		b.targets = append(b.targets, net.JoinHostPort(fleet.IP(20, i), strconv.Itoa(servers.Port)))
	}
	backend, err := fleet.NewLateBackend(ctx, b.take)
	if err != nil {
		return err
	}
	defer backend.Close()
	folder, err := os.MkdirTemp("", "busy")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	if b.address, err = fleet.FreeAddress(); err != nil {
		return err
	}
	config := filepath.Join(folder, "collector.yaml")
	if err := os.WriteFile(config, b.config(o, backend.Address), 0o600); err != nil {
		return err
	}
	collector, err := fleet.Start(ctx, filepath.Join(folder, "log"), []string{"HOME=" + folder}, o.collector, "--config", config)
	if err != nil {
		return err
	}
	defer collector.Kill()
	fmt.Printf("%d servers with %d engines each, read every %s; the first three intervals do not count\n", o.targets, o.engines, o.interval)
	if err := fleet.Sleep(ctx, 3*o.interval); err != nil {
		return err
	}
	known, err := fleet.Get(ctx, "http://"+b.address+"/api/v1/fleet")
	if err != nil {
		return err
	}
	if n := bytes.Count(known, []byte(`"scrape_failure":""`)); n != o.targets*o.engines {
		return fmt.Errorf("the extension knows %d engines that can be read, not %d", n, o.targets*o.engines)
	}
	all := make([][]turn, len(ways))
	for range o.rounds {
		for _, way := range rand.Perm(len(ways)) {
			one, err := b.turn(ctx, collector, o.interval, ways[way].ask)
			if err != nil {
				return err
			}
			fmt.Printf("%-36s %5d scrapes  median %s  p99 %s  %.2f processors  peak %d MiB\n",
				ways[way].name, one.scrapes, short(one.median), short(one.p99), one.processor, one.peak>>20)
			all[way] = append(all[way], one)
		}
	}
	b.print(all)
	return nil
}

// config has no queue, so that what takes time is the pipeline.
func (b *busy) config(o options, backend string) []byte {
	type object = map[string]any
	var targets []any
	for _, address := range b.targets {
		targets = append(targets, object{"endpoint": "http://" + address})
	}
	text, err := yaml.Marshal(object{
		"extensions": object{"vllm_fleet": object{"endpoint": b.address}},
		"receivers":  object{"vllm": object{"targets": targets, "collection_interval": o.interval.String()}},
		"processors": object{"vllm": object{"pool": object{}, "max_series": 10_000_000}},
		"exporters": object{"otlp_http": object{
			"endpoint": "http://" + backend, "compression": "none", "sending_queue": object{"enabled": false}, "retry_on_failure": object{"enabled": false},
		}},
		"service": object{
			"extensions": []any{"vllm_fleet"}, "telemetry": object{"metrics": object{"level": "none"}},
			"pipelines": object{"metrics": object{"receivers": []any{"vllm"}, "processors": []any{"vllm"}, "exporters": []any{"otlp_http"}}},
		},
	})
	if err != nil {
		panic(err)
	}
	return text
}

// take notes how long the data of a server took.
func (b *busy) take(r *fleet.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, resource := range r.Metrics.ResourceMetrics().All() {
		for p := range fleet.Points(resource) {
			if p.Metric == sentMetric && p.Value > 0 { // A server that could not be read has a point without a value.
				b.delays = append(b.delays, r.At.Sub(time.UnixMicro(int64(p.Value))))
			}
		}
	}
}

// turn measures for an interval, in which each server is read once.
func (b *busy) turn(ctx context.Context, collector *fleet.Process, length time.Duration, ask func(*busy, context.Context)) (t turn, err error) {
	if err := collector.Ended(); err != nil {
		return t, err
	}
	within, stop := context.WithCancel(ctx)
	var asking sync.WaitGroup
	asking.Go(func() { ask(b, within) })
	defer asking.Wait()
	defer stop()
	// What the turn before has left shows for some seconds.
	if err := fleet.Sleep(ctx, 3*time.Second); err != nil {
		return t, err
	}
	// 5 sets the peak of the resident memory back.
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", collector.Pid()), []byte("5"), 0o600); err != nil {
		return t, err
	}
	before, err := collector.Use()
	if err != nil {
		return t, err
	}
	b.mu.Lock()
	b.delays = nil
	b.mu.Unlock()
	began := time.Now()
	if err := fleet.Sleep(ctx, length); err != nil {
		return t, err
	}
	after, err := collector.Use()
	if err != nil {
		return t, err
	}
	t.processor, t.peak = (after.CPU-before.CPU).Seconds()/time.Since(began).Seconds(), after.Peak
	b.mu.Lock()
	defer b.mu.Unlock()
	if t.scrapes = len(b.delays); t.scrapes == 0 {
		return t, fmt.Errorf("the backend has got nothing for %s", length)
	}
	t.median, t.p99 = quantile(b.delays, 0.5), quantile(b.delays, 0.99)
	return t, nil
}

// get reads an answer as fast as it comes.
func get(ctx context.Context, client *http.Client, url string) (status int) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+url, http.NoBody)
	if err != nil {
		return 0
	}
	answer, err := client.Do(request)
	if err != nil {
		return 0
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode
}

func (b *busy) proxy(ctx context.Context) {
	b.thousand(ctx, b.address, func(status int, took time.Duration) {
		switch status {
		case http.StatusOK:
		case http.StatusServiceUnavailable:
			b.refused.Add(1)
		default:
			b.failed.Add(1)
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		b.answers = append(b.answers, took)
	})
}

// thousand asks about servers at random on ten connections, 100 times a second each. What is not asked of the collector
// shows what the requests alone cost on this machine.
func (b *busy) thousand(ctx context.Context, address string, note func(status int, took time.Duration)) {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 10}}
	defer client.CloseIdleConnections()
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			tick := time.NewTicker(10 * time.Millisecond)
			defer tick.Stop()
			for ctx.Err() == nil {
				began := time.Now()
				status := get(ctx, client, address+"/probe/"+b.targets[rand.IntN(len(b.targets))])
				if note != nil && ctx.Err() == nil {
					note(status, time.Since(began))
				}
				select {
				case <-ctx.Done():
				case <-tick.C:
				}
			}
		})
	}
	all.Wait()
}

// slowReaders take a kilobyte every 100 ms, and ask again when they have read all or were cut off.
func (b *busy) slowReaders(ctx context.Context) {
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			for ctx.Err() == nil {
				b.readSlowly(ctx)
			}
		})
	}
	all.Wait()
}

func (b *busy) readSlowly(ctx context.Context) {
	defer func() { _ = fleet.Sleep(ctx, 100*time.Millisecond) }()
	connection, err := new(net.Dialer).DialContext(ctx, "tcp", b.address)
	if err != nil {
		return
	}
	defer connection.Close()
	_ = connection.(*net.TCPConn).SetReadBuffer(4 << 10)
	if _, err := fmt.Fprintf(connection, "GET / HTTP/1.1\r\nHost: busy\r\nConnection: close\r\n\r\n"); err != nil {
		return
	}
	piece := make([]byte, 1<<10)
	for fleet.Sleep(ctx, 100*time.Millisecond) == nil {
		if _, err := connection.Read(piece); err != nil {
			return
		}
	}
}

// browsers ask for the page again two seconds after they have got it, as its script does.
func (b *busy) browsers(ctx context.Context) {
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() {
			for ctx.Err() == nil {
				if status := get(ctx, http.DefaultClient, b.address+"/"); status != http.StatusOK && ctx.Err() == nil {
					b.failed.Add(1)
				}
				_ = fleet.Sleep(ctx, 2*time.Second)
			}
		})
	}
	all.Wait()
}

// print compares each way with the turn of the same round in which nobody asked.
func (b *busy) print(all [][]turn) {
	fmt.Printf("\n%-36s %10s %10s %10s %10s %10s\n", "medians of all turns", "median", "p99", "processors", "peak MiB", "median / that of nobody, in the same round")
	for way, turns := range all {
		of := func(value func(*turn) float64) float64 {
			var values []float64
			for i := range turns {
				values = append(values, value(&turns[i]))
			}
			return quantile(values, 0.5)
		}
		var ratios []float64
		for round := range turns {
			ratios = append(ratios, float64(turns[round].median)/float64(all[0][round].median))
		}
		fmt.Printf("%-36s %10s %10s %10.2f %10.0f %10.2f (%.2f to %.2f)\n", ways[way].name,
			short(time.Duration(of(func(t *turn) float64 { return float64(t.median) }))), short(time.Duration(of(func(t *turn) float64 { return float64(t.p99) }))),
			of(func(t *turn) float64 { return t.processor }), of(func(t *turn) float64 { return float64(t.peak >> 20) }),
			quantile(ratios, 0.5), slices.Min(ratios), slices.Max(ratios))
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	fmt.Printf("%d probes: median %s, p99 %s, %d answered with 503; %d requests of all kinds failed\n",
		len(b.answers), short(quantile(b.answers, 0.5)), short(quantile(b.answers, 0.99)), b.refused.Load(), b.failed.Load())
}

func short(d time.Duration) string {
	return strings.TrimSuffix(fmt.Sprintf("%.2f", d.Seconds()*1000), ".00") + " ms"
}

func quantile[V time.Duration | float64](values []V, q float64) (v V) {
	if len(values) == 0 {
		return v
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[int(q*float64(len(sorted)-1)+0.5)]
}
