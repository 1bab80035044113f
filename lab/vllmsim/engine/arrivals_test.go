package engine

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/internal/test/race"
)

// drawn returns all requests up to t.
func drawn(w Workload, seed uint64, t float64, change ...func(*values)) []*request {
	a, v := newArrivals(seed, w, 16384), nominalValues()
	for _, c := range change {
		c(&v)
	}
	a.set(0, v[ParamArrivalRate])
	return take(a, &v, t)
}

// take returns the requests before t.
func take(a *arrivals, v *values, t float64) (out []*request) {
	for a.at < t {
		if r := a.take(v); r != nil {
			out = append(out, r)
		}
	}
	return out
}

func TestDistancesBetweenArrivalsHaveTheirMeanAndVariation(t *testing.T) {
	race.SkipSequential(t)
	for _, cv := range []float64{0.5, 1, 2, 3} {
		w := fixed(10, 100, 10)
		w.CV = cv
		sum, squares, last := 0.0, 0.0, 0.0
		requests := drawn(w, 3, 20_000)
		for _, r := range requests {
			gap := r.arrived - last
			last = r.arrived
			sum += gap
			squares += gap * gap
		}
		n := float64(len(requests))
		m := sum / n
		assert.InEpsilon(t, 0.1, m, 0.03, "CV %v", cv)
		assert.InEpsilon(t, cv, math.Sqrt(squares/n-m*m)/m, 0.03, "CV %v", cv)
	}
}

func TestTheRateFollowsItsWaveAndItsBursts(t *testing.T) {
	race.SkipSequential(t)
	w := fixed(10, 100, 10)
	w.Swing, w.Period = 0.5, 86400
	count := func(requests []*request, from, to float64) (n float64) {
		for _, r := range requests {
			if r.arrived >= from && r.arrived < to {
				n++
			}
		}
		return n
	}
	day := drawn(w, 1, 86400)
	assert.InEpsilon(t, 864_000, len(day), 0.01)
	assert.InEpsilon(t, 15*3600, count(day, 6*3600-1800, 6*3600+1800), 0.03, "a quarter of the wave is its top")
	assert.InEpsilon(t, 5*3600, count(day, 18*3600-1800, 18*3600+1800), 0.03)

	w = fixed(10, 100, 10)
	w.BurstFactor, w.BurstEvery, w.BurstSeconds = 4, 100, 20
	// Of 120 s in the mean 20 have four times the rate.
	assert.InEpsilon(t, 10*(100.0+20*4)/120, float64(len(drawn(w, 1, 50_000)))/50_000, 0.05)
}

func TestLengthsHaveTheirMedians(t *testing.T) {
	for name, c := range map[string]struct {
		w              Workload
		prompt, output float64
	}{"chat": {Chat(10), 1020, 129}, "code": {Code(10), 1500, 13}} {
		below, short, n := 0, 0, 0
		for _, r := range drawn(c.w, 2, 5000) {
			n++
			if float64(r.prompt) < c.prompt {
				below++
			}
			if float64(r.output) < c.output {
				short++
			}
			require.LessOrEqual(t, r.prompt+r.output, 16384)
			require.LessOrEqual(t, r.shared, r.prompt)
			require.Positive(t, r.stopAt)
		}
		assert.InDelta(t, 0.5, float64(below)/float64(n), 0.01, name)
		assert.InDelta(t, 0.5, float64(short)/float64(n), 0.02, name)
	}
}

func TestRunsThatDifferInOneThingHaveTheSameRequests(t *testing.T) {
	base := drawn(Chat(10), 5, 300)
	longer := drawn(Chat(10), 5, 300, func(v *values) { v[ParamOutputLength], v[ParamPrefixPool] = 2, 1e5 })
	require.Len(t, longer, len(base))
	doubled, found := 0, map[int]int{}
	for i, r := range longer {
		assert.InDelta(t, base[i].arrived, r.arrived, 0)
		assert.Equal(t, base[i].prompt, r.prompt)
		if math.Abs(float64(r.output-2*base[i].output)) <= 1 {
			doubled++
		}
		if r.prefix >= 0 {
			found[r.prefix]++
		}
	}
	assert.Greater(t, doubled, len(base)*8/10, "the rest met max_tokens")
	assert.Greater(t, len(found), len(base)*4/10, "hardly two share a beginning")
}

func TestClientsLosePatienceAfterTheirArrival(t *testing.T) {
	w := Chat(10)
	w.LeaveEarly, w.Patience, w.Refused = 1, 3, 0
	sum, n := 0.0, 0.0
	for _, r := range drawn(w, 1, 1000) {
		require.True(t, r.impatient)
		sum += r.leaves - r.arrived
		n++
	}
	assert.InEpsilon(t, 3, sum/n, 0.05)
}

