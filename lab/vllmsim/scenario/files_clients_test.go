package scenario

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
)

// expectationsOfClients are those of files about how clients behave, and about changes that
// take their time.
var expectationsOfClients = map[string]func(s *story){
	"drift": func(s *story) {
		t := s.t
		one := s.lone(8192, 60)
		assert.InEpsilon(t, promptStep(8192, 1), one.mean(part{600, 1200}, prefill), 0.005)
		assert.InEpsilon(t, promptStep(8192, 0.5), one.mean(part{4200, 5400}, prefill), 0.05, "half of a geometric ramp")
		assert.InEpsilon(t, promptStep(8192, 0.25), one.mean(part{8400, 10800}, prefill), 0.005)
		last := one.mean(part{600, 1200}, prefill)
		for from := 1200; from < 8400; from += 600 {
			now := one.mean(part{from, from + 600}, prefill)
			assert.Greater(t, now, last, "at %d s", from)
			assert.Less(t, now, 1.2*last, "no step at %d s", from)
			last = now
		}
		late := part{8400, 10800}
		assert.Greater(t, s.mean(late, firstToken), s.undisturbed().mean(late, firstToken)+0.1, "clients notice it in the end")
	},
	"lockstep": func(s *story) {
		t := s.t
		usual := s.undisturbed()
		for i := range 4 {
			engine := `engine="` + string(rune('0'+i)) + `"`
			assert.Greater(t, s.mean(during, gap, engine), 1.5*usual.mean(during, gap, engine), engine)
			assert.InEpsilon(t, s.mean(during, gap), s.mean(during, gap, engine), 0.1, "as slow as the others")
		}
	},
	"mild": func(s *story) {
		t := s.t
		assert.Empty(t, s.scenario.Config.Changes, "a server cannot seek")
		require.Len(t, s.scenario.Injections, 1)
		assert.InDelta(t, 1.5, s.scenario.Injections[0].Effect, 0)
		keepsUp(t, s.run, part{60, 2700})
	},
	"closed-loop": func(s *story) {
		t := s.t
		usual := s.undisturbed()
		assert.Greater(t, s.mean(during, gap), 2.2*usual.mean(during, gap))
		assert.Less(t, s.increase(during, finished), 0.8*usual.increase(during, finished), "they send less")
		_, most := s.gauge(during, running)
		assert.LessOrEqual(t, most, 60.0)
		assert.Less(t, s.mean(during, queue), 0.05, "no queue")
		waits, _ := s.gauge(during, waiting)
		assert.Less(t, waits, 1.0)
		// Other requests come than without the change, but of the same kind.
		end := part{1320, 1800}
		keepsUp(t, s.run, end)
		assert.InEpsilon(t, usual.mean(end, gap), s.mean(end, gap), 0.1)
		assert.InEpsilon(t, usual.increase(end, finished), s.increase(end, finished), 0.1)
	},
	"retry-storm": func(s *story) {
		t := s.t
		sent := func(p part) (n float64) {
			for _, o := range s.outcomes {
				if o.Arrived >= float64(p.from) && o.Arrived < float64(p.to) {
					n++
				}
			}
			return n / float64(p.to-p.from)
		}
		answered := func(p part) float64 {
			return (s.increase(p, finished, `finished_reason="stop"`) + s.increase(p, finished, `finished_reason="length"`)) / float64(p.to-p.from)
		}
		storm, end := part{1200, 1600}, part{2040, 2400}
		assert.InEpsilon(t, 14, sent(before), 0.1)
		assert.InEpsilon(t, 14, answered(before), 0.1)
		assert.Greater(t, sent(storm), 2.0*14, "although the GPU has recovered")
		assert.LessOrEqual(t, sent(storm), 4.2*14, "a request and three retries")
		assert.Less(t, answered(storm), 0.2*14)
		assert.InEpsilon(t, 14, sent(end), 0.1, "the storm is over")
		assert.InEpsilon(t, 14, answered(end), 0.1)
		assert.Less(t, s.mean(end, queue), 0.05)
		quick := s.scenario
		quick.Config.Changes = append([]engine.Change(nil), engine.Change{At: 840, Parameter: engine.ParamClock, Value: 1})
		assert.InEpsilon(t, 14, sentAndAnswered(t, quick), 0.1, "without the loss of capacity there is no storm")
	},
	"clients-cancel": func(s *story) {
		t := s.t
		left, all := 0.0, 0.0
		for _, o := range s.outcomes {
			if o.Ended > float64(during.from) && o.Ended <= float64(during.to) && o.End != engine.EndRefused {
				all++
				if o.End == engine.EndLeft {
					left++
				}
			}
		}
		assert.InDelta(t, 0.38, left/all, 0.03, "3 % leave at all times")
		assert.InDelta(t, left, s.increase(during, "http_requests_total", `status="2xx"`)-s.increase(during, finished), 1, "answered, and never finished")
		assert.Less(t, s.mean(during, firstToken), 1.1*s.undisturbed().mean(during, firstToken), "the others are served as usual")
	},
	"real-traffic": func(s *story) {
		t := s.t
		p := part{60, 3600}
		assert.InEpsilon(t, 4, s.increase(p, firstToken+"_count")/3540, 0.3, "the rate is a mean")
		assert.Greater(t, dispersion(s.run), 1.3, "of a Poisson process it is 1")
		assert.Zero(t, s.increase(p, preemptions))
		assert.Less(t, s.mean(p, queue), 0.2)
		assert.InEpsilon(t, s.increase(p, firstToken+"_count"), s.increase(p, whole+"_count"), 0.03, "it keeps up")
	},
}

// sentAndAnswered is the rate of answers of a scenario in the time of the storm.
func sentAndAnswered(t *testing.T, s Scenario) float64 {
	t.Helper()
	r := carryOut(t, s)
	return r.increase(part{1200, 1600}, finished) / 400
}
