package backtest

import (
	"slices"
	"time"

	"github.com/prometheus/prometheus/model/labels"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/backtest/promapi"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/rulestore"
)

// alertLog turns samples of ALERTS into times of firing.
type alertLog struct {
	open map[uint64]*openAlert
	done []rulestore.Firing
	// dropped counts those above the limit.
	dropped int
}

type openAlert struct {
	firing rulestore.Firing
	last   int64
	step   int64
}

// maxFirings is how many firings are kept, and how many series of alerts at a time.
const maxFirings = 10_000

// longestEvaluation is the longest time between two evaluations of one rule.
const longestEvaluation = 5 * time.Minute

// see takes the samples of one window. Prometheus writes one at each evaluation while the
// alert fires.
func (a *alertLog) see(series []promapi.Series) {
	if a.open == nil {
		a.open = map[uint64]*openAlert{}
	}
	for i := range series {
		s := &series[i]
		key := s.Labels.Hash()
		for _, t := range s.Times {
			now := a.open[key]
			if now != nil && t-now.last > now.allowed() {
				a.close(key, now)
				now = nil
			}
			if now == nil {
				if len(a.open) >= maxFirings {
					a.dropped++
					continue
				}
				at := time.UnixMilli(t).UTC()
				l := labels.NewBuilder(s.Labels).Del("__name__", "alertstate", "alertname").Labels()
				a.open[key] = &openAlert{firing: rulestore.Firing{Alert: s.Labels.Get("alertname"), Labels: l, From: at}, last: t}
				continue
			}
			if step := t - now.last; now.step == 0 || step < now.step {
				now.step = step
			}
			now.last = t
		}
	}
}

// allowed is the time without a sample up to which the alert goes on: one evaluation may be
// missed.
func (o *openAlert) allowed() int64 {
	if o.step == 0 {
		return longestEvaluation.Milliseconds()
	}
	return min(2*o.step+o.step/2, longestEvaluation.Milliseconds())
}

func (a *alertLog) close(key uint64, one *openAlert) {
	one.firing.To = time.UnixMilli(one.last + one.step).UTC()
	delete(a.open, key)
	if len(a.done) >= maxFirings {
		a.dropped++
		return
	}
	a.done = append(a.done, one.firing)
}

// finish ends all alerts and returns them in the order of their starts.
func (a *alertLog) finish() []rulestore.Firing {
	for key, one := range a.open {
		a.close(key, one)
	}
	slices.SortFunc(a.done, rulestore.CompareFirings)
	return a.done
}
