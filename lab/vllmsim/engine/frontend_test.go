package engine

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The delay is seen by the client and by the time to the first token, whatever the version,
// and not by the queue, which begins when the engine has the request.
func TestTheDelayOfTheFrontEndIsInTheFirstTokenAndNotInTheQueue(t *testing.T) {
	for _, after := range []bool{false, true} {
		run := func(delay float64) (client, first, queue, whole float64) {
			s := start(t, bare(fixed(0, 1, 1), func(c *Config) {
				c.FrontEnd = FrontEnd{DelaySeconds: delay, RequestSeconds: 0.004}
				c.Semantics.ArrivalAfterTokenizing = after
			}))
			send(s, 100, 10)
			s.AdvanceTo(10)
			require.Len(t, s.outcomes, 1)
			st := s.stats[0]
			return s.outcomes[0].FirstToken, st.FirstToken.Sum, st.Queue.Sum, st.EndToEnd.Sum
		}
		client, first, queue, whole := run(0)
		slowClient, slowFirst, slowQueue, slowWhole := run(0.03)
		assert.InDelta(t, 0.03, slowClient-client, 1e-9)
		assert.InDelta(t, 0.03, slowFirst-first, 1e-9, "time to first token, stamped after tokenizing: %v", after)
		assert.InDelta(t, 0.03, slowWhole-whole, 1e-9)
		assert.InDelta(t, 0, slowQueue-queue, 1e-9)
	}
}

// 1000 requests that arrive together and cost 4 ms each are with the engine after 4 s and
// the delay. If the delay took capacity they would need 24 s more.
func TestTheDelayTakesNoCapacityAndTheCostsDo(t *testing.T) {
	last := func(front FrontEnd, factor float64) float64 {
		s := start(t, bare(fixed(0, 1, 1), func(c *Config) {
			c.FrontEnd = front
			c.Changes = []Change{{Parameter: ParamFrontEnd, Value: factor}}
		}))
		s.AdvanceTo(0)
		end := 0.0
		for range 1000 {
			end = max(end, send(s, 100, 1).queued)
		}
		return end
	}
	assert.InDelta(t, 4.024, last(FrontEnd{DelaySeconds: 0.024, RequestSeconds: 0.004}, 1), 1e-9)
	// A starved front end is slower at its work; the hand-over is as long as before.
	assert.InDelta(t, 40.024, last(FrontEnd{DelaySeconds: 0.024, RequestSeconds: 0.004}, 10), 1e-9)
	assert.InDelta(t, 1.024, last(FrontEnd{DelaySeconds: 0.024, RequestSeconds: 0.004, Processes: 4}, 1), 1e-9)
}

func TestAFrontEndWithAnImpossibleTimeIsRefused(t *testing.T) {
	_, err := New(Config{Model: Llama8B(), Workload: fixed(1, 1, 1), FrontEnd: FrontEnd{DelaySeconds: -1}})
	require.ErrorContains(t, err, "front end: a time of -1 s is below 0 or infinite")
}

// The published benchmarks that the default values come from: a lone request to a small
// model waits 27 to 39 ms for its first token, most of it outside the GPU, and one front end
// completes some 95 requests per second of 1000 tokens and answers of 128.
func TestTheDefaultFrontEndIsAsSlowAsPublished(t *testing.T) {
	tiny := roofline()
	tiny.WeightBytes, tiny.FlopsPerToken, tiny.Layers, tiny.KVBytes = 1.2e9, 1.2e9, 28, 28*1024
	tiny.Width = 1024
	cfg := bare(fixed(0, 1, 1), func(c *Config) { c.Model, c.FrontEnd = tiny, DefaultFrontEnd() })
	s := start(t, cfg)
	send(s, 1000, 128)
	s.AdvanceTo(10)
	require.Len(t, s.outcomes, 1)
	assert.InDelta(t, 0.033, s.outcomes[0].FirstToken, 0.01)

	s = start(t, cfg)
	for range 2000 {
		send(s, 1000, 128)
	}
	s.AdvanceTo(100)
	require.Len(t, s.outcomes, 2000)
	end := 0.0
	for _, o := range s.outcomes {
		end = max(end, o.Ended)
	}
	assert.InEpsilon(t, 95, 2000/end, 0.25)
}
