package stories

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/lab/judge"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/traffic"
)

// Model is a preset of the engine.
type Model struct {
	Name  string
	Tuned bool
}

// Models are the models and their hardware, presets of the engine. Tuned ones may be used
// while the diagnosis is worked on. Untuned ones are only for the page: their results may
// be read there, and nothing may be fitted to them.
var Models = []Model{
	{"8b-h100", true},
	{"70b-tp4-h100", true},
	{"8b-a100", true},
	{"8b-l40s", false},
	{"32b-h200", false},
	{"70b-tp8-h100-fp8", false},
}

// Traffic is a kind of the traffic generator.
type Traffic struct {
	Name string
	// Tuned is whether the diagnosis may be tuned on it.
	Tuned bool
	// Trace is the file of ../shared/traces that it was fitted to.
	Trace string
	// Blocks is whether prompts have blocks, so that more different ones can be asked for.
	// Closed is a closed loop: its rate is a number of clients.
	Blocks, Closed bool
}

// Traffics are the kinds that are used.
var Traffics = []Traffic{
	{Name: "conversation", Tuned: true, Trace: "azure-2023-conv"},
	{Name: "tenants", Tuned: true, Trace: "servegen-large-24h"},
	{Name: "batch", Tuned: true, Trace: "servegen-small-12h"},
	{Name: "reasoning", Trace: "servegen-reasoning-24h"},
	{Name: "long-context", Trace: "mooncake-conversation", Blocks: true},
	{Name: "assistant", Trace: "coding-assistant", Blocks: true, Closed: true},
}

// pairs are the models with their traffic. Not every model has all traffic, so that each
// cell gets enough hours; each traffic has a tuned and an untuned model.
var pairs = []struct{ model, traffic string }{
	{"8b-h100", "conversation"},
	{"32b-h200", "tenants"},
	{"70b-tp4-h100", "tenants"},
	{"8b-l40s", "conversation"},
	{"8b-a100", "batch"},
	{"32b-h200", "reasoning"},
	{"70b-tp4-h100", "reasoning"},
	{"32b-h200", "long-context"},
	{"8b-h100", "long-context"},
	{"8b-l40s", "batch"},
	{"8b-h100", "assistant"},
	{"70b-tp8-h100-fp8", "assistant"},
}

// bands are the loads, as shares of the knee.
var bands = []struct {
	Name      string
	low, high float64
}{
	{"20-50 %", 0.2, 0.5},
	{"50-80 %", 0.5, 0.8},
	{"80-110 %", 0.8, 1.1},
}

// Band is the name of the band of a load.
func Band(load float64) string {
	for _, b := range bands {
		if load < b.high {
			return b.Name
		}
	}
	return bands[len(bands)-1].Name
}

// Bands are the names of all bands.
func Bands() []string {
	var out []string
	for _, b := range bands {
		out = append(out, b.Name)
	}
	return out
}

// background is what a story is played on.
type background struct {
	model, traffic string
	// trace is the file of the recorded traffic, empty for the generator.
	trace string
	// rate is in requests per second, or a number of clients; load is its share of the knee.
	load, rate float64
	// work is the mean work of a request at the knee: the load is in work per second. 0 means
	// that rate is what it says.
	work float64
	// rises is when the traffic begins to rise, in seconds; negative for never.
	rises float64
	// bursts are times at which the traffic is three times as much for burstSeconds.
	bursts []float64
}

func newBackground(model, kind string, load float64) background {
	k := kneeOf(model, kind)
	return background{model: model, traffic: kind, load: load, rate: load * k.Rate, work: k.Work, rises: -1}
}

// kind is the traffic's description.
func (b *background) kind() Traffic { return trafficOf(b.traffic) }

func trafficOf(name string) Traffic {
	return Traffics[slices.IndexFunc(Traffics, func(t Traffic) bool { return t.Name == name })]
}

func (b *background) closed() bool { return b.kind().Closed }

