package scrape

import (
	"context"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/emit"
)

// A server that counts its requests is asked for them with each scrape. Others answer 0 or nothing, and are
// asked rarely.
const (
	askAgain      = time.Minute
	askAgainLater = 10 * time.Minute
)

// loadCheck is what is known of the answers of /load.
type loadCheck struct {
	// counts is true once the server has shown that it counts its requests.
	counts bool
	// next is when it is asked again until then.
	next time.Time
	// load is the answer at a time.
	load float64
	at   time.Time
}

// loaded is an answer: how many requests the server works on, and whether it was asked and answered.
type loaded struct {
	requests        float64
	asked, answered bool
}

// askLoad asks /load at the same time as the metrics.
func (s *Target) askLoad(ctx context.Context, at time.Time) <-chan loaded {
	out := make(chan loaded, 1)
	if s.shared.emission.Own[emit.MetricLoad] == nil || s.recorder != nil || s.shared.Config.Source.IsExporter() || !s.load.counts && at.Before(s.load.next) {
		out <- loaded{}
		return out
	}
	go func() {
		requests, err := s.origin.Load(ctx)
		out <- loaded{requests, true, err == nil}
	}()
	return out
}

// take takes the answer of a scrape.
func (l *loadCheck) take(at time.Time, answer loaded) {
	switch {
	case !answer.asked:
	case !answer.answered:
		l.next = at.Add(askAgainLater)
	case answer.requests > 0 || l.counts:
		l.counts, l.load, l.at = true, answer.requests, at
	default:
		l.next = at.Add(askAgain)
	}
}

// value is what was answered at a time; nil where that is not known.
func (l *loadCheck) value(at time.Time) *float64 {
	if !l.counts || !l.at.Equal(at) {
		return nil
	}
	load := l.load
	return &load
}
