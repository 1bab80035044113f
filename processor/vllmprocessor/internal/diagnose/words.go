package diagnose

import (
	"fmt"
	"math"

	"github.com/otelcol-vllm/otelcol-vllm/internal/wording"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/signal"
)

// Words are what an operator reads about a change: Next only steps that name enabled
// metrics. reason replaces the sentence; empty where the change has none of its own.
func (t *Transition) Words(reason string, enabled func(metric string) bool) wording.Words {
	d := t.diagnosis()
	if d.Reason = t.To.Because.Sentence(); d.Reason == "" {
		d.Reason = t.Unreadable()
	}
	if reason != "" {
		d.Reason = reason
	}
	return wording.Of(d, enabled)
}

// Evidence is what a change was judged by, the deciding signals first.
func (t *Transition) Evidence() []string {
	return wording.Evidence(t.diagnosis(), func(name string) (value, usual float64) {
		s, known := signal.Named(name)
		if !known {
			return math.NaN(), math.NaN()
		}
		return t.Signals[s], t.Usual[s]
	})
}

func (t *Transition) diagnosis() *wording.Diagnosis {
	d := &wording.Diagnosis{Condition: t.To.Condition.String(), Size: t.Felt}
	primary := NumCauses
	if t.To.Explained {
		primary = t.To.Primary
		d.Cause, d.Detail = primary.String(), t.Details[primary]
		if primary == SlowSteps {
			d.More = t.GPU
		}
		if primary == SlowSteps && t.Earlier != "" {
			d.More = fmt.Sprintf("It is slower since version %s, by %.0f %% at equal work; before it was version %s.", t.Version, 100*t.Slower, t.Earlier)
		}
	}
	// A smaller share is not reported as a cause either.
	for _, c := range t.Shares.ranked(stillContributes, primary) {
		d.Also = append(d.Also, wording.Share{Cause: c.String(), Share: t.Shares[c]})
	}
	for c, is := range t.To.Notices {
		if is {
			d.Notices = append(d.Notices, Cause(c).String())
		}
	}
	return d
}