// config is the server, without objectives.
func (b *background) config(seed uint64, seconds float64) (engine.Config, error) {
	model, there := engine.Models()[b.model]
	if !there {
		return engine.Config{}, fmt.Errorf("the engine has no preset %q", b.model)
	}
	clients := 0
	if b.closed() {
		clients = max(1, int(math.Round(b.rate)))
	}
	t, from, speed, err := b.arrivals(seed, seconds)
	if err != nil {
		return engine.Config{}, err
	}
	return serve(seed, model, t, clients, from, speed), nil
}

// serve is a server with traffic.
func serve(seed uint64, model engine.Model, t *engine.Traffic, clients int, from, speed float64) engine.Config {
	return engine.Config{
		Seed: seed, Model: model, BlockSize: blockSize, FrontEnd: engine.DefaultFrontEnd(),
		MaxModelLen: modelLength(t, model),
		Workload: engine.Workload{
			Traffic: t, From: from, Speed: speed, Clients: clients, ThinkMost: thinkMost,
			// Of every hundred clients one loses patience before the first token, and two stop
			// reading. A few requests are wrong. No trace has these; they are set by hand.
			Patience: 10, LeaveEarly: 0.01, LeaveLate: 0.02, Refused: 0.002,
		},
		Semantics: judge.Semantics(),
	}
}

const (
	// blockSize is the number of tokens of a KV block.
	blockSize = 16
	// thinkMost bounds the pauses of a closed loop, in seconds.
	thinkMost = 60
	// burstSeconds and burstFactor are a burst.
	burstSeconds, burstFactor = 90.0, 3.0
	// riseSeconds is how long traffic rises, up to riseFactor.
	riseSeconds, riseFactor = 1800.0, 1.4
)

// modelLength is max_model_len: what the longest request needs, in steps of 1024, at least
// 16384 and at most what the KV cache holds.
func modelLength(t *engine.Traffic, model engine.Model) int {
	longest := int32(0)
	for i := range t.Arrivals {
		longest = max(longest, t.Arrivals[i].Prompt+t.Arrivals[i].Output)
	}
	for i := range t.Conversations {
		for _, turn := range t.Conversations[i].Turns {
			longest = max(longest, turn.Prompt+turn.Output)
		}
	}
	n := (int(longest) + 1023) / 1024 * 1024
	return min(max(16384, n), (model.Blocks-2)*blockSize/1024*1024)
}

// arrivals are the requests of a story: as much work per second as the load says, within a
// twentieth. The generator draws tenants whose requests differ, so it is asked for more
// until it has enough, and what is too much is left out at random.
func (b *background) arrivals(seed uint64, seconds float64) (t *engine.Traffic, from, speed float64, err error) {
	if b.trace != "" {
		return b.recorded(seed, seconds)
	}
	if b.closed() {
		t, err = traffic.Generate(b.traffic, seed, 0, seconds)
		return t, 0, 1, err
	}
	ask, share := b.rate, 0.0
	for range 8 {
		if t, err = traffic.Generate(b.traffic, seed, ask, seconds); err != nil {
			return nil, 0, 0, err
		}
		if share = b.share(t, seconds); share > 1-tolerance {
			break
		}
		ask *= min(4, 1.1/max(0.25, share))
	}
	// Some requests are a hundred times as long as others, so one draw may miss.
	best := t
	for i := uint64(0); i < 20 && math.Abs(share-1) > tolerance && b.share(t, seconds) > 1; i++ {
		some := thinned(t, 1/b.share(t, seconds), seed+i)
		if got := b.share(some, seconds); math.Abs(got-1) < math.Abs(share-1) {
			best, share = some, got
		}
	}
	return b.shaped(best), 0, 1, nil
}

// tolerance is how far the load of a story may be from the wanted one.
const tolerance = 0.05

// thinned keeps a share of the arrivals, at random.
func thinned(t *engine.Traffic, share float64, seed uint64) *engine.Traffic {
	d := newDraw(seed ^ 0x7417)
	out := *t
	out.Arrivals = nil
	for i := range t.Arrivals {
		if d.Float64() < share {
			out.Arrivals = append(out.Arrivals, t.Arrivals[i])
		}
	}
	return &out
}

// share is how many times the wanted work or rate traffic is, over some seconds.
func (b *background) share(t *engine.Traffic, seconds float64) float64 {
	out := float64(len(t.Arrivals)) / seconds / b.rate
	if b.work > 0 {
		out *= work(t) / b.work
	}
	return out
}

