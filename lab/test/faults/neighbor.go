package faults

import (
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// servedFamily counts the scrapes of a server. The receiver keeps families that it does not
// know, under servedMetric.
const (
	servedFamily = "faults_scrapes"
	servedMetric = "vllm.faults_scrapes"
)

// neighbor is a server that works: its counter is the number of its scrapes.
type neighbor struct {
	addr    string
	started int64

	reads atomic.Int64
	mu    sync.Mutex
	times []time.Time
}

func startNeighbor(w *World) (*neighbor, error) {
	n := &neighbor{started: time.Now().Add(-time.Hour).Unix()}
	addr, err := w.HTTP(n.serve)
	n.addr = addr
	return n, err
}

func (n *neighbor) serve(rw http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/metrics" {
		http.NotFound(rw, r)
		return
	}
	n.mu.Lock()
	n.times = append(n.times, time.Now())
	n.mu.Unlock()
	rw.Header().Set("Content-Type", text)
	_, _ = rw.Write([]byte(body(n.started, n.reads.Add(1))))
}

// skipped is how many scrapes the collector left out: the intervals without one.
func (n *neighbor) skipped(interval time.Duration) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	skipped := 0
	for i := 1; i < len(n.times); i++ {
		gap := n.times[i].Sub(n.times[i-1])
		skipped += int((gap+interval/2)/interval) - 1
	}
	return max(0, skipped)
}
