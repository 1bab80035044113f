package emit

import "github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/normalize"

// adopt makes a plan the target's own: series that both plans have keep their
// history, those that only the old one has end. In the steady state the plan is
// the same and this costs nothing.
func (t *Target) adopt(plan *normalize.Plan) {
	if plan == t.plan {
		return
	}
	held := t.vanished
	t.vanished = map[string]state{}
	old := t.byKey()
	t.states = make([]state, 0, plan.Points)
	admitted := 0
	for m := range plan.Metrics {
		for p := range plan.Metrics[m].Points {
			key := plan.Metrics[m].Points[p].Key
			var st state
			if series, ok := old[key]; ok {
				st = series.state
				delete(old, key)
			} else if returned, ok := held[key]; ok {
				st = returned
				st.admitted = false
				delete(held, key)
			}
			if st.admitted {
				admitted++
			}
			t.states = append(t.states, st)
		}
	}
	// Series that were within the limit stay; new ones fill what is left.
	for i := range t.states {
		if t.states[i].admitted {
			continue
		}
		if t.settings.MaxSeries > 0 && admitted >= t.settings.MaxSeries {
			break
		}
		t.states[i].admitted = true
		admitted++
	}
	t.retire(old, held)
	t.plan = plan
}

// byKey has the series of the current plan.
func (t *Target) byKey() map[string]oldSeries {
	series := make(map[string]oldSeries, len(t.states))
	if t.plan == nil {
		return series
	}
	i := 0
	for m := range t.plan.Metrics {
		metric := &t.plan.Metrics[m]
		for p := range metric.Points {
			series[metric.Points[p].Key] = oldSeries{t.states[i], metric, &metric.Points[p]}
			i++
		}
	}
	return series
}

// oldSeries is a series of the plan before.
type oldSeries struct {
	state
	metric *normalize.Metric
	point  *normalize.Point
}

// retire ends the series that left and remembers their numbers for a while.
func (t *Target) retire(old map[string]oldSeries, held map[string]state) {
	for key, series := range old {
		if series.live {
			t.ended = append(t.ended, endedSeries{series.metric, series.point, series.start})
			series.live = false
		}
		if series.seen && t.hasRoom() {
			t.vanished[key] = series.state
		}
	}
	for key, st := range held {
		if t.hasRoom() {
			t.vanished[key] = st
		}
	}
}

// hasRoom tells whether the memory of vanished series can take one more. A
// series that finds none is new when it comes back.
func (t *Target) hasRoom() bool {
	return t.settings.MaxSeries <= 0 || len(t.vanished) < t.settings.MaxSeries
}