// shaped is traffic with bursts and with a rise: the same requests in the same order, at
// times that are closer together where there is more traffic.
func (b *background) shaped(t *engine.Traffic) *engine.Traffic {
	if b.rises < 0 && len(b.bursts) == 0 {
		return t
	}
	// One second of the shaped traffic takes so many seconds of the given one.
	intensity := func(at float64) float64 {
		out := 1.0
		if b.rises >= 0 {
			out += (riseFactor - 1) * min(1, max(0, (at-b.rises)/riseSeconds))
		}
		for _, burst := range b.bursts {
			if at >= burst && at < burst+burstSeconds {
				out *= burstFactor
			}
		}
		return out
	}
	out := &engine.Traffic{Name: t.Name, BlockTokens: t.BlockTokens, Arrivals: slices.Clone(t.Arrivals)}
	at, given := 0.0, 0.0
	for i := range out.Arrivals {
		for given+intensity(at) <= t.Arrivals[i].At {
			given += intensity(at)
			at++
		}
		out.Arrivals[i].At = at + (t.Arrivals[i].At-given)/intensity(at)
	}
	// The rest of the span is shortened as well.
	for given+intensity(at) <= t.Span {
		given += intensity(at)
		at++
	}
	out.Span = at + (t.Span-given)/intensity(at)
	if n := len(out.Arrivals); n > 0 {
		out.Span = max(out.Span, out.Arrivals[n-1].At)
	}
	return out
}

// Shared is the folder of the recorded traffic, "../shared" of the repository.
var Shared string

// recorded is a window of a trace, faster or slower so that its mean rate is that of the
// background.
func (b *background) recorded(seed uint64, seconds float64) (t *engine.Traffic, from, speed float64, err error) {
	t, err = read(filepath.Join(Shared, "traces", b.trace+".csv.gz"))
	if err != nil || b.closed() {
		return t, 0, 1, err
	}
	d := newDraw(seed ^ 0xf70)
	from = d.between(0, t.Span)
	rate := b.rate
	if b.work > 0 {
		rate *= b.work / work(t)
	}
	speed = rate / (float64(len(t.Arrivals)) / t.Span)
	// The window is as long as the story at that speed; its own mean decides.
	for range 3 {
		n := arrivalsBetween(t, from, from+seconds*speed)
		if n == 0 {
			from = d.between(0, t.Span)
			continue
		}
		speed *= math.Min(3, math.Max(0.3, rate*seconds/n))
	}
	return t, from, math.Min(1000, math.Max(0.001, speed)), nil
}

// arrivalsBetween counts the arrivals of traffic that begins again after its span.
func arrivalsBetween(t *engine.Traffic, from, to float64) float64 {
	before := func(at float64) float64 {
		rounds := math.Floor(at / t.Span)
		rest := at - rounds*t.Span
		n, _ := slices.BinarySearchFunc(t.Arrivals, rest, func(a engine.Arrival, at float64) int {
			if a.At < at {
				return -1
			}
			return 1
		})
		return rounds*float64(len(t.Arrivals)) + float64(n)
	}
	return before(to) - before(from)
}

// objectives are what a healthy server promises with room: 95 % of the first tokens within
// twice their 95th percentile at half of the knee, and 90 % of the gaps between tokens
// within the bucket after that of their 90th percentile.
func objectives(model, kind string) []any {
	k := kneeOf(model, kind)
	first := time.Duration(math.Ceil(2*k.FirstToken*10)) * 100 * time.Millisecond
	gap := engine.GapBounds[len(engine.GapBounds)-1]
	for _, bound := range slices.Backward(engine.GapBounds[:]) {
		if bound > k.Gap {
			gap = bound
		}
	}
	return []any{
		map[string]any{"name": "first-token", "metric": "vllm.time_to_first_token", "threshold": first.String(), "target": 0.95},
		map[string]any{
			"name": "gap", "metric": "vllm.inter_token_latency",
			"threshold": time.Duration(math.Round(gap * 1e9)).String(), "target": 0.9,
		},
	}
}
