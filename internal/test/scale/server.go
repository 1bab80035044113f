package scale

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// lifeHeader has the number of the process that scrapes.
const lifeHeader = "X-Life"

// mostLives bounds the numbers of processes of collectors.
const mostLives = 256

// ServerOptions are what a process of servers is asked for.
type ServerOptions struct {
	Testdata string
	// First and Count are the engines of this process, of a fleet of Engines.
	First, Count, Engines, Port int
	// Epoch is the start of the engines in unix milliseconds.
	Epoch int64
	// Control is where the process says what it has answered.
	Control string
}

// servers are many engines on loopback addresses in one process.
type servers struct {
	template *template
	engines  []engine
	byIP     map[string]int
	// answers counts by the process that asked, alone those of no known process.
	answers [mostLives]atomic.Int64
	alone   atomic.Int64
}

// Serve runs a process of servers until the input ends.
func Serve(ctx context.Context, o ServerOptions, until io.Reader) error {
	t, err := loadTemplate(o.Testdata, time.UnixMilli(o.Epoch))
	if err != nil {
		return err
	}
	s := &servers{template: t, engines: newLayout(o.Engines), byIP: map[string]int{}}
	server := &http.Server{
		Handler: s, ReadHeaderTimeout: time.Minute, IdleTimeout: 5 * time.Minute,
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
	}
	defer server.Close()
	var config net.ListenConfig
	for i := o.First; i < o.First+o.Count; i++ {
		s.byIP[s.engines[i].ip] = i
	}
	for i := o.First; i < o.First+o.Count; i++ {
		l, err := config.Listen(ctx, "tcp4", net.JoinHostPort(s.engines[i].ip, strconv.Itoa(o.Port)))
		if err != nil {
			return fmt.Errorf("an engine cannot listen: %w", err)
		}
		go func() { _ = server.Serve(l) }()
	}
	l, err := config.Listen(ctx, "tcp4", o.Control)
	if err != nil {
		return err
	}
	control := &http.Server{Handler: http.HandlerFunc(s.control), ReadHeaderTimeout: time.Minute}
	defer control.Close()
	go func() { _ = control.Serve(l) }()
	_, err = io.Copy(io.Discard, until)
	return err
}

var bodies = sync.Pool{New: func() any { b := make([]byte, 0, 128<<10); return &b }}

// answerOf is the number of an answer: when it was given, and to which process.
func answerOf(n int64, life int) int64 { return n*mostLives + int64(life) }

// splitAnswer is its reverse.
func splitAnswer(answer int64) (n int64, life int) {
	return answer / mostLives, int(answer % mostLives)
}

// ServeHTTP answers a scrape of the engine at the address that was connected to.
func (s *servers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/version" {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"version":"0.20.0"}`)
		return
	}
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	host, _, _ := net.SplitHostPort(local.String())
	i, known := s.byIP[host]
	if r.URL.Path != "/metrics" || !known {
		http.NotFound(w, r)
		return
	}
	life, err := strconv.Atoi(strings.TrimPrefix(r.Header.Get(lifeHeader), lifePrefix))
	if err != nil || life <= 0 || life >= mostLives {
		life = 0
	}
	e := &s.engines[i]
	n := s.template.ticksAt(time.Now())
	b, _ := bodies.Get().(*[]byte)
	*b = s.template.render((*b)[:0], e.model, e.kind, n, answerOf(n, life))
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(len(*b)))
	if _, err := w.Write(*b); err == nil && http.NewResponseController(w).Flush() == nil {
		if life == 0 {
			s.alone.Add(1)
		} else {
			s.answers[life].Add(1)
		}
	}
	bodies.Put(b)
}

// control sets the tick of the stall where one is given, and reports the answers by process.
func (s *servers) control(w http.ResponseWriter, r *http.Request) {
	if at, err := strconv.ParseInt(r.URL.Query().Get("stall"), 10, 64); err == nil {
		s.template.stallAt.Store(at)
	}
	out := map[string]int64{"0": s.alone.Load()}
	for life := range s.answers {
		if n := s.answers[life].Load(); n > 0 {
			out[strconv.Itoa(life)] = n
		}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(out)
}

// answered asks a process of servers what it has answered.
func answered(ctx context.Context, control, query string) (map[int]int64, error) {
	content, err := get(ctx, "http://"+control+"/?"+query)
	if err != nil {
		return nil, err
	}
	byName := map[string]int64{}
	if err := json.Unmarshal(content, &byName); err != nil {
		return nil, err
	}
	out := map[int]int64{}
	for name, n := range byName {
		life, err := strconv.Atoi(name)
		if err != nil {
			return nil, err
		}
		out[life] = n
	}
	return out, nil
}

// get reads a page.
func get(ctx context.Context, url string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, errors.New(url + " answers " + response.Status)
	}
	return io.ReadAll(response.Body)
}
