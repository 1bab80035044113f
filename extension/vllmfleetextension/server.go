package vllmfleetextension

import (
	"context"
	"errors"
	"fmt"
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
	// mostDetails bounds the details that are asked for as long as they are fresh: of 10,000 engines one takes 7 ms.
	mostDetails = 30
)

// fleetServer is the extension.
type fleetServer struct {
	config   *Config
	settings extension.Settings
	now      func() time.Time

	server *http.Server
	stop   chan struct{}
	done   sync.WaitGroup

	// asking is held while processors are asked, so that only one caller asks, and none that has left. It guards what
	// follows: the processors by name, the newest view, the details that were asked for since then, and when anybody last
	// asked.
	asking  sync.Mutex
	sources map[string]fleet.Source
	known   *view
	details map[string]*fleet.Detail
	askedAt time.Time

	// remembering guards history: a processor tells it changes while others ask.
	remembering sync.Mutex
	history     history
}

func newServer(config *Config, settings extension.Settings) *fleetServer {
	return &fleetServer{
		config: config, settings: settings, now: time.Now, stop: make(chan struct{}),
		sources: map[string]fleet.Source{}, history: history{engines: map[string]*curves{}},
	}
}

// Join implements fleet.Registry.
func (f *fleetServer) Join(processor string, source fleet.Source) (tell func([]fleet.Event), leave func()) {
	f.asking.Lock()
	defer f.asking.Unlock()
	name := processor
	for n := 2; f.sources[name] != nil; n++ { // One that is in several pipelines joins for each.
		name = fmt.Sprintf("%s (%d)", processor, n)
	}
	f.sources[name] = source
	tell = func(events []fleet.Event) {
		f.remembering.Lock()
		defer f.remembering.Unlock()
		f.history.tell(events)
	}
	return tell, func() {
		f.asking.Lock()
		defer f.asking.Unlock()
		delete(f.sources, name)
	}
}

// view returns what the processors know, at most a second old, to somebody who asks.
func (f *fleetServer) view() *view {
	f.asking.Lock()
	defer f.asking.Unlock()
	f.askedAt = f.now()
	return f.viewAt(f.askedAt)
}

func (f *fleetServer) viewAt(now time.Time) *view {
	if f.known != nil && !now.Before(f.known.at) && now.Sub(f.known.at) < fresh {
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
	for name, source := range f.sources {
		known[name] = source.Snapshot()
	}
	return known
}

// detail returns why an engine or a pool is as it is; nil where the key is not known. busy is true where so many were
// asked for since the newest view that this one has to wait for the next.
func (f *fleetServer) detail(processor, key string) (detail *fleet.Detail, busy bool) {
	f.asking.Lock()
	defer f.asking.Unlock()
	detail, has := f.details[key]
	source := f.sources[processor]
	if has || source == nil {
		return detail, false
	}
	if len(f.details) >= mostDetails {
		return nil, true
	}
	detail = source.Detail(key)
	f.details[key] = detail
	return detail, false
}

// Start implements component.Component.
func (f *fleetServer) Start(ctx context.Context, host component.Host) error {
	listener, err := f.config.ToListener(ctx)
	if err != nil {
		return fmt.Errorf("%s: endpoint %s: %w", f.settings.ID, f.config.NetAddr.Endpoint, err)
	}
	if f.server, err = f.config.ToServer(ctx, host.GetExtensions(), f.settings.TelemetrySettings, f.handler()); err != nil {
		return fmt.Errorf("%s: %w", f.settings.ID, errors.Join(err, listener.Close()))
	}
	f.announce(listener.Addr())
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

// Ready implements extensioncapabilities.PipelineWatcher: by now all processors that it can ask have joined.
func (f *fleetServer) Ready() error {
	f.asking.Lock()
	defer f.asking.Unlock()
	if len(f.sources) == 0 {
		f.settings.Logger.Warn("All probes will answer 200", zap.String("reason", alone))
	}
	return nil
}

// NotReady implements extensioncapabilities.PipelineWatcher.
func (f *fleetServer) NotReady() error { return nil }

// announce logs where it listens, and who may read it.
func (f *fleetServer) announce(address net.Addr) {
	f.settings.Logger.Info("Answers probes, programs and browsers about vLLM servers", zap.Stringer("address", address))
	if !f.config.Auth.HasValue() && !isLoopback(address) {
		f.settings.Logger.Warn("Anybody who reaches this address can read the state of all vLLM servers; configure auth, or listen on localhost",
			zap.Stringer("address", address))
	}
}

// follow records the curves each minute.
func (f *fleetServer) follow() {
	every := time.NewTicker(tick)
	defer every.Stop()
	for {
		select {
		case <-f.stop:
			return
		case <-every.C:
			f.recordAsked()
		}
	}
}

// recordAsked takes a value of each curve if anybody has asked within the hour that curves show, so that processors
// compute nothing for an extension that nobody uses.
func (f *fleetServer) recordAsked() {
	f.asking.Lock()
	var v *view
	if now := f.now(); now.Sub(f.askedAt) < minutes*tick {
		v = f.viewAt(now)
	}
	f.asking.Unlock()
	if v != nil {
		f.record(v)
		return
	}
	f.remembering.Lock()
	defer f.remembering.Unlock()
	clear(f.history.engines)
}

// RecordAt takes a value of each curve as if it were another time. Tests draw an hour with it.
func (f *fleetServer) RecordAt(at time.Time) {
	f.asking.Lock()
	f.askedAt = f.now()
	known := f.snapshots()
	f.asking.Unlock()
	f.record(newView(at, known, 0, nil))
}

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
	if err != nil {
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
