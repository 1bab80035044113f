package fidelity

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
)

// recorded is a recording of a server whose clients' requests are known.
type recorded struct {
	name                           string
	clients, tp, capacity, waiting int
}

// turn is a request of a recording.
type turn struct {
	number, prompt, output int
	sent, ended            float64
	ttft, tpot             float64
}

// recordings lets the simulator have the same clients as recorded servers: the
// conversations are put together again from the requests, and so many clients hold them.
func recordings(ctx context.Context, d *data) ([]Line, error) {
	var all []recorded
	var out []Line
	err := d.each("series/index.csv", func(r row) {
		name := r.text("name")
		c := recorded{name, r.whole("clients_or_max_num_seqs"), r.whole("tp"), r.whole("kv_cache_tokens"), r.whole("max_waiting")}
		if why := notSimulated(name, r.whole("request_rows")); why != "" {
			out = append(out, Line{What: name, Note: why})
			return
		}
		all = append(all, c)
	})
	if err != nil {
		return nil, err
	}
	var lines []Line
	for _, c := range all {
		got, err := d.recording(ctx, c)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
		lines = append(lines, got...)
	}
	return append(lines, out...), nil
}

// notSimulated says why a recording is only replayed; "" is that it is simulated.
func notSimulated(name string, requests int) string {
	switch {
	case strings.HasPrefix(name, "deepseek"):
		return "replay only: there are no step times of its attention and experts"
	case strings.Contains(name, "shared-gpu"):
		return "not simulated: a second server of unknown load was on the same GPUs"
	case requests == 0:
		return "not simulated: the requests of its clients were not recorded"
	}
	return ""
}

func (d *data) recording(ctx context.Context, c recorded) ([]Line, error) {
	var turns []turn
	err := d.each("series/"+c.name+"-requests.csv.gz", func(r row) {
		t := turn{
			number: r.whole("turn"), prompt: r.whole("prompt_tokens"), output: r.whole("output_tokens"),
			sent: r.number("sent_s"), ttft: r.number("ttft_ms"), tpot: r.number("tpot_ms"),
		}
		t.ended = t.sent + r.number("latency_ms")/1e3
		turns = append(turns, t)
	})
	if err != nil {
		return nil, err
	}
	var usage []float64
	prompts, hits := 0.0, 0.0
	err = d.each("series/"+c.name+".csv.gz", func(r row) {
		usage = append(usage, r.number("kv_usage_pct"))
		prompts, hits = max(prompts, r.number("prompt_tokens_total")), max(hits, r.number("prefix_cache_hits_total"))
	})
	if err != nil {
		return nil, err
	}
	m, err := d.model(engineOf{"B200-SXM", "Llama-3.1-70B", c.tp, fourBits, "fp8"})
	if err != nil {
		return nil, err
	}
	conversations := together(turns)
	cfg := engine.Config{
		Seed: 1, Model: m, FrontEnd: engine.DefaultFrontEnd(), Blocks: c.capacity / blockTokens, MaxSeqs: c.clients, MaxModelLen: 32768,
		Workload: engine.Workload{
			Clients: c.clients,
			Traffic: &engine.Traffic{Name: c.name, BlockTokens: blockTokens, Conversations: conversations},
		},
	}
	a, err := run(ctx, cfg, len(turns))
	if err != nil {
		return nil, err
	}
	var first, gap []float64
	tokens, last := 0, 0.0
	for _, t := range turns {
		first = append(first, t.ttft)
		if t.output > 1 {
			gap = append(gap, t.tpot)
		}
		tokens += t.output
		last = max(last, t.ended)
	}
	lines := []Line{
		{Quantity: Throughput, Bar: 0.25, Pairs: []Pair{{c.name, float64(tokens) / last, a.tokensPerSecond()}}},
		{Quantity: TPOT, Bar: 0.25, Pairs: []Pair{{c.name, mean(gap), mean(a.gaps())}}},
		{Quantity: CacheUse, Bar: 0.25, Pairs: []Pair{{c.name, mean(usage), 100 * a.usage}}},
		{Quantity: TTFT, Bar: 0.5, Factor: true, Pairs: []Pair{{c.name, mean(first), mean(a.first())}}},
	}
	if c.waiting <= 2 { // Otherwise the counter means something else.
		found := a.found()
		lines = append(lines, Line{Quantity: Reuse, Bar: 0.25, Pairs: []Pair{{c.name, 100 * hits / prompts, 100 * found}}})
	}
	for i := range lines {
		lines[i].What, lines[i].Note = c.name, differs[c.name]
		if lines[i].Quantity == Reuse {
			lines[i].Note = ""
		}
	}
	return lines, nil
}

// differs is what is known about recordings that the simulator does not meet, read off the
// recordings themselves.
var differs = map[string]string{
	"llama70b-tp1-64":  "from the fourth minute to its end the real server slows down from 36 to 55 ms per token, at the same use of its cache; the simulated one does not",
	"llama70b-tp1-128": "the real server slows down from 39 to 52 ms per token in the first six minutes, in which its cache fills",
	"llama70b-tp1-256": "as with 128 clients; faster steps also leave less of a queue for the full cache",
	"llama70b-tp1-512": "as with 256 clients",
	"llama70b-tp8-64":  "steps over 8 B200 are too short with many clients, in closed loops too",
}

// blockTokens is the size of a KV block.
const blockTokens = 16

// together puts conversations together from requests. The next turn has the number after
// the answer's, was sent when that had ended, and its prompt contains prompt and answer.
func together(turns []turn) []engine.Conversation {
	const early, late = 0.06, 0.15 // In seconds: the clocks of clients and their haste.
	turns = slices.Clone(turns)
	slices.SortStableFunc(turns, func(a, b turn) int { return cmp.Compare(a.sent, b.sent) })
	follows, next := make([]int, len(turns)), make([]int, len(turns))
	byNumber := map[int][]int{}
	for i, t := range turns {
		follows[i], next[i] = -1, -1
		for _, j := range byNumber[t.number-2] {
			before := turns[j]
			if next[j] >= 0 || before.prompt+before.output > t.prompt+3 || t.sent < before.ended-early || t.sent > before.ended+late {
				continue
			}
			if k := follows[i]; k < 0 || distance(t, before) < distance(t, turns[k]) {
				follows[i] = j
			}
		}
		if j := follows[i]; j >= 0 {
			next[j] = i
		}
		byNumber[t.number] = append(byNumber[t.number], i)
	}
	var out []engine.Conversation
	for i := range turns {
		if follows[i] >= 0 {
			continue
		}
		var c engine.Conversation
		for j, think := i, 0.0; j >= 0; j = next[j] {
			t := turns[j]
			said := engine.Turn{Think: think, Prompt: int32(t.prompt), Output: int32(t.output)}
			if blocks := said.Prompt / blockTokens; blocks > 0 {
				// What was said before stands at the beginning of every prompt.
				said.Prefix = []engine.BlockRun{{First: 0, Last: blocks - 1}}
			}
			c.Turns = append(c.Turns, said)
			if k := next[j]; k >= 0 {
				think = max(0, turns[k].sent-t.ended)
			}
		}
		out = append(out, c)
	}
	return out
}

func distance(a, before turn) float64 { return max(a.sent-before.ended, before.ended-a.sent) }
