package gpus

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/lab/test/history"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/gpu"
)

// kind is what a random story does, and what must be said about it.
type kind struct {
	name, about string
	// right is the detail that is true; empty is none. clean is true where it is also true that
	// nothing throttled, which says less.
	right string
	clean bool
}

var kinds = []kind{
	{"power limit", "power limit of 18 % to 27 %", "power_cap", false},
	{"heat", "cooling of 10 % to 20 %", "thermal", false},
	{"memory", "40 % to 70 % of memory reads repeated", "memory_error", true},
	{"link", "75 % to 92 % of GPU traffic sent again", "interconnect", true},
	{"clocks", "clock fixed at 15 % to 30 %", "clocks_low", true},
	{"host", "slow host, unchanged GPUs", notThrottled, false},
	{"throttled before", "slow host, two to six minutes after a throttling", notThrottled, false},
	// The counters move as much as before, so they neither blame the GPU nor exclude it.
	{"throttled always", "slow host, and a permanent power limit on some steps", "", false},
	{"no counters", "slow host, exporter with defaults", "", false},
	// The clock is low, and the exporter does not say why.
	{"not counted", "power limit, exporter with defaults", "", false},
	{"shared", "power limit, GPUs shared with another pod", "", false},
}

// The seeds. Those of the published table were used once, for it; all work was done with others.
const (
	tuningSeed  = 1_700
	heldOutSeed = 28_110_000
)

// random is one story of a kind.
type random struct {
	kind  kind
	story *history.Story
	// The times between which steps are slow.
	onset, end time.Duration
}

type dice struct{ *rand.Rand }

func (d dice) between(a, b float64) float64 { return a + (b-a)*d.Float64() }
func (d dice) chance(p float64) bool        { return d.Float64() < p }

// draw makes story number n of a kind.
func draw(k kind, seed, n uint64) random {
	d := dice{rand.New(rand.NewPCG(seed+n, uint64(slices.IndexFunc(kinds, func(o kind) bool { return o.name == k.name }))))}
	minute := time.Minute
	out := random{kind: k, onset: time.Duration(d.between(14, 20) * float64(minute))}
	out.end = out.onset + 12*minute
	hardware, rate, usual := "8b-h100", d.between(3, 9), 0.009
	if k.name == "link" || (k.name != "clocks" && d.chance(0.3)) {
		hardware, rate, usual = "70b-tp4-h100", d.between(1, 2.5), 0.018
		if d.chance(0.4) {
			hardware, rate, usual = "32b-tp2-h100", d.between(1, 2.5), 0.017
		}
	}
	w := engine.Chat(rate)
	if d.chance(0.3) {
		w = engine.Code(rate / 2)
	}
	gpus := &gpu.Config{Families: []string{gpu.ThrottleTime}, OldLabels: d.chance(0.3), PodUID: d.chance(0.5)}
	for _, group := range []string{gpu.ThrottleReasons, gpu.Windows, gpu.ECC, gpu.LinkErrors, gpu.Limits} {
		if d.chance(0.5) || (k.name == "link" && group == gpu.LinkErrors) {
			gpus.Families = append(gpus.Families, group)
		}
	}
	if d.chance(0.3) && k.name != "throttled always" {
		gpus.Affected = 1
	}
	if d.chance(0.2) {
		at := out.onset + time.Duration(d.between(4, 8)*float64(minute))
		gpus.Away = []gpu.Span{{At: at.Seconds(), Until: (at + minute).Seconds()}}
	}
	c := vllmsim.Config{Dialect: "v1", Hardware: hardware, Seed: seed + n, Workload: &w, GPUs: gpus}
	set := func(at, until time.Duration, p engine.Parameter, value float64) {
		c.Changes = append(c.Changes, engine.Change{At: at.Seconds(), Parameter: p, Value: value}, engine.Change{At: until.Seconds(), Parameter: p, Value: p.Nominal()})
	}
	host := func() { set(out.onset, out.end, engine.ParamHostDelay, usual*d.between(0.8, 1.6)) }
	switch k.name {
	case "power limit", "shared":
		set(out.onset, out.end, engine.ParamPowerLimit, d.between(0.18, 0.27))
	case "heat":
		set(out.onset, out.end, engine.ParamCooling, d.between(0.1, 0.2))
	case "memory":
		set(out.onset, out.end, engine.ParamMemoryErrors, d.between(0.4, 0.7))
	case "link":
		set(out.onset, out.end, engine.ParamLinkErrors, d.between(0.75, 0.92))
	case "clocks":
		set(out.onset, out.end, engine.ParamClockLimit, d.between(0.15, 0.3))
	case "throttled before":
		until := out.onset - time.Duration(d.between(2, 6)*float64(minute))
		set(until-2*minute, until, engine.ParamPowerLimit, d.between(0.4, 0.45))
		host()
	case "throttled always":
		c.Changes = append(c.Changes, engine.Change{Parameter: engine.ParamPowerLimit, Value: d.between(0.48, 0.55)})
		host()
	case "not counted":
		gpus.Families = nil
		set(out.onset, out.end, engine.ParamPowerLimit, d.between(0.18, 0.27))
	case "no counters":
		gpus.Families = nil
		host()
	default:
		host()
	}
	if k.name == "shared" {
		gpus.Sharing = []string{gpu.TimeSlicing, gpu.MIG}[d.IntN(2)]
	}
	amd := map[string]bool{"power limit": true, "heat": true, "host": true, "throttled before": true}
	if amd[k.name] && d.chance(0.2) {
		gpus.Kind, gpus.Families = gpu.AMD, nil
	}
	out.story = &history.Story{
		Name: fmt.Sprintf("%s-%d", k.name, n), Length: out.end + 4*minute, Every: []time.Duration{10, 15, 30}[d.IntN(3)] * time.Second,
		Servers: []history.Servers{{Config: c, Name: "vllm", Namespace: "chat"}},
	}
	return out
}
