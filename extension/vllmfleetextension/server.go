package vllmfleetextension

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/extension"
	"go.uber.org/zap"

	"github.com/otelcol-vllm/otelcol-vllm/internal/fleet"
)

const (
	// fresh is how long an answer of the processors is used again, so that a proxy that asks 1,000 times a second costs
	// them as much as one that asks once.
	fresh = time.Second
	// tick is the time between two values of the curves.
	tick = time.Minute
	// mostDetails bounds the details that are kept for as long as they are fresh.
	mostDetails = 100
)

// fleetServer is the extension.
type fleetServer struct {
	config   *Config
	settings extension.Settings
	now      func() time.Time

	server *http.Server
	stop   chan struct{}
	done   sync.WaitGroup

	// joining guards sources, by the name of the processor.
	joining sync.Mutex
	sources map[string]fleet.Source

	// asking is held while processors are asked, so that only one caller asks. It guards what follows.
	asking  sync.Mutex
	known   *view
	details map[string]*fleet.Detail

	// remembering guards history: a processor tells it changes while others ask.
	remembering sync.Mutex
	history     history

	// rendering guards the page of all engines, as it was rendered from a view.
	rendering    sync.Mutex
	renderedView *view
	rendered     []byte
}

func newServer(config *Config, settings extension.Settings) *fleetServer {
	return &fleetServer{
		config: config, settings: settings, now: time.Now, stop: make(chan struct{}),
		sources: map[string]fleet.Source{}, history: history{engines: map[string]*curves{}},
	}
}

// Join implements fleet.Registry.
func (f *fleetServer) Join(processor string, source fleet.Source) (tell func([]fleet.Event), leave func()) {
	f.joining.Lock()
	defer f.joining.Unlock()
	f.sources[processor] = source
	tell = func(events []fleet.Event) {
		f.remembering.Lock()
		defer f.remembering.Unlock()
		f.history.tell(events)
	}
	return tell, func() {
		f.joining.Lock()
		defer f.joining.Unlock()
		delete(f.sources, processor)
	}
}

// joined are the processors that have joined.
func (f *fleetServer) joined() map[string]fleet.Source {
	f.joining.Lock()
	defer f.joining.Unlock()
	all := make(map[string]fleet.Source, len(f.sources))
	for name, source := range f.sources {
		all[name] = source
	}
	return all
}

// view returns what the processors know, at most a second old.
func (f *fleetServer) view() *view {
	f.asking.Lock()
	defer f.asking.Unlock()
	now := f.now()
	if age := now.Sub(f.at()); f.known != nil && age >= 0 && age < fresh {
		return f.known
	}
	var before map[string]bool
	if f.known != nil {
		before = f.known.refusedServers()
	}
	f.known, f.details = newView(now, f.snapshots(), f.config.UnfitShare, before), map[string]*fleet.Detail{}
	return f.known
}

func (f *fleetServer) snapshots() map[string]*fleet.Snapshot {
	known := map[string]*fleet.Snapshot{}
	for name, source := range f.joined() {
		known[name] = source.Snapshot()
	}
	return known
}

func (f *fleetServer) at() time.Time {
	if f.known == nil {
		return time.Time{}
	}
	return f.known.at
}

// detail returns why an engine or a pool is as it is; nil where the key is not known.
func (f *fleetServer) detail(processor, key string) *fleet.Detail {
	f.asking.Lock()
	defer f.asking.Unlock()
	if known, has := f.details[key]; has {
		return known
	}
	source := f.joined()[processor]
	if source == nil || len(f.details) >= mostDetails {
		return nil
	}
	detail := source.Detail(key)
	f.details[key] = detail
	return detail
}

// Start implements component.Component.
func (f *fleetServer) Start(ctx context.Context, host component.Host) error {
	listener, err := f.config.ToListener(ctx)
	if err != nil {
		return err
	}
	if f.server, err = f.config.ToServer(ctx, host.GetExtensions(), f.settings.TelemetrySettings, f.handler()); err != nil {
		return errors.Join(err, listener.Close())
	}
	if !f.config.Auth.HasValue() && !isLoopback(listener.Addr()) {
		f.settings.Logger.Warn("Anybody who reaches this address can read the state of all vLLM servers; configure auth, or listen on localhost",
			zap.Stringer("address", listener.Addr()))
	}
	f.done.Add(2)
	go func() {
		defer f.done.Done()
		if err := f.server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			componentstatus.ReportStatus(host, componentstatus.NewFatalErrorEvent(err))
		}
	}()
	go func() {
		defer f.done.Done()
		f.follow()
	}()
	return nil
}

// follow records the curves.
func (f *fleetServer) follow() {
	every := time.NewTicker(tick)
	defer every.Stop()
	for {
		select {
		case <-f.stop:
			return
		case <-every.C:
			f.record(f.view())
		}
	}
}

// RecordAt takes a value of each curve as if it were another time. Tests draw an hour with it.
func (f *fleetServer) RecordAt(at time.Time) { f.record(newView(at, f.snapshots(), 0, nil)) }

func (f *fleetServer) record(v *view) {
	f.remembering.Lock()
	defer f.remembering.Unlock()
	f.history.record(v)
}

// Shutdown implements component.Component. It waits some seconds for answers that are under way.
func (f *fleetServer) Shutdown(ctx context.Context) error {
	if f.server == nil {
		return nil
	}
	close(f.stop)
	ctx, cancel := context.WithTimeout(ctx, shutdownPatience)
	defer cancel()
	err := f.server.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = f.server.Close()
	}
	f.done.Wait()
	return err
}

// shutdownPatience bounds how long Shutdown waits for slow readers.
const shutdownPatience = 3 * time.Second

func isLoopback(address net.Addr) bool {
	host, _, err := net.SplitHostPort(address.String())
	if err != nil {
		return strings.HasPrefix(address.Network(), "unix")
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
