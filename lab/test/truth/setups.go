package truth

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/surface"
)

// Setup is a kind of deployment, load or accident.
type Setup struct {
	Name string
	// Dialects are those of surface that can have it; none is all.
	Dialects []surface.Dialect
	// Since is the first version that can have it.
	Since string
	// Configure changes the configuration of a plain server.
	Configure func(*vllmsim.Config)
	// NoBlocks does not take the capacity from blocks, which is for models of one kind of
	// layers only, as its setting says.
	NoBlocks bool
	// Only are the metrics that are judged, where the catalogue decides that the others count
	// something else; none is all.
	Only []string
	// Whole is true where nothing may be withheld in any version.
	Whole bool
	// Calm is true where nothing is wrong with the server, so that the diagnosis must not
	// report that it stands still or fails.
	Calm bool
}

// perClient are the metrics that do not count requests: a request for several choices, a
// step of a beam search and a chunk of a session count like requests in all others, as the
// decisions about choices-counted-singly, beam-steps-counted and sessions-per-chunk say.
var perClient = []string{
	"vllm.generation_throughput", "vllm.kv_cache.capacity", "vllm.kv_cache.free", "vllm.http.error_ratio",
}

// python are the dialects with the V1 engine and its own front end.
var python = []surface.Dialect{surface.V1, surface.V1MultiProcess}

var setups = []*Setup{
	{Name: "plain", Configure: func(*vllmsim.Config) {}, Whole: true, Calm: true},
	{Name: "idle", Calm: true, Whole: true, Configure: func(c *vllmsim.Config) {
		c.Changes = []engine.Change{{At: 100, Parameter: engine.ParamArrivalRate}, {At: 250, Parameter: engine.ParamArrivalRate, Value: 1}}
	}},
	{Name: "engines", Since: "0.8.3", Calm: true, Configure: func(c *vllmsim.Config) { c.Engines = 3 }},
	{Name: "unequal-engines", Since: "0.8.3", Calm: true, Configure: func(c *vllmsim.Config) {
		c.Engines = 2
		c.Weights = []float64{0.85, 0.15}
	}},
	{Name: "speculation", Since: "0.8.5", Calm: true, Configure: func(c *vllmsim.Config) { c.SpecDecode = true }},
	{Name: "speculating-engines", Since: "0.8.5", Calm: true, Configure: func(c *vllmsim.Config) {
		c.SpecDecode, c.Engines = true, 2
	}},
	{Name: "adapters", Calm: true, Configure: func(c *vllmsim.Config) {
		c.LoRA, c.MaxLoRAs = true, 1
	}},
	{Name: "transfers", Since: "0.12.0", Dialects: []surface.Dialect{surface.V1, surface.RayNew, surface.Rust}, Calm: true, Configure: func(c *vllmsim.Config) {
		c.Transfer = engine.Transfer{Share: 0.5, Latency: 0.05, BytesPerSecond: 2e9}
	}},
	{Name: "errors", Configure: func(c *vllmsim.Config) {
		c.Changes = []engine.Change{{At: 90, Parameter: engine.ParamErrorRate, Value: 0.2}}
	}},
	{Name: "unscheduled", Configure: func(c *vllmsim.Config) {
		c.Changes = []engine.Change{{At: 90, Parameter: engine.ParamUnscheduled, Value: 0.05}, {At: 200, Parameter: engine.ParamUnscheduled}}
	}},
	{Name: "all-clients-leave", Dialects: python, Calm: true, Configure: func(c *vllmsim.Config) {
		c.Changes = []engine.Change{
			{At: 119, Parameter: engine.ParamArrivalRate, Value: 0},
			{At: 120, Parameter: engine.ParamClientsLeave, Value: 1},
			{At: 300, Parameter: engine.ParamArrivalRate, Value: 1},
		}
	}},
	{Name: "scale-up", Since: "0.10.0", Dialects: python, Calm: true, Configure: func(c *vllmsim.Config) {
		c.Engines = 2
		c.Changes = []engine.Change{{At: 172, Parameter: engine.ParamScaleUp, Value: 2}}
	}},
	{Name: "wrong-requests", Dialects: python, Calm: true, Configure: func(c *vllmsim.Config) {
		c.Changes = []engine.Change{{At: 60, Parameter: engine.ParamClientErrors, Value: 0.4}}
	}},
	{Name: "choices", Only: perClient, Dialects: python, Calm: true, Configure: func(c *vllmsim.Config) {
		c.Workload.ChoicesShare, c.Workload.Choices = 0.3, 4
	}},
	{Name: "beams", Only: perClient, Dialects: python, Calm: true, Configure: func(c *vllmsim.Config) {
		c.Workload.BeamShare, c.Workload.Beams, c.Workload.Rate = 0.05, 3, 0.5
	}},
	{Name: "sessions", Since: "0.15.0", Only: perClient, Dialects: python, Calm: true, Configure: func(c *vllmsim.Config) {
		c.Workload.SessionShare, c.Workload.Chunks, c.Workload.ChunkPause = 0.2, 3, 2
	}},
	{Name: "images", Since: "0.11.1", Dialects: python, Calm: true, Configure: func(c *vllmsim.Config) {
		c.Workload.MediaShare, c.Workload.Media = 0.5, 20
	}},
	{Name: "hybrid", NoBlocks: true, Since: "0.11.0", Calm: true, Configure: func(c *vllmsim.Config) {
		c.Hybrid = true
		c.KVCacheTokens = 80 * 512
	}},
	{Name: "clients-leave", Calm: true, Configure: func(c *vllmsim.Config) {
		c.Workload.LeaveEarly, c.Workload.LeaveLate, c.Workload.Patience = 0.2, 0.3, 0.4
	}},
	{Name: "client-errors", Calm: true, Configure: func(c *vllmsim.Config) { c.Workload.Refused = 0.4 }},
	{Name: "preemption", Configure: func(c *vllmsim.Config) {
		c.KVCacheTokens, c.Workload.Rate = 10240, 6
	}},
	{Name: "preempted-engines", Since: "0.8.3", Configure: func(c *vllmsim.Config) {
		c.KVCacheTokens, c.Workload.Rate, c.Engines = 10240, 12, 2
		c.Workload.LeaveLate = 0.2
	}},
	{Name: "slow-front-end", Configure: func(c *vllmsim.Config) {
		c.Changes = []engine.Change{{At: 60, Parameter: engine.ParamFrontEnd, Value: 10}}
	}},
	{Name: "long-steps", Calm: true, Configure: func(c *vllmsim.Config) {
		c.Workload.Rate = 0.1
		c.Workload.Prompt = engine.Lengths{Median: 7000, Sigma: 0.1}
		c.Changes = []engine.Change{{Parameter: engine.ParamClock, Value: 0.02}}
	}},
	{Name: "short-answers", Calm: true, Configure: func(c *vllmsim.Config) {
		c.Workload.Output = engine.Lengths{Median: 1.5, Sigma: 0.8} // Many have one token, and so no time of decode.
	}},
	{Name: "operations", Since: "0.11.0", Dialects: python, Calm: true, Whole: true, Configure: func(c *vllmsim.Config) { c.Operation = true }},
	{Name: "priorities", Since: "0.11.0", Dialects: python, Calm: true, Whole: true, Configure: func(c *vllmsim.Config) {
		c.Operation, c.Priority = true, true
	}},
	{Name: "speculating-priorities", Since: "0.11.0", Dialects: python, Calm: true, Configure: func(c *vllmsim.Config) {
		c.Priority, c.SpecDecode = true, true
	}},
	{Name: "abandoned-priorities", Since: "0.11.0", Dialects: python, Calm: true, Configure: func(c *vllmsim.Config) {
		c.Priority, c.Engines = true, 2
		c.Workload.LeaveLate, c.Workload.Patience = 0.3, 0.4
	}},
	{Name: "restart", Configure: func(c *vllmsim.Config) {
		c.Faults = []vllmsim.Fault{{Kind: vllmsim.FaultRestart, At: 190, Until: 230}}
	}},
}

