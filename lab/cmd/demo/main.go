// Program demo shows an incident without a GPU: it starts a simulated
// vLLM server, or a real one, to which something happens, and the collector, reads the metrics
// back from the collector's Prometheus endpoint, and prints what they say and what
// the processor makes of them. "make run" builds what it needs and starts it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"
)

// options say what to start and where.
type options struct {
	collector, vllmsim, config string
	// real is the program that runs a real server in place of vllmsim, and realArgs are its
	// arguments; empty means none.
	real     string
	realArgs []string
	// simAddr is where the stand-in server listens, promAddr where the collector
	// offers Prometheus metrics, and fleetAddr its page; all are host:port.
	simAddr, promAddr, fleetAddr string
	logs                         string
	// changes is the file for each change of what the processor reports, one a line;
	// empty means none.
	changes string
	every   time.Duration
	// runFor ends the demonstration by itself; 0 means never.
	runFor   time.Duration
	incident incident
}

func main() {
	// A child asks to be killed when the thread that started it ends, so that
	// thread must live as long as the program.
	runtime.LockOSThread()

	opts := options{incident: slowMemory}
	flag.StringVar(&opts.collector, "collector", "bin/otelcol-vllm", "the collector's `program`")
	flag.StringVar(&opts.vllmsim, "vllmsim", "bin/vllmsim", "the stand-in server's `program`")
	flag.StringVar(&opts.real, "real", "", "start this `program` with the arguments after the flags and -listen instead: it runs a real vLLM server, and says when it is ready and when its incident begins and ends")
	flag.StringVar(&opts.config, "config", "examples/quickstart.yaml", "the collector's configuration `file`")
	flag.StringVar(&opts.simAddr, "sim-addr", "127.0.0.1:8000", "`host:port` of the stand-in server")
	flag.StringVar(&opts.promAddr, "prometheus-addr", "127.0.0.1:9464", "`host:port` of the collector's Prometheus endpoint")
	flag.StringVar(&opts.fleetAddr, "fleet-addr", "127.0.0.1:55690", "`host:port` of the collector's page")
	flag.StringVar(&opts.logs, "logs", "build/run", "`folder` for the logs of both programs")
	flag.StringVar(&opts.changes, "changes", "", "also write what the processor reports into this `file`: a line for each change, with the condition and the primary cause and without a time")
	flag.DurationVar(&opts.every, "every", 3*time.Second, "time between two lines of the table, as long as the story lasts")
	flag.DurationVar(&opts.runFor, "for", 0, "end by itself after this time (0: run until Ctrl-C)")
	flag.Parse()
	if opts.real != "" {
		opts.incident, opts.realArgs = slowWorker, flag.Args()
	}

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := demonstrate(ctx, opts, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

// window is the time that the processor derives over: so short that it learns what
// is usual, and notices what is not, within a minute.
const window = 4 * time.Second

// quietly is the time between two lines once the story is over.
const quietly = 30 * time.Second

// look is the time between two looks at the collector's metrics.
const look = 250 * time.Millisecond

// startLimit is how long a started program may take until it shows something.
const startLimit = 30 * time.Second

// demonstrate runs everything until ctx ends, opts.runFor is over, or a program
// ends by itself, which is an error. It has stopped both programs when it returns.
func demonstrate(ctx context.Context, opts options, out io.Writer) (err error) {
	if err := checkFree("SIM_ADDR", opts.simAddr); err != nil {
		return err
	}
	if err := checkFree("PROMETHEUS_ADDR", opts.promAddr); err != nil {
		return err
	}
	if err := checkFree("FLEET_ADDR", opts.fleetAddr); err != nil {
		return err
	}
	if opts.incident.file != "" {
		if err := opts.incident.read(); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(opts.logs, 0o755); err != nil {
		return err
	}
	tale := &narrator{out: out, incident: opts.incident}
	if opts.changes != "" {
		file, createErr := os.Create(opts.changes)
		if createErr != nil {
			return createErr
		}
		defer func() { err = errors.Join(err, tale.lineErr, file.Close()) }()
		tale.lines = file
	}

	tale.began = time.Now()
	sim, err := serve(opts)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sim.stop()) }()
	if ready, err := sim.ready(ctx, out); !ready {
		return err
	}

	collector, err := start(opts.logs, "collector",
		[]string{
			"VLLM_ENDPOINT=http://" + opts.simAddr,
			"PROMETHEUS_ADDR=" + opts.promAddr,
		},
		opts.collector, "--config", opts.config,
		// A demonstration should show something soon.
		"--config", "yaml:receivers::vllm::collection_interval: 1s",
		"--config", "yaml:receivers::vllm::timeout: 1s",
		"--config", "yaml:processors::vllm::window: "+window.String(),
		// A column of the table, and the evidence.
		"--config", "yaml:processors::vllm::metrics::vllm.time_to_first_token_mean::enabled: true",
		"--config", "yaml:processors::vllm::metrics::vllm.diagnosis.signal::enabled: true",
		"--config", "yaml:processors::vllm::metrics::vllm.diagnosis.signal_ratio::enabled: true",
		// Samples carry the time of their scrape, which is that of a line.
		"--config", "yaml:exporters::prometheus::send_timestamps: true",
		// The page, and probes.
		"--config", "yaml:extensions::vllm_fleet::endpoint: "+opts.fleetAddr,
		"--config", "yaml:service::extensions: [vllm_fleet]",
		// The collector's own metrics would take another port.
		"--config", "yaml:service::telemetry::metrics::level: none",
	)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, collector.stop()) }()

	fmt.Fprintf(out, `
%s and the collector
are running.
  the page for a browser      http://%s/
  what the server says        curl http://%s/metrics
  what the collector makes    curl http://%s/metrics
  the collector's log         %s
`, opts.incident.server, opts.fleetAddr, opts.simAddr, opts.promAddr, collector.logFile)
	if opts.runFor == 0 {
		fmt.Fprintln(out, "Ctrl-C ends both.")
	}
	fmt.Fprintf(out, `
Within %s the server has an incident that ends by itself. The processor first
learns for some 30 s what is usual. Then it must find the incident in the metrics.
`, opts.incident.within)
	return watch(ctx, opts, out, tale, sim, collector)
}

