package objective

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
)

// TestDefects has the decisions about objectives in internal/catalog/decisions.yaml: ten
// observations, eight of them within the threshold. Those that a defect makes wrong could be
// on either side.
func TestDefects(t *testing.T) {
	v0 := input.Evidence{Signs: input.V0}
	version := func(v string) input.Evidence { return input.Evidence{Version: v} }
	for _, c := range []struct {
		name    string
		in      input.Metric
		server  input.Evidence
		counts  [4]float64
		unknown bool
	}{
		{"latencies-near-zero", input.TimeToFirstToken, version("0.5.3"), [4]float64{8, 0, 2}, true},
		{"latencies-near-zero", input.TimeToFirstToken, v0, [4]float64{10}, true},
		{"latencies-near-zero", input.TimeToFirstToken, v0, [4]float64{4, 4, 2}, false},
		{"latencies-near-zero", input.TimeToFirstToken, version("0.5.4"), [4]float64{8, 0, 2}, false},
		{"multi-step-miscounts", input.InterTokenLatency, version("0.6.3"), [4]float64{8, 0, 2}, true},
		{"multi-step-miscounts", input.InterTokenLatency, version("0.6.4"), [4]float64{8, 0, 2}, false},
		{"prefill-decode-swapped", input.PrefillTime, version("0.6.4"), [4]float64{8, 0, 2}, true},
		{"prefill-decode-swapped", input.DecodeTime, v0, [4]float64{8, 0, 2}, true},
		{"prefill-decode-swapped", input.PrefillTime, version("0.6.5"), [4]float64{8, 0, 2}, false},
		// All that these servers observe is compared as they measured it.
		{"as-measured", input.TimeToFirstToken, version("0.10.0"), [4]float64{8, 0, 2}, false},
		{"as-measured", input.TimeToFirstToken, input.Evidence{}, [4]float64{8, 0, 2}, false},
		{"as-measured", input.E2ERequestLatency, version("0.16.0"), [4]float64{8, 0, 2}, false},
		{"as-measured", input.InterTokenLatency, version("0.20.0"), [4]float64{8, 0, 2}, false},
		{"as-measured", input.DecodeTime, version("0.20.0"), [4]float64{8, 0, 2}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newService(t, Objective{Name: "o", Metric: c.in.String(), Threshold: Duration(2 * time.Second), Target: 0.9})
			s.evidence = c.server
			s.observe(0, latencies("0", 0, 0, 0, 0).as(c.in))
			s.observe(60, latencies("0", c.counts[:]...).as(c.in))
			got := s.values()
			assert.Equal(t, 10.0, got["valid o"])
			if c.unknown {
				assert.Equal(t, 0.0, got["good o"])
				assert.Equal(t, 10.0, got["undecided o"])
				assert.Equal(t, 0.0, got["attainment o lower"])
				assert.Equal(t, 1.0, got["attainment o upper"])
				return
			}
			assert.Equal(t, 8.0, got["good o"])
			assert.Equal(t, 0.0, got["undecided o"])
			assert.InDelta(t, 0.8, got["attainment o upper"], 1e-12)
		})
	}
}

// A V0 engine with several steps per scheduling observes one time for the tokens of all of
// them: the tokens show it, and no version does.
func TestGapsOfSeveralStepsAreUndecided(t *testing.T) {
	for name, c := range map[string]struct {
		server    input.Evidence
		generated float64
		undecided float64
	}{
		"ten times for 40 tokens":          {input.Evidence{Version: "0.8.5", Signs: input.V0}, 44, 10},
		"an unknown version of this kind":  {input.Evidence{Signs: input.V0}, 44, 10},
		"ten times for ten tokens":         {input.Evidence{Version: "0.8.5", Signs: input.V0}, 14, 0},
		"another engine, with speculation": {input.Evidence{Version: "0.8.5"}, 44, 0},
		"a version without several steps":  {input.Evidence{Version: "0.10.2", Signs: input.V0}, 44, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newService(t, Objective{Name: "o", Metric: input.InterTokenLatency.String(), Threshold: Duration(2 * time.Second), Target: 0.9})
			s.evidence = c.server
			s.observe(0, latencies("0", 0, 0, 0, 0), latencies("0", 0, 0, 0, 0).as(input.InterTokenLatency), generated(0))
			s.observe(60, latencies("0", 4, 0, 0, 0), latencies("0", 4, 4, 2, 0).as(input.InterTokenLatency), generated(c.generated))
			got := s.values()
			assert.Equal(t, 10.0, got["valid o"])
			assert.Equal(t, c.undecided, got["undecided o"])
		})
	}
}

func generated(total float64) distribution {
	return distribution{engine: "0", model: "m", input: input.GenerationTokens, total: total}
}
