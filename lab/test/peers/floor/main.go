// Command floor only reads bodies, by net/http as it comes: what no collector that uses
// net/http can go below. It is the lower end of the scale on which the collectors are compared.
package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"runtime"
	"sync"
	"syscall"
	"time"
)

func main() {
	targets := flag.String("targets", "", "file with an address in each line")
	interval := flag.Duration("interval", time.Second, "time between two requests to a target")
	listen := flag.String("listen", "127.0.0.1:0", "address of its own metrics")
	compress := flag.Bool("gzip", false, "ask for gzip")
	group := flag.Int("group", 1, "how many targets are asked at the same moment")
	flag.Parse()
	if err := run(*targets, *interval, *listen, *compress, *group); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(targets string, interval time.Duration, listen string, compress bool, group int) error {
	file, err := os.Open(targets)
	if err != nil {
		return err
	}
	var addresses []string
	for lines := bufio.NewScanner(file); lines.Scan(); {
		addresses = append(addresses, lines.Text())
	}
	if err := file.Close(); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	server := &http.Server{Addr: listen, ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(allocated)}
	go func() { _ = server.ListenAndServe() }()
	defer server.Close()
	client := &http.Client{Transport: &http.Transport{DisableCompression: !compress, MaxIdleConnsPerHost: 1}}
	var wg sync.WaitGroup
	began := time.Now()
	for i, address := range addresses {
		first := began.Add(interval * time.Duration(i/group*group) / time.Duration(len(addresses)))
		wg.Go(func() { loop(ctx, client, "http://"+address+"/metrics", interval, first) })
	}
	wg.Wait()
	return nil
}

// loop reads the body of one target at a time and then once in each interval.
func loop(ctx context.Context, client *http.Client, address string, interval time.Duration, first time.Time) {
	select {
	case <-ctx.Done():
		return
	case <-time.After(time.Until(first)):
	}
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
		if err != nil {
			return
		}
		if response, err := client.Do(request); err == nil {
			_, _ = io.Copy(io.Discard, response.Body)
			_ = response.Body.Close()
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// allocated reports what the collectors report of themselves under the same name.
func allocated(w http.ResponseWriter, _ *http.Request) {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	fmt.Fprintf(w, "otelcol_process_runtime_total_alloc_bytes %d\n", stats.TotalAlloc)
}
