package soak

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/lab/test/fleet"
)

// mode is how a target answers.
type mode string

const (
	healthy   mode = "healthy"
	hanging   mode = "hangs"
	failing   mode = "answers 500"
	garbage   mode = "sends garbage"
	resetting mode = "resets the connection"
	cutting   mode = "ends in the middle of the body"
	// refusing is the time of a restart, in which nothing listens.
	refusing mode = "is restarted"
)

// settledAfter is how many answers follow a change before the points of an answer are compared
// with those of others: the receiver needs a scrape to know what a series was before.
const settledAfter = 2

// target is one server.
type target struct {
	addr     string
	ledger   *ledger
	numbers  *atomic.Uint64
	template *template
	lora     bool

	mu       sync.Mutex
	server   *http.Server
	listener net.Listener
	mode     mode
	engines  int
	model    string
	// count is how many answers the process has given, since how many followed the last change.
	count, since uint64
	start        time.Time
	life         int
	// retired servers do not start again.
	retired bool
}

// listen starts the server at its address.
func (t *target) listen(ctx context.Context) error {
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", t.addr)
	if err != nil {
		return fmt.Errorf("a server of the soak cannot listen: %w", err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.retired {
		return l.Close()
	}
	if t.server == nil {
		t.addr = l.Addr().String() // The first time the system may have picked the port.
	}
	t.server = fleet.NewServer(t)
	t.listener = l
	go func(s *http.Server) { _ = s.Serve(l) }(t.server)
	return nil
}

// close ends the server and its connections.
func (t *target) close() {
	t.mu.Lock()
	server, listener := t.server, t.listener
	t.mu.Unlock()
	if server != nil {
		// The server closes only a listener that it serves already.
		_ = listener.Close()
		_ = server.Close()
	}
}

// retire ends the server for good.
func (t *target) retire() {
	t.mu.Lock()
	t.retired = true
	t.mu.Unlock()
	t.close()
}

// become changes how the target answers.
func (t *target) become(m mode) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.mode, t.since = m, 0
}

// unsettle notes that the next answers follow a change.
func (t *target) unsettle() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.since = 0
}

// reset makes the target a new process, whose counters begin again.
func (t *target) reset() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.mode, t.count, t.since, t.start = healthy, 0, 0, time.Now()
}

// change gives the server another number of engines, or another model.
func (t *target) change(engines int, model string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.engines, t.model, t.since = engines, model, 0
}

var buffers = sync.Pool{New: func() any { return new([]byte) }}

func (t *target) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/version":
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"version":%q}`, t.template.version)
		return
	case "/metrics":
	default:
		http.NotFound(w, r)
		return
	}
	t.mu.Lock()
	how := t.mode
	a := answer{
		id: t.numbers.Add(1), target: t.addr, life: t.life, engines: t.engines,
		tokens: t.template.Value(tokensFamily, float64(t.count)), settled: t.since >= settledAfter,
		shape: t.template.Name + ", " + strconv.Itoa(t.engines) + " engines, LoRA " + strconv.FormatBool(t.lora),
	}
	s := state{
		State: fleet.State{
			Engines: t.engines, Model: t.model, Steps: float64(t.count), Odd: t.count%2 == 1, Start: float64(t.start.UnixMilli()) / 1000,
		},
		id: a.id, now: float64(time.Now().UnixMilli()) / 1000,
	}
	if t.lora {
		// Other names in each answer.
		for i := range 3 {
			s.adapters = append(s.adapters, "adapter-"+strconv.FormatUint(a.id, 10)+"-"+strconv.Itoa(i))
		}
	}
	if how == healthy {
		t.count++
		t.since++
	}
	t.mu.Unlock()

	switch how {
	case hanging:
		<-r.Context().Done()
		return
	case failing:
		http.Error(w, "Internal Server Error", http.StatusInternalServerError)
		return
	case garbage:
		w.Header().Set("Content-Type", t.template.ContentType)
		for i := range 2000 {
			fmt.Fprintf(w, "}%c{ %d \x00\xff=\n", 'a'+i%26, i)
		}
		return
	case resetting, refusing:
		fleet.Abort(w)
		return
	}
	b, _ := buffers.Get().(*[]byte)
	defer buffers.Put(b)
	*b = t.template.render((*b)[:0], s)
	w.Header().Set("Content-Type", t.template.ContentType)
	w.Header().Set("Content-Length", strconv.Itoa(len(*b)))
	if how == cutting {
		_, _ = w.Write((*b)[:len(*b)/2])
		panic(http.ErrAbortHandler)
	}
	if _, err := w.Write(*b); err != nil || http.NewResponseController(w).Flush() != nil || r.Context().Err() != nil {
		return
	}
	a.at = time.Now()
	t.ledger.serve(a)
}