func TestWithoutArrivalsNothingMoves(t *testing.T) {
	s := start(t, bare(Workload{Prompt: Lengths{1, 0}, Output: Lengths{1, 0}}, func(c *Config) {
		c.Changes = []Change{{At: 100, Parameter: ParamArrivalRate, Value: 2}}
	}))
	s.AdvanceTo(1000)
	assert.Zero(t, s.Stats()[0].FirstToken.Count)
	assert.Len(t, s.Injected(), 1)
	assert.InDelta(t, 1000, s.Now(), 0)
}

func TestMistakenSettingsAreNamed(t *testing.T) {
	for want, change := range map[string]func(*Config){
		"cannot hold one request":     func(c *Config) { c.Blocks = 100 },
		"one request of 1024":         func(c *Config) { c.Blocks, c.MaxModelLen, c.Speculation.Acceptance = 65, 1024, []float64{1} },
		"rates, efficiencies":         func(c *Config) { c.Model = Model{Blocks: 10_000} },
		"below 0":                     func(c *Config) { c.MaxSeqs = -1 },
		"engines: 65":                 func(c *Config) { c.Engines = 65 },
		"model length 8":              func(c *Config) { c.MaxModelLen = 8 },
		"drafted tokens":              func(c *Config) { c.Speculation.Acceptance = make([]float64, 17) },
		"fewer than one sequence":     func(c *Config) { c.Speculation.Acceptance, c.MaxBatchedTokens = make([]float64, 4), 4 },
		"acceptance 2":                func(c *Config) { c.Speculation.Acceptance = []float64{2} },
		"LoRA slots":                  func(c *Config) { c.MaxLoRAs = 64 },
		"transfers need":              func(c *Config) { c.Transfer.Share = 1 },
		"0 weights for 1":             func(c *Config) { c.Router = RouteWeights },
		"arrival rate":                func(c *Config) { c.Workload.Rate = math.NaN() },
		"swing 2":                     func(c *Config) { c.Workload.Swing = 2 },
		"period 0":                    func(c *Config) { c.Workload.Swing = 0.5 },
		"bursts need":                 func(c *Config) { c.Workload.BurstFactor = 2 },
		"median":                      func(c *Config) { c.Workload.Prompt.Median = 0 },
		"share 1.5":                   func(c *Config) { c.Workload.LeaveLate = 1.5 },
		"patience":                    func(c *Config) { c.Workload.LeaveEarly, c.Workload.Patience = 0.1, 0 },
		"shared prefixes":             func(c *Config) { c.Workload.Prefixes = 0 },
		"max_tokens -1":               func(c *Config) { c.Workload.MaxTokens = []int{-1} },
		"adapters: 64":                func(c *Config) { c.Workload.Adapters = 64 },
		"order of their times":        func(c *Config) { c.Changes = []Change{{At: 2, Value: 1}, {At: 1, Value: 1}} },
		"0 is not between 0.01":       func(c *Config) { c.Changes = []Change{{Parameter: ParamClock}} },
		"there is no engine 1":        func(c *Config) { c.Changes = []Change{{Value: 1, Engines: []int{1}}} },
		"belongs to the whole":        func(c *Config) { c.Changes = []Change{{Parameter: ParamErrorRate, Engines: []int{0}}} },
		"unknown parameter 99":        func(c *Config) { c.Changes = []Change{{Parameter: 99}} },
		"sleep at 0 s: 3 is not":      func(c *Config) { c.Changes = []Change{{Parameter: ParamSleep, Value: 3}} },
		"error_rate at 0 s: 2 is not": func(c *Config) { c.Changes = []Change{{Parameter: ParamErrorRate, Value: 2}} },
	} {
		_, err := New(bare(Chat(1), change))
		assert.ErrorContains(t, err, want)
	}
}

func TestParametersHaveNamesOfTheirOwn(t *testing.T) {
	for p := range ParameterCount {
		got, err := ParseParameter(p.String())
		require.NoError(t, err)
		assert.Equal(t, p, got)
	}
	assert.True(t, ParamPromptLength.Workload())
	assert.False(t, ParamFrontEnd.Workload())
	assert.False(t, ParamErrorRate.Workload())
	_, err := ParseParameter("temperature")
	assert.ErrorContains(t, err, "unknown parameter")
	assert.Equal(t, "parameter 99", Parameter(99).String())
}

func TestThePackageAsksNoClock(t *testing.T) {
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		source, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, never := range []string{"\"time\"", "\"net", "\"os\"", "go func", "math/rand\""} {
			assert.NotContains(t, string(source), never, file)
		}
	}
}
