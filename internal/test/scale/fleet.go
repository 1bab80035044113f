package scale

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"

	"github.com/otelcol-vllm/otelcol-vllm/internal/test/kubeapi"
)

// perProcess is how many engines one process of servers has: each needs a listener and one or
// two connections, and many machines allow 20,000 file descriptors.
const perProcess = 5000

// fleet are the processes of servers.
type fleet struct {
	controls []string
	stops    []func() error
	pids     []int
}

// startFleet starts the engines. With the name of the program, each thousands of them have a
// process of their own; without, which tests need, all are in this one.
func startFleet(ctx context.Context, self string, o ServerOptions) (*fleet, error) {
	f := &fleet{}
	for first := 0; first < o.Engines; first += perProcess {
		o.First, o.Count = first, min(perProcess, o.Engines-first)
		port, err := freePort(ctx)
		if err != nil {
			return nil, err
		}
		o.Control = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		f.controls = append(f.controls, o.Control)
		if self == "" {
			f.inside(ctx, o)
			continue
		}
		if err := f.outside(ctx, self, o); err != nil {
			return f, err
		}
	}
	return f, nil
}

func (f *fleet) inside(ctx context.Context, o ServerOptions) {
	until, end := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- Serve(ctx, o, until) }()
	f.stops = append(f.stops, func() error {
		_ = end.Close()
		return <-ended
	})
}

func (f *fleet) outside(ctx context.Context, self string, o ServerOptions) error {
	command := exec.CommandContext(ctx, self, "-serve", o.Control, "-serve-testdata", o.Testdata, //nolint:gosec // this program
		"-serve-first", strconv.Itoa(o.First), "-serve-count", strconv.Itoa(o.Count), "-engines", strconv.Itoa(o.Engines),
		"-serve-port", strconv.Itoa(o.Port), "-serve-epoch", strconv.FormatInt(o.Epoch, 10))
	command.Stdout, command.Stderr = os.Stdout, os.Stderr
	// It ends with its input, so also when this program is killed.
	input, err := command.StdinPipe()
	if err != nil {
		return err
	}
	if err := command.Start(); err != nil {
		return err
	}
	f.pids = append(f.pids, command.Process.Pid)
	f.stops = append(f.stops, func() error {
		_ = input.Close()
		return command.Wait()
	})
	return nil
}

// answered is how many answers each process of a collector has got.
func (f *fleet) answered(ctx context.Context, query string) (map[int]int64, error) {
	out := map[int]int64{}
	for _, control := range f.controls {
		part, err := answered(ctx, control, query)
		if err != nil {
			return nil, err
		}
		for life, n := range part {
			out[life] += n
		}
	}
	return out, nil
}

func (f *fleet) stop() {
	for _, stop := range f.stops {
		_ = stop()
	}
}

// applyPods makes the pods of the engines known to the API server.
func applyPods(api *kubeapi.Server, engines []engine) {
	for i := range engines {
		e := &engines[i]
		labels := map[string]string{"app.kubernetes.io/component": "inference"}
		if e.pool != "" {
			labels["app.kubernetes.io/model"] = e.pool
		}
		api.Apply(kubeapi.Pods, kubeapi.Pod{
			Namespace: namespace, Name: e.pod, Node: "node-" + strconv.Itoa(i/8), IP: e.ip, Labels: labels,
			Containers: []kubeapi.Container{{Name: "inference"}},
		}.Object())
	}
}

func freePort(ctx context.Context) (int, error) {
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp4", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	addr, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		return 0, fmt.Errorf("a TCP listener has the address %v", l.Addr())
	}
	return addr.Port, nil
}
