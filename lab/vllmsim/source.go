package vllmsim

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/surface"
)

// Models are the names that Config.Hardware can have.
func Models() []string { return engine.ModelNames() }

// newEngine returns the engines of server number i.
func (c Config) newEngine(i int, version surface.Version) (*engine.Server, error) {
	return engine.New(c.simulation(i, version))
}

// simulation returns the configuration of package engine for server number i.
func (c Config) simulation(i int, version surface.Version) engine.Config {
	sim := engine.Config{
		Seed: c.Seed*1_000_003 + uint64(i), Model: c.model(), Engines: c.Engines, Lockstep: c.Lockstep,
		Blocks: c.KVCacheTokens / c.blockSize(), BlockSize: c.blockSize(), MaxSeqs: c.MaxSeqs, MaxModelLen: c.MaxModelLen,
		NoPrefixCaching: !c.prefixCaching(), FrontEnd: engine.DefaultFrontEnd(), FlopsCounters: c.FlopsCounters,
		Transfer: c.Transfer, Changes: c.changes(i), FollowBlocks: c.FollowBlocks, KeepOutcomes: true,
		Estimates:  c.estimates(surface.Dialect(c.Dialect), version),
		HostUptime: c.HostUptime.Seconds(), Semantics: semantics(surface.Dialect(c.Dialect), version),
	}
	if c.GPUs != nil {
		device := engine.H100()
		device.Affected = c.GPUs.Affected
		sim.Device = &device
	}
	if c.Journal != nil {
		sim.Journal = func(e engine.Event) { c.Journal(i, e.Later(c.origin, c.first)) }
	}
	if c.Tokens != nil {
		sim.Tokens = func(id, tokens int, at float64) { c.Tokens(i, id+c.first, tokens, at+c.origin) }
	}
	if c.FrontEnd != nil {
		sim.FrontEnd = *c.FrontEnd
	}
	if len(c.Weights) > 0 {
		sim.Router, sim.Weights = engine.RouteWeights, c.Weights
	}
	if c.Dialect == string(surface.V1MultiProcess) {
		sim.FrontEnd.Processes = c.APIServers
	}
	sim.Semantics.FirstTokenAtEnd = c.Priority
	sim.Speculation = c.speculation()
	sim.Workload = engine.Chat(c.Rate * float64(c.Engines))
	if c.small {
		sim.Workload.Prompt.Median = smallPrompt
	}
	sim.Workload.Swing, sim.Workload.Period = 0.6, c.Period.Seconds()
	if c.Workload != nil {
		sim.Workload = *c.Workload
	}
	switch w := &sim.Workload; {
	case len(c.Shares) == 0:
	case w.Traffic != nil || w.Clients > 0:
		total := sum(c.Shares)
		// The router is the same after a restart, though the seed of the new process is not.
		router := c.Seed - uint64(c.first/engine.ProcessIDs)<<restartShift
		w.Part = engine.Part{Seed: router, From: sum(c.Shares[:i]) / total, To: sum(c.Shares[:i+1]) / total}
		if i == len(c.Shares)-1 {
			w.Part.To = 1
		}
		if c.Shares[i] == 0 {
			w.Part = engine.Part{From: 2, To: 3} // No request has such a number.
		}
	default:
		// A Poisson process whose events go to one of several places at random is as
		// many independent Poisson processes.
		w.Rate *= c.Shares[i] / sum(c.Shares)
	}
	if c.LoRA {
		sim.MaxLoRAs = c.MaxLoRAs
		if sim.Workload.AdapterShare == 0 {
			sim.Workload.Adapters, sim.Workload.AdapterShare = 3, 0.7
		}
	}
	return sim
}

func (c Config) speculation() engine.Speculation {
	if !c.SpecDecode {
		return engine.Speculation{}
	}
	return engine.Speculation{Acceptance: []float64{0.75, 0.6, 0.5}, Seconds: 1e-3}
}

// model is what the configured hardware is.
func (c Config) model() engine.Model {
	if c.Measured != nil {
		return *c.Measured
	}
	return engine.Models()[c.Hardware]
}

// semantics are the defects of a version that act in what an engine observes; package
// surface has the others.
func semantics(dialect surface.Dialect, version surface.Version) engine.Semantics {
	shows := func(id catalog.DefectID) bool { return surface.Shows(dialect, version, id) }
	v0, rust := dialect == surface.V0 || dialect == surface.RayOld, dialect == surface.Rust
	return engine.Semantics{
		RecountBlocked:         shows(catalog.DefectCacheQueriesRecounted),
		RecountPreempted:       shows(catalog.DefectOwnBlocksFound),
		IterationWithCached:    shows(catalog.DefectStepTokensWithCached),
		ArrivalAfterTokenizing: !v0 && !rust && !shows(catalog.DefectArrivalTimeMoved),
		// The reason exists since v0.13; that the defect lasts is about validation.
		ErrorsUncounted:    !version.AtLeast("0.13.0"),
		UnguardedDurations: shows(catalog.DefectNegativeDurations),
		FirstWithoutToken:  shows(catalog.DefectFirstTokenWithoutToken),
		// Pauses and sleep tell the front end of what they abort since v0.17.
		EngineAbortsCounted: rust || version.AtLeast("0.17.0"),
		AbortsCounted:       rust && !shows(catalog.DefectClientAbortsUncounted),
		FrozenAfterAborts:   shows(catalog.DefectGaugesFreezeOnAbort),
		NullBlockUsed:       shows(catalog.DefectNullBlockUsed),
		ClientErrorsAs5xx:   shows(catalog.DefectClientErrorsAsServerErrors),
		StepPerProcess:      shows(catalog.DefectStepsSplitOverApiServers),
		ParamsPerChoice:     rust,
		AsyncHitsUncounted:  !version.AtLeast("0.12.0"),
		SessionPerChunk:     shows(catalog.DefectSessionsPerChunk),
		PromptPerChunk:      !version.AtLeast("0.20.0"),
		RequeuedSessions:    shows(catalog.DefectRequeuedSessions),
		LocalInExternal:     shows(catalog.DefectExternalHitsWrong),
	}
}