// Cases returns one case for each setup, dialect and version that can have it, with the
// version known and unknown.
func Cases() (all []*Case) {
	for _, setup := range setups {
		for _, dialect := range surface.Dialects() {
			if len(setup.Dialects) > 0 && !slices.Contains(setup.Dialects, surface.Dialect(dialect)) {
				continue
			}
			for _, version := range Versions() {
				for _, unknown := range []bool{false, true} {
					if c := newCase(setup, dialect, version, unknown); c != nil {
						all = append(all, c)
					}
				}
			}
		}
	}
	return all
}

// newCase returns nil where no such server exists.
func newCase(setup *Setup, dialect, version string, unknown bool) *Case {
	workload := engine.Chat(3)
	workload.Prompt.Median = 520
	c := &Case{
		Setup: setup, NoBlocks: setup.NoBlocks, Length: 380 * time.Second, Every: 15 * time.Second, Unknown: unknown,
		Config: vllmsim.Config{
			Dialect: dialect, Version: version, Seed: uint64(len(setup.Name)), KVCacheTokens: 40960, MaxModelLen: 8192, MaxSeqs: 48, Workload: &workload,
		},
	}
	if dialect == string(surface.V1MultiProcess) {
		c.Config.APIServers = 3
	}
	setup.Configure(&c.Config)
	if c.before(cmp.Or(setup.Since, "0.0.0")) {
		return nil
	}
	if _, err := vllmsim.New(c.Config); err != nil {
		return nil
	}
	return c
}

// last are the newest patch releases before a minor one.
var last = map[int]int{4: 3, 5: 5, 6: 6, 7: 3, 8: 5, 9: 2, 10: 2, 11: 2, 14: 1, 15: 1, 17: 1, 18: 1, 19: 1}

// Versions returns each version at which a defect begins or ends, and the release before.
func Versions() (all []string) {
	add := func(r catalog.Release) {
		var parts []string
		for _, n := range r {
			parts = append(parts, strconv.Itoa(n))
		}
		if version := strings.Join(parts, "."); !slices.Contains(all, version) {
			all = append(all, version)
		}
	}
	for _, d := range catalog.Defects() {
		for _, version := range []string{d.Since, d.Until} {
			r, ok := catalog.ParseRelease(version)
			if !ok {
				continue
			}
			add(r)
			if r[2] > 0 {
				r[2]--
			} else {
				r[1]--
				r[2] = last[r[1]]
			}
			add(r)
		}
	}
	slices.SortFunc(all, func(a, b string) int {
		x, _ := catalog.ParseRelease(a)
		y, _ := catalog.ParseRelease(b)
		return x.Compare(y)
	})
	return all
}
