package gpu

import (
	"slices"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
)

// Exporter is one exporter with the GPUs of its node. It is not safe for concurrent use.
type Exporter struct {
	cfg   Config
	host  string
	cards []Card
	// samples are those of the sliding window, the newest one last.
	samples []sample
	// next is when the next sample is due, in seconds.
	next float64
}

// sample is the state of all cards at one time.
type sample struct {
	at    float64
	cards []engine.DeviceState
}

// windowSeconds is the length of the sliding windows.
const windowSeconds = 300

// New returns an exporter of a node. The configuration has been through WithDefaults.
func New(cfg Config, host string, cards []Card) *Exporter {
	return &Exporter{cfg: cfg, host: host, cards: cards}
}

// Due is when the next sample is to be taken, in seconds. AMD's exporter takes one with each
// scrape.
func (e *Exporter) Due() float64 { return e.next }

// OnScrape reports whether a sample is taken with each scrape.
func (e *Exporter) OnScrape() bool { return e.cfg.Kind == AMD }

// Away reports whether the exporter does not answer.
func (e *Exporter) Away(at float64) bool {
	return slices.ContainsFunc(e.cfg.Away, func(s Span) bool { return s.Has(at) })
}

// Take takes a sample of all cards, in their order.
func (e *Exporter) Take(at float64, states []engine.DeviceState) {
	e.next = at + e.cfg.Interval.Seconds()
	if e.Away(at) {
		e.samples = nil
		for _, s := range e.cfg.Away {
			if s.Has(at) {
				e.next = s.Until // It begins with a sample.
			}
		}
		return
	}
	e.samples = append(e.samples, sample{at, states})
	first := 0
	for first < len(e.samples)-2 && e.samples[first].at <= at-windowSeconds {
		first++
	}
	e.samples = slices.Delete(e.samples, 0, first)
}

// ContentType is the header that goes with a body.
func (e *Exporter) ContentType() string { return "text/plain; version=0.0.4; charset=utf-8" }

// Body is what the exporter answers.
func (e *Exporter) Body() []byte {
	if len(e.samples) == 0 {
		return nil
	}
	if e.cfg.Kind == AMD {
		return e.amd()
	}
	return e.dcgm()
}

// latest is the newest sample of a card, and share the mean of a number of seconds over the time
// since the sample before, 0 where there is none.
func (e *Exporter) latest(card int) engine.DeviceState {
	return e.samples[len(e.samples)-1].cards[card]
}

func (e *Exporter) share(card int, seconds func(*engine.DeviceState) float64) float64 {
	n := len(e.samples)
	if n < 2 {
		return 0
	}
	a, b := &e.samples[n-2], &e.samples[n-1]
	if b.at <= a.at {
		return 0
	}
	return min(1, max(0, (seconds(&b.cards[card])-seconds(&a.cards[card]))/(b.at-a.at)))
}

func busy(s *engine.DeviceState) float64    { return s.Busy }
func tensor(s *engine.DeviceState) float64  { return s.Tensor }
func reading(s *engine.DeviceState) float64 { return s.Reading }

// windowed are the samples of the sliding window.
func (e *Exporter) windowed() []sample {
	last := e.samples[len(e.samples)-1].at
	first := 0
	for e.samples[first].at <= last-windowSeconds {
		first++
	}
	return e.samples[first:]
}
