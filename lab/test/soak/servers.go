package soak

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/lab/test/fleet"
)

// templates are the versions of servers in the fleet, by the folder in testdata.
var versions = []struct{ folder, version string }{
	{"v1-0.24.0", "0.24.0"}, {"v1-0.20.0", "0.20.0"}, {"v1-0.8.5", "0.8.5"}, {"rust-0.24.0", "0.24.0"}, {"v0-0.6.6", "0.6.6"},
}

// engineCounts is how many engines servers have; most have one.
var engineCounts = []int{1, 1, 1, 1, 1, 2, 1, 1, 4, 2, 1, 1, 8, 1, 2, 1}

const (
	// rest is how long a removed target stays away at least. Discovery needs some seconds to
	// notice, and a target that returns earlier would not have been away.
	rest = 20 * time.Second
	// mostResting is how many removed targets are kept to return; older ones end.
	mostResting = 30
	// sendTime is the time in which an answer that was written reaches the collector. A server
	// that ends within it may take it along.
	sendTime = time.Second
)

// servers are the servers, and the lists that discovery reads.
type servers struct {
	dir       string
	ledger    *ledger
	templates []*template
	numbers   atomic.Uint64

	mu      sync.Mutex
	random  *rand.Rand
	made    int
	port    uint16
	active  []*target
	resting []resting
	lists   *http.Server
	listURL string
	// events counts what has been done, by name.
	events map[string]int
}

type resting struct {
	t     *target
	since time.Time
}

// newServers reads the bodies in testdata; dir is where the list of targets is written.
func newServers(testdata, dir string, seed uint64, l *ledger) (*servers, error) {
	f := &servers{dir: dir, ledger: l, random: rand.New(rand.NewPCG(seed, 1)), events: map[string]int{}}
	for _, v := range versions {
		t, err := loadTemplate(testdata, v.folder, v.version)
		if err != nil {
			return nil, err
		}
		f.templates = append(f.templates, t)
	}
	return f, nil
}

// start begins with so many targets.
func (f *servers) start(ctx context.Context, targets int) error {
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	f.listURL = "http://" + l.Addr().String() + "/targets"
	f.lists = fleet.NewServer(http.HandlerFunc(f.serveList))
	go func() { _ = f.lists.Serve(l) }()
	f.mu.Lock()
	defer f.mu.Unlock()
	for range targets {
		t, err := f.make(ctx)
		if err != nil {
			return err
		}
		f.active = append(f.active, t)
	}
	return f.write()
}

// make starts a new server. Each has an address of its own, so that its port is free again
// after a restart.
func (f *servers) make(ctx context.Context) (*target, error) {
	serial := f.made
	f.made++
	addr := netip.AddrFrom4([4]byte{127, 1 + byte(serial>>14), byte(serial >> 7 & 127), 1 + byte(serial&127)})
	t := &target{
		addr: netip.AddrPortFrom(addr, f.port).String(), ledger: f.ledger, numbers: &f.numbers, mode: healthy,
		template: f.templates[serial%len(f.templates)], lora: serial%5 == 0, life: 1,
		start: time.Now().Add(-time.Hour), model: f.model(), engines: 1,
	}
	if t.template.ManyEngines {
		t.engines = engineCounts[f.random.IntN(len(engineCounts))]
	}
	if err := t.listen(ctx); err != nil {
		return nil, err
	}
	if f.port == 0 {
		bound, err := netip.ParseAddrPort(t.addr)
		if err != nil {
			return nil, err
		}
		f.port = bound.Port()
	}
	return t, nil
}

func (f *servers) model() string {
	return "soak/model-" + strconv.Itoa(f.random.IntN(20))
}

// group is an entry of a list of targets, as Prometheus reads it.
type group struct {
	Targets []string          `json:"targets"`
	Labels  map[string]string `json:"labels"`
}

// list are the active targets of a half: the file has one, the HTTP endpoint the other.
func (f *servers) list(half int) []group {
	g := group{Targets: []string{}, Labels: map[string]string{"soak.list": strconv.Itoa(half)}}
	for _, t := range f.active {
		if bound, err := netip.ParseAddrPort(t.addr); err == nil && int(bound.Addr().As4()[3])%2 == half {
			g.Targets = append(g.Targets, t.addr)
		}
	}
	return []group{g}
}

