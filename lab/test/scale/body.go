package scale

import (
	"math"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/lab/test/fleet"
)

const (
	// tick is the time between two changes of an engine's counters.
	tick = 100 * time.Millisecond
	// pairTicks is the time between the two recorded bodies as it is played: with 150 ticks an
	// engine serves about 8 requests per second.
	pairTicks = 150
	// answerFamily has the number of the answer. The receiver keeps families that it does not
	// know.
	answerFamily, answerMetric = "vllm:scale_answer", "vllm.scale_answer"
	// The families whose values are compared with the truth, point by point.
	promptFamily, promptMetric         = "vllm:prompt_tokens_total", "vllm.prompt_tokens"
	generationFamily, generationMetric = "vllm:generation_tokens_total", "vllm.generation_tokens"
	firstFamily, firstMetric           = "vllm:time_to_first_token_seconds", "vllm.time_to_first_token"
)

// kind is what an engine does.
type kind uint8

const (
	// sound engines serve their requests.
	sound kind = iota
	// late engines give half of the first tokens after more than the objective allows.
	late
	// stalled engines serve until stallAt, and then have requests without any progress.
	stalled
)

// lateBound is the bucket in which the late first tokens of a late engine are, in seconds.
const lateBound = 5

// template is the body of an engine.
type template struct {
	sound, late *fleet.Template
	// epoch is the start of all engines, from which ticks count.
	epoch time.Time
	// stallAt is the tick at which stalled engines stop.
	stallAt atomic.Int64
}

// loadTemplate reads the two bodies of a server in a folder of testdata.
func loadTemplate(folder string, epoch time.Time) (*template, error) {
	body, err := fleet.Load(folder)
	if err != nil {
		return nil, err
	}
	t := &template{sound: body, late: body.Late(firstFamily, lateBound), epoch: epoch}
	t.stallAt.Store(math.MaxInt64)
	return t, nil
}

// ticksAt is how many ticks an engine has behind it.
func (t *template) ticksAt(now time.Time) int64 { return int64(now.Sub(t.epoch) / tick) }

// at is the body of a kind, and what it shows at a tick.
func (t *template) at(k kind, n int64) (*fleet.Template, fleet.State) {
	of := t.sound
	switch k {
	case late:
		of = t.late
	case stalled:
		n = min(n, t.stallAt.Load())
	}
	return of, fleet.State{Steps: float64(n) / pairTicks, Odd: n%2 == 1, Start: float64(t.epoch.Unix())}
}

// render appends the body of an engine at a tick.
func (t *template) render(to []byte, model string, k kind, n, answer int64) []byte {
	to = append(to, "# TYPE "+answerFamily+" gauge\n"+answerFamily+" "...)
	to = append(strconv.AppendInt(to, answer, 10), '\n')
	of, s := t.at(k, n)
	s.Model = model
	return of.Append(to, s)
}

// truth is what some counters of an engine are at a tick.
type truth struct{ prompt, generation, first float64 }

// truth returns the values of the compared counters.
func (t *template) truth(k kind, n int64) truth {
	of, s := t.at(k, n)
	return truth{of.Value(promptFamily, s.Steps), of.Value(generationFamily, s.Steps), of.Value(firstFamily+"_count", s.Steps)}
}
