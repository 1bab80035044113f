package plot

import (
	"fmt"
	"strconv"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
)

// The names of the pictures.
const (
	ITLByBatch    = "simulator-itl-by-batch.svg"
	TTFTByPrompt  = "simulator-ttft-by-prompt.svg"
	LatencyByLoad = "simulator-latency-by-load.svg"
)

// models are the presets with their colours, which people with any kind of
// colour vision can distinguish.
var models = []struct {
	model             engine.Model
	name, strong, alt string
}{
	{engine.Llama8B(), "8B on one H100", "#0b63b0", "#56a5e8"},
	{engine.Llama70B(), "70B on four H100", "#b34700", "#ef9a4d"},
}

// Curves draws the three pictures from engine.Curves of all models and returns
// them by their names.
func Curves(seed uint64) (map[string][]byte, error) {
	itl := chart{
		title: "Time between tokens against the batch",
		x:     axis{title: "sequences that decode together (prompts of 256 tokens), logarithmic", logarithmic: true, least: 1, most: 1024},
		y:     axis{title: "mean time between tokens (ms)", least: 0, most: 100},
	}
	for n := 1; n <= 1024; n *= 2 {
		itl.x.marks = append(itl.x.marks, mark{float64(n), strconv.Itoa(n)})
	}
	for ms := 0; ms <= 100; ms += 20 {
		itl.y.marks = append(itl.y.marks, mark{float64(ms), strconv.Itoa(ms)})
	}
	ttft := chart{
		title: "Time to the first token of a lone request",
		x:     axis{title: "prompt (tokens), logarithmic", logarithmic: true, least: 16, most: 131072},
		y:     axis{title: "time to first token (s), logarithmic", logarithmic: true, least: 0.001, most: 100, marks: decades(-3, 2)},
	}
	for n := 32; n <= 131072; n *= 4 {
		ttft.x.marks = append(ttft.x.marks, mark{float64(n), strconv.Itoa(n)})
	}
	load := chart{
		title: "Latency of a chat workload against its rate",
		x:     axis{title: "arrivals (requests per second)", least: 0, most: 40},
		y:     axis{title: "latency (s), logarithmic", logarithmic: true, least: 0.001, most: 1000, marks: decades(-3, 3)},
	}
	for rate := 0; rate <= 40; rate += 4 {
		load.x.marks = append(load.x.marks, mark{float64(rate), strconv.Itoa(rate)})
	}
	for _, m := range models {
		points, err := engine.Curves(m.model, seed)
		if err != nil {
			return nil, err
		}
		pick := func(curve, metric string, scale float64) (out []point) {
			for _, p := range points {
				if p.Curve == curve && p.Metric == metric {
					out = append(out, point{p.X, p.Value * scale})
				}
			}
			return out
		}
		itl.lines = append(itl.lines, series{m.name, m.strong, false, pick("itl_by_batch", "itl_mean", 1000)})
		ttft.lines = append(ttft.lines, series{m.name, m.strong, false, pick("ttft_by_prompt", "ttft_mean", 1)})
		load.lines = append(load.lines,
			series{m.name + ": first token, p95", m.strong, false, pick("latency_by_load", "ttft_p95", 1)},
			series{m.name + ": between tokens, mean", m.alt, true, pick("latency_by_load", "itl_mean", 1)})
	}
	out := map[string][]byte{}
	for name, c := range map[string]chart{ITLByBatch: itl, TTFTByPrompt: ttft, LatencyByLoad: load} {
		picture, err := c.svg()
		if err != nil {
			return nil, fmt.Errorf("picture %s: %w", name, err)
		}
		out[name] = picture
	}
	return out, nil
}

// decades are marks at powers of ten.
func decades(from, to int) []mark {
	var out []mark
	for e := from; e <= to; e++ {
		// Parsing gives the same number everywhere, which powers need not.
		v, _ := strconv.ParseFloat(fmt.Sprintf("1e%d", e), 64)
		out = append(out, mark{v, strconv.FormatFloat(v, 'f', -1, 64)})
	}
	return out
}