// watch prints the table and the story until it is time to end.
func watch(ctx context.Context, opts options, out io.Writer, tale *narrator, sim, collector *program) error {
	var over <-chan time.Time
	if opts.runFor > 0 {
		timer := time.NewTimer(opts.runFor)
		defer timer.Stop()
		over = timer.C
	}
	tick := time.NewTicker(look)
	defer tick.Stop()

	began, due := time.Now(), time.Time{}
	reader := newReader("http://" + opts.promAddr + "/metrics")
	table := newTable(out, window)
	for {
		select {
		case <-ctx.Done():
			fmt.Fprintln(out, "\nStopping.")
			return nil
		case <-over:
			if table.lines == 0 {
				return fmt.Errorf("no metrics came within %s: %w", opts.runFor, collector.explain(reader.lastError))
			}
			fmt.Fprintf(out, "\n%s are over, stopping.\n", opts.runFor)
			if tale.over {
				tale.lookAt("")
			}
			return nil
		case <-sim.ended:
			return fmt.Errorf("the server ended by itself: %w", sim.explain(sim.err))
		case <-collector.ended:
			return fmt.Errorf("the collector ended by itself: %w", collector.explain(collector.err))
		case line := <-sim.said:
			tale.hear(line, time.Now())
			continue
		case <-tick.C:
		}

		now, err := reader.read(ctx)
		news := err == nil && !now.verdict.Is(&tale.last)
		isDue := !time.Now().Before(due)
		switch {
		case err == nil && (news || isDue):
			if table.lines == 0 {
				fmt.Fprintf(out, "First metrics after %.1f s.\n\n", time.Since(began).Seconds())
			}
			isDue = true
			table.add(now)
			tale.observe(now.at, &now.verdict)
		case err == nil:
		case ctx.Err() == nil && table.lines > 0 && isDue:
			table.silent(time.Now())
		case ctx.Err() == nil && table.lines == 0 && time.Since(began) > startLimit:
			return fmt.Errorf("no metrics came within %s: %w", startLimit, collector.explain(err))
		}
		if isDue && table.lines > 0 {
			due = time.Now().Add(opts.every)
			if tale.over {
				due = time.Now().Add(max(opts.every, quietly))
			}
		}
		if !tale.over && tale.summary(time.Now()) {
			fmt.Fprintln(out, "The incident is over. The collector's log has a line for each of these changes.")
			if opts.runFor == 0 {
				tale.lookAt("http://" + opts.promAddr + "/metrics")
			}
			fmt.Fprintf(out, "The server stays as it is; from now on the table has a line every %s.\n\n", max(opts.every, quietly))
			due = time.Now().Add(max(opts.every, quietly))
		}
	}
}

// checkFree returns an error with what to do if an address is in use. setting is the
// variable of "make run" that changes it.
func checkFree(setting, addr string) error {
	listener, err := net.Listen("tcp", addr)
	if err == nil {
		return listener.Close()
	}
	if !errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("cannot listen on %s: %w", addr, err)
	}
	host, _, _ := net.SplitHostPort(addr)
	return fmt.Errorf("%s is taken by another program; end that, or choose another port: make run %s=%s",
		addr, setting, net.JoinHostPort(host, "<port>"))
}
