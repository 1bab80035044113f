package engine

import (
	"fmt"
	"math"
	"slices"
)

// CurvePoint is one point of the curves by which a model is judged.
type CurvePoint struct {
	// Curve is one of itl_by_batch, ttft_by_prompt and latency_by_load; X is in
	// sequences, tokens or requests per second.
	Curve string
	X     float64
	// Metric names Value: itl_mean, ttft_mean, ttft_p95 in seconds,
	// throughput in complete requests per second.
	Metric string
	Value  float64
}

// Curves computes, for a model without anything unusual, the distance between
// tokens against the batch, the time to the first token of a lone request against
// its prompt, and the latencies of a chat workload against its rate.
func Curves(m Model, seed uint64) ([]CurvePoint, error) {
	var out []CurvePoint
	for _, part := range []func(Model, uint64) ([]CurvePoint, error){itlByBatch, ttftByPrompt, latencyByLoad} {
		points, err := part(m, seed)
		if err != nil {
			return nil, fmt.Errorf("model %s: %w", m.Name, err)
		}
		out = append(out, points...)
	}
	return out, nil
}

// alone is a server to which only the caller sends requests.
func alone(m Model, maxModelLen int) (*Server, error) {
	return New(Config{
		Model: m, FrontEnd: DefaultFrontEnd(), MaxModelLen: maxModelLen, KeepOutcomes: true,
		Workload: Workload{Prompt: Lengths{Median: 1}, Output: Lengths{Median: 1}},
	})
}

// itlByBatch lets so many requests decode together, up to 1024 or as many as the server's
// limits allow. Their prompts of 256 tokens are short, so that many fit into the cache.
func itlByBatch(m Model, _ uint64) ([]CurvePoint, error) {
	const prompt, output = 256, 60
	most := min(1024, (m.Blocks-1)*16/(prompt+output+40+16))
	if m.MaxSeqs > 0 {
		most = min(most, m.MaxSeqs)
	}
	var points []CurvePoint
	for n := 1; n <= most; n *= 2 {
		s, err := alone(m, 16384)
		if err != nil {
			return nil, err
		}
		for range n {
			s.Send(Request{Prompt: prompt, Output: output + 40})
		}
		c := s.engines[0]
		for len(c.running) < n || c.running[n-1].generated < 10 {
			s.AdvanceTo(s.now + 0.01)
		}
		s.AdvanceTo(c.ends)
		from, steps := c.lastEnd, c.step
		for c.step < steps+20 {
			s.AdvanceTo(c.ends)
		}
		points = append(points, CurvePoint{"itl_by_batch", float64(n), "itl_mean", (c.lastEnd - from) / float64(c.step-steps)})
	}
	return points, nil
}

func ttftByPrompt(m Model, _ uint64) ([]CurvePoint, error) {
	var points []CurvePoint
	for n := 16; n <= min(131072, (m.Blocks-2)*16-16); n *= 2 {
		s, err := alone(m, n+16)
		if err != nil {
			return nil, err
		}
		s.Send(Request{Prompt: n, Output: 1})
		for len(s.outcomes) == 0 {
			s.AdvanceTo(s.now + 1)
		}
		points = append(points, CurvePoint{"ttft_by_prompt", float64(n), "ttft_mean", s.Outcomes()[0].FirstToken})
	}
	return points, nil
}

// latencyByLoad runs a chat workload for ten minutes at each rate, up to what the
// hardware could compute if it did nothing but prompts, and leaves out the first
// two minutes.
func latencyByLoad(m Model, seed uint64) ([]CurvePoint, error) {
	const begin, end = 120.0, 600.0
	limit := promptLimit(m)
	var points []CurvePoint
	for twentieth := 1.0; twentieth <= 20; twentieth++ {
		rate := math.Round(twentieth/20*limit*100) / 100
		s, err := New(Config{
			Seed: seed, Model: m, FrontEnd: DefaultFrontEnd(), Workload: Chat(rate), KeepOutcomes: true,
		})
		if err != nil {
			return nil, err
		}
		s.AdvanceTo(end)
		var first []float64
		sum, gaps, gapCount, complete := 0.0, 0.0, 0.0, 0.0
		for _, o := range s.Outcomes() {
			if o.Ended >= begin && (o.End == EndStop || o.End == EndLength) {
				complete++
			}
			if o.Arrived < begin || o.FirstToken == 0 {
				continue
			}
			first = append(first, o.FirstToken)
			sum += o.FirstToken
			gaps += o.MeanGap * float64(o.Output-1)
			gapCount += float64(o.Output - 1)
		}
		if len(first) == 0 || gapCount == 0 {
			continue // Not one request got through.
		}
		slices.Sort(first)
		for _, v := range []struct {
			metric string
			value  float64
		}{
			{"ttft_mean", sum / float64(len(first))},
			{"ttft_p95", first[len(first)*95/100]},
			{"itl_mean", gaps / gapCount},
			{"throughput", complete / (end - begin)},
		} {
			points = append(points, CurvePoint{"latency_by_load", rate, v.metric, v.value})
		}
	}
	return points, nil
}

// promptLimit is about how many chat requests per second the hardware can
// compute if it did nothing but full steps, prompts without what they share.
func promptLimit(m Model) float64 {
	var full Batch
	for range 8 {
		full.AddChunk(1024, 0)
	}
	step := m.StepTime(full, Nominal())
	// The mean of the lognormal lengths, of which about an eighth is found.
	w := Chat(1)
	prompt := w.Prompt.Median * math.Exp(w.Prompt.Sigma*w.Prompt.Sigma/2) * 7 / 8
	return 8192 / step / prompt
}