// estimates are by what vLLM's estimates of a model's work are wrong. The sizes are guesses,
// but for that of latent attention, which is the greatest that was reported.
func (c Config) estimates(dialect surface.Dialect, version surface.Version) engine.Estimates {
	e := engine.Estimates{Flops: 1, Weights: 1, KV: 1}
	switch {
	case !c.Quantized:
	case surface.Shows(dialect, version, catalog.DefectBytesOfQuantizedModels):
		e.Weights *= 0.5 // The method is one that has been known since then.
	case surface.Shows(dialect, version, catalog.DefectFlopsOfQuantizedModels):
		e = engine.Estimates{Flops: 0.05, Weights: 0.05, KV: 0}
	}
	if c.Latent && surface.Shows(dialect, version, catalog.DefectBytesOfMlaModels) {
		e.KV *= 57
	}
	if c.Hybrid && surface.Shows(dialect, version, catalog.DefectFlopsOfHybridModels) {
		e.Flops, e.Weights, e.KV = e.Flops*0.4, e.Weights*0.4, e.KV*0.4
	}
	return e
}

// prefixCaching reports whether the servers cache prefixes: the V0 engine did
// not unless asked to.
func (c Config) prefixCaching() bool {
	return c.Dialect != string(surface.V0) && c.Dialect != string(surface.RayOld)
}

const (
	defaultHardware = "8b-h100"
	// formerDefault was the name of a second, smaller model. It is read as the default.
	formerDefault = "simple"
)

// smallServer are the limits of a server whose hardware is not configured. They are
// low, so that a few requests per second keep it busy.
var smallServer = limits{kvTokens: 40960, modelLen: 8192, seqs: 48}

type limits struct{ kvTokens, modelLen, seqs int }

// smallPrompt is the median length of the prompts that such a server gets by default, in
// tokens: what its cache holds at the default rate.
const smallPrompt = 520

// checkModel completes what depends on the hardware.
func (c *Config) checkModel() error {
	preset := smallServer
	if c.Measured == nil && (c.Hardware == "" || c.Hardware == formerDefault) {
		c.Hardware, c.small = defaultHardware, true
	} else {
		if _, known := engine.Models()[c.Hardware]; !known && c.Measured == nil {
			return fmt.Errorf("unknown hardware %q: want one of %s", c.Hardware, strings.Join(Models(), ", "))
		}
		hardware := c.model()
		preset = limits{kvTokens: hardware.Blocks * blockSize, modelLen: 16384, seqs: cmp.Or(hardware.MaxSeqs, 1024)}
	}
	if c.Workload != nil && c.Workload.Traffic != nil && c.MaxModelLen == 0 {
		// One block is the null block, and drafted tokens can be beyond the end of a request.
		tokens := cmp.Or(c.KVCacheTokens, preset.kvTokens)/c.blockSize()*c.blockSize() - c.blockSize()
		c.MaxModelLen = c.Workload.Traffic.ModelLen(tokens - len(c.speculation().Acceptance))
	}
	for _, n := range []struct {
		field  *int
		preset int
	}{{&c.KVCacheTokens, preset.kvTokens}, {&c.MaxModelLen, preset.modelLen}, {&c.MaxSeqs, preset.seqs}} {
		if *n.field == 0 {
			*n.field = n.preset
		}
	}
	return nil
}

// checkShares checks the shares of servers behind one router.
func (c *Config) checkShares() error {
	if len(c.Shares) == 0 {
		return nil
	}
	for _, share := range c.Shares {
		if !(share >= 0 && share <= 1) {
			return fmt.Errorf("share %v of a server is not between 0 and 1", share)
		}
	}
	switch w := c.Workload; {
	case len(c.Shares) != max(1, c.Targets):
		return fmt.Errorf("%d shares for %d servers", len(c.Shares), max(1, c.Targets))
	case !(sum(c.Shares) > 0):
		return errors.New("of the shares of the servers at least one must be above 0")
	case w != nil && (w.Traffic != nil || w.Clients > 0): // Each request has its server.
	case w == nil || (w.CV != 0 && w.CV != 1) || w.BurstFactor > 0:
		return errors.New("shares of servers need a workload of independent arrivals, without variation or bursts of its own: " +
			"what each server gets would otherwise depend on what the others get")
	}
	return nil
}

func sum(values []float64) float64 {
	total := 0.0
	for _, v := range values {
		total += v
	}
	return total
}

// Semantics returns what servers of a dialect and a version observe otherwise than they
// should.
func Semantics(dialect, version string) (engine.Semantics, error) {
	parsed, err := surface.ParseVersion(version)
	if err != nil {
		return engine.Semantics{}, err
	}
	return semantics(surface.Dialect(dialect), parsed), surface.Check(surface.Dialect(dialect), parsed)
}

// Simulations returns the configurations of the simulated engines, one for each server.
func (c Config) Simulations() ([]engine.Config, error) {
	c, version, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	out := make([]engine.Config, c.Targets)
	for i := range out {
		out[i] = c.simulation(i, version)
	}
	return out, nil
}
