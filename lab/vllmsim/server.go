// Package vllmsim is a stand-in for vLLM servers: it exposes what they expose,
// in their dialects, with numbers that move like theirs under a changing load.
// It needs no GPU and no model; it exists for tests and for a first look.
//
// The package has three parts: engine simulates vLLM and turns time into the
// numbers of engines (observed), surface turns those into metric families as a
// given vLLM version has them, and wire writes the families as one kind of
// server does. This package puts them behind HTTP.
package vllmsim

import (
	"bytes"
	"errors"
	"sync"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/gpu"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/surface"
)

// Server is a set of stand-in servers of the same shape. Each target has its
// own state.
type Server struct {
	cfg     Config
	version surface.Version
	targets []*Target
	mu      sync.Mutex
	now     time.Time // The servers' own clock, where Config.Clock is nil.
}

// Target is one stand-in server. It is an http.Handler and safe for concurrent
// use.
type Target struct {
	server *Server
	index  int
	born   time.Time // When the first process was ready: the zero of changes and faults.

	mu sync.Mutex
	// started is when this process began, ready when it could answer.
	started, ready time.Time
	engine         *engine.Server
	// awaited are requests of clients that are connected, with their outcome once
	// there is one.
	awaited map[awaitedKey]*engine.Outcome
	at      float64 // How far the engines are, in seconds since ready.

	turns    []turn    // Those to come.
	away     bool      // It does not answer.
	frozen   []float64 // Shown as the KV cache usage of each engine.
	restarts int
	// injections are its changes and faults, reported is how many of them were passed to
	// Config.Injected.
	injections []Injection
	reported   int
	// firstID is above the numbers of the requests of all processes before.
	firstID int
	// exporter shows the GPUs of its node, with Config.GPUs.
	exporter *gpu.Exporter
}

// awaitedKey is a request of one process.
type awaitedKey struct {
	process *engine.Server
	id      int
}

// errAway is the error of a server that does not answer.
var errAway = errors.New("the server does not answer at this moment")

const (
	// loading is the time between the start of a process and its readiness.
	loading = 74 * time.Second
	// stagger is how much earlier each further target was started.
	stagger = 11 * time.Second
)

// New returns stand-in servers, or an error that names the invalid setting. They listen only once Serve is called; tests can use the targets as
// handlers.
func New(cfg Config) (*Server, error) {
	cfg, version, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Server{cfg: cfg, version: version, now: cfg.Start}
	for i := range cfg.Targets {
		started := cfg.Start.Add(-loading - time.Duration(i)*stagger)
		born := started.Add(loading)
		if len(cfg.Shares) > 0 {
			born = cfg.Start
		}
		t := &Target{
			server: s, index: i, born: born, started: started, ready: born,
			awaited: map[awaitedKey]*engine.Outcome{}, turns: turns(cfg.Faults), injections: cfg.injections(i),
		}
		if t.engine, err = cfg.newEngine(i, version); err != nil {
			return nil, err
		}
		if cfg.GPUs != nil {
			t.exporter = t.newExporter()
			t.sample(0)
		}
		s.targets = append(s.targets, t)
	}
	return s, nil
}

// Targets returns the servers in the order of their addresses.
func (s *Server) Targets() []*Target { return s.targets }

// MaxModelLen is the greatest number of tokens of a request, which it has by default, too.
func (s *Server) MaxModelLen() int { return s.cfg.MaxModelLen }

// Advance moves the servers' own clock by d. It has no effect where Config.Clock
// is set.
func (s *Server) Advance(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = s.now.Add(d)
}

func (s *Server) clock() time.Time {
	if s.cfg.Clock != nil {
		return s.cfg.Clock()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

// Body returns what the target answers to a scrape at this moment, and its
// content type.
func (t *Target) Body() (body []byte, contentType string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.advance(); err != nil {
		return nil, "", err
	}
	if t.away {
		return nil, "", errAway
	}
	shown := t.shown()
	var out bytes.Buffer
	encoder := shown.Encoder()
	if err := encoder.Encode(&out, shown.Families()); err != nil {
		return nil, "", err
	}
	return out.Bytes(), encoder.ContentType(), nil
}

// tick lets the engines catch up with the clock, so that the first scrape after hours
// does not take long.
func (t *Target) tick() {
	t.mu.Lock()
	defer t.mu.Unlock()
	_ = t.advance() // The next request gets the error.
}

// advance lets the engines work up to the present, with all faults on the way.
func (t *Target) advance() error {
	now := t.server.clock().Sub(t.born).Seconds()
	t.reportInjections(now)
	for len(t.turns) > 0 && t.turns[0].at <= now {
		t.work(t.turns[0].at)
		if err := t.turn(t.turns[0]); err != nil {
			return err
		}
		t.turns = t.turns[1:]
	}
	t.work(now)
	return nil
}

// work lets the engines work until so many seconds after the first readiness,
// if they are there, and the exporter of their GPUs take its samples on the way.
func (t *Target) work(until float64) {
	for t.exporter != nil && !t.exporter.OnScrape() && t.exporter.Due() <= until {
		at := t.exporter.Due()
		t.workAlone(at)
		t.sample(at)
	}
	t.workAlone(until)
}

func (t *Target) workAlone(until float64) {
	if t.restarting() {
		return
	}
	t.at = max(t.at, until-t.ready.Sub(t.born).Seconds())
	t.engine.AdvanceTo(t.at)
	for _, o := range t.engine.Outcomes() {
		t.ended(o)
	}
}

// restarting reports whether a process has ended and the next is not yet ready.
func (t *Target) restarting() bool {
	return len(t.turns) > 0 && t.turns[0].fault.Kind == FaultRestart && !t.turns[0].begin
}

// ended passes on the outcome of a request.
func (t *Target) ended(o engine.Outcome) {
	key := awaitedKey{t.engine, o.ID}
	if _, waits := t.awaited[key]; waits {
		t.awaited[key] = &o
	}
	before := t.ready.Sub(t.born).Seconds()
	o.ID += t.firstID
	o.First += t.firstID
	o.Arrived += before
	o.Ended += before
	if t.server.cfg.Truth != nil {
		t.server.cfg.Truth(t.index, o)
	}
}

// States returns the true state of each engine; none while there is no process.
func (t *Target) States() ([]engine.State, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.advance(); err != nil || t.restarting() {
		return nil, err
	}
	return t.engine.States(), nil
}

func (t *Target) shown() *surface.Server {
	cfg := t.server.cfg
	return &surface.Server{
		Dialect: surface.Dialect(cfg.Dialect), Version: t.server.version, Model: cfg.Model,
		ProcessStart: unix(t.started), Ready: unix(t.ready), Now: unix(t.ready) + t.at,
		APIServers: cfg.APIServers, MaxModelLen: cfg.MaxModelLen, KVTokens: cfg.KVCacheTokens, BlockSize: cfg.blockSize(),
		MaxLoRAs: cfg.MaxLoRAs, LoRA: cfg.LoRA, SpecDecode: cfg.SpecDecode,
		PrefixCaching: cfg.prefixCaching(), Node: t.index,
		NaNCounter: cfg.NaNCounter, Transfer: cfg.Transfer.Share > 0, BlockMetrics: cfg.FollowBlocks > 0,
		Operation: cfg.Operation, Priority: cfg.Priority, Hybrid: cfg.Hybrid, LostHandlers: cfg.LostHandlers, Served: cfg.ServedModel, Connections: t.engine.UnderwayCount(),
		CountedSince: t.engine.CountedSince(), Engines: t.stats(),
	}
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

func unix(t time.Time) float64 { return float64(t.UnixMicro()) / 1e6 }
