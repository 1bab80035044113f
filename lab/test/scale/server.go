package scale

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/lab/test/fleet"
)

// lifeHeader has the number of the process that scrapes.
const lifeHeader = "X-Life"

// mostLives bounds the numbers of processes of collectors.
const mostLives = 256

// servers are all engines, each on a loopback address of its own.
type servers struct {
	*fleet.Hosts
	template *template
	engines  []engine
	byIP     map[string]int
	// answers counts by the process that asked; 0 is none that is known.
	answers [mostLives]atomic.Int64
}

func startServers(ctx context.Context, t *template, engines []engine) (s *servers, err error) {
	s = &servers{template: t, engines: engines, byIP: map[string]int{}}
	for i := range engines {
		s.byIP[engines[i].ip] = i
	}
	s.Hosts, err = fleet.NewHosts(ctx, func(ip string) http.Handler {
		i, known := s.byIP[ip]
		if !known {
			return nil
		}
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.answer(&s.engines[i], w, r) })
	})
	return s, err
}

var bodies = sync.Pool{New: func() any { b := make([]byte, 0, 128<<10); return &b }}

// answerOf is the number of an answer: when it was given, and to which process.
func answerOf(n int64, life int) int64 { return n*mostLives + int64(life) }

// splitAnswer is its reverse.
func splitAnswer(answer int64) (n int64, life int) {
	return answer / mostLives, int(answer % mostLives)
}

// answer answers a scrape of an engine.
func (s *servers) answer(e *engine, w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/version" {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"version":"0.20.0"}`)
		return
	}
	if r.URL.Path != "/metrics" {
		http.NotFound(w, r)
		return
	}
	life, err := strconv.Atoi(strings.TrimPrefix(r.Header.Get(lifeHeader), lifePrefix))
	if err != nil || life <= 0 || life >= mostLives {
		life = 0
	}
	n := s.template.ticksAt(time.Now())
	b, _ := bodies.Get().(*[]byte)
	*b = s.template.render((*b)[:0], e.model, e.kind, n, answerOf(n, life))
	w.Header().Set("Content-Type", s.template.sound.ContentType)
	w.Header().Set("Content-Length", strconv.Itoa(len(*b)))
	if _, err := w.Write(*b); err == nil && http.NewResponseController(w).Flush() == nil {
		s.answers[life].Add(1)
	}
	bodies.Put(b)
}

// answered is how many answers each process of a collector has got.
func (s *servers) answered() map[int]int64 {
	out := map[int]int64{}
	for life := range s.answers {
		if n := s.answers[life].Load(); n > 0 {
			out[life] = n
		}
	}
	return out
}