func (f *servers) serveList(w http.ResponseWriter, _ *http.Request) {
	f.mu.Lock()
	content, err := json.Marshal(f.list(0))
	f.mu.Unlock()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(content)
}

func (f *servers) file() string { return filepath.Join(f.dir, "targets.json") }

// write replaces the file as a whole.
func (f *servers) write() error {
	content, err := json.Marshal(f.list(1))
	if err != nil {
		return err
	}
	if err := os.WriteFile(f.file()+".new", content, 0o600); err != nil {
		return err
	}
	return os.Rename(f.file()+".new", f.file())
}

// churn removes a target and adds another one: one that has been away, or a new one.
func (f *servers) churn(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	i := f.random.IntN(len(f.active))
	gone := f.active[i]
	f.ledger.end(gone.addr, gone.life)
	f.resting = append(f.resting, resting{gone, now})
	f.events["targets removed"]++
	var next *target
	if oldest := f.resting[0]; now.Sub(oldest.since) >= rest && f.random.IntN(2) == 0 {
		next = oldest.t
		f.resting = f.resting[1:]
		next.mu.Lock()
		next.life++
		next.since = 0
		next.mu.Unlock()
		f.events["targets returned"]++
	} else {
		var err error
		if next, err = f.make(ctx); err != nil {
			return err
		}
		f.events["new targets"]++
	}
	f.active[i] = next
	for len(f.resting) > mostResting && now.Sub(f.resting[0].since) >= rest {
		f.resting[0].t.retire()
		f.resting = f.resting[1:]
	}
	return f.write()
}

// clear removes all targets from the lists.
func (f *servers) clear() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, t := range f.active {
		f.resting = append(f.resting, resting{t, time.Now()})
	}
	f.active = nil
	return f.write()
}

// disturb makes a healthy target fail for a time.
func (f *servers) disturb(ctx context.Context, m mode, d time.Duration) {
	t := f.pick()
	if t == nil {
		return
	}
	f.count("a target " + string(m))
	if m == refusing {
		now := time.Now()
		t.become(refusing)
		f.ledger.excuse(window{target: t.addr, from: now.Add(-sendTime), to: now.Add(sendTime), why: "the server was restarted while it answered"})
		t.close()
	} else {
		t.become(m)
	}
	time.AfterFunc(d, func() {
		if m != refusing {
			t.become(healthy)
			return
		}
		t.reset()
		if err := t.listen(ctx); err != nil && ctx.Err() == nil {
			slog.Error("the soak cannot start a server again", "error", err)
		}
	})
}

// change gives a healthy target other engines or another model.
func (f *servers) change(engines bool) {
	t := f.pick()
	if t == nil {
		return
	}
	f.mu.Lock()
	model, count := f.model(), engineCounts[f.random.IntN(len(engineCounts))]
	f.mu.Unlock()
	t.mu.Lock()
	nowEngines, nowModel := t.engines, t.model
	t.mu.Unlock()
	switch {
	case !engines:
		f.count("models changed")
		t.change(nowEngines, model)
	case t.template.ManyEngines:
		f.count("engines changed")
		t.change(count, nowModel)
	}
}

// unsettle notes that the collector is started again.
func (f *servers) unsettle() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, t := range f.active {
		t.unsettle()
	}
}

// pick draws a healthy target.
func (f *servers) pick() *target {
	f.mu.Lock()
	defer f.mu.Unlock()
	for range 20 {
		t := f.active[f.random.IntN(len(f.active))]
		t.mu.Lock()
		ok := t.mode == healthy
		t.mu.Unlock()
		if ok {
			return t
		}
	}
	return nil
}

func (f *servers) count(event string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.events[event]++
}

// close ends all servers.
func (f *servers) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, t := range f.active {
		t.retire()
	}
	for _, r := range f.resting {
		r.t.retire()
	}
	if f.lists != nil {
		_ = f.lists.Close()
	}
}

// state says how many targets there are, and how many do not answer.
func (f *servers) state() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	ill, engines := 0, 0
	for _, t := range f.active {
		t.mu.Lock()
		engines += t.engines
		if t.mode != healthy {
			ill++
		}
		t.mu.Unlock()
	}
	return fmt.Sprintf("%d targets with %d engines, %d of them fail", len(f.active), engines, ill)
}
