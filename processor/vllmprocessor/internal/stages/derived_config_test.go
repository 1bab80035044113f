package stages

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
)

// invalid returns what Check reports, by its keys.
func invalid(c *DerivedConfig) (all, keys []string) {
	c.Check(func(key, format string, args ...any) {
		keys = append(keys, key)
		all = append(all, key+": "+fmt.Sprintf(format, args...))
	})
	return all, keys
}

// A value at a limit is valid, and the next one beyond it is not.
func TestTheLimitsOfEachSettingAreInclusive(t *testing.T) {
	t.Parallel()
	const gpu = "H100-SXM"
	node := map[string]string{"k8s.node.name": "gpu-*"}
	numbers := Hardware{FLOPS: 989e12, MemoryBandwidth: 3.35e12}
	hardware := func(all ...Hardware) func(*DerivedConfig) { return func(c *DerivedConfig) { c.Hardware = all } }
	quantiles := func(all ...float64) func(*DerivedConfig) { return func(c *DerivedConfig) { c.Quantiles = all } }
	for name, test := range map[string]struct {
		change func(*DerivedConfig)
		want   []string
	}{
		"the default":           {func(*DerivedConfig) {}, nil},
		"quantiles 0 and 1":     {quantiles(0, 1), nil},
		"below 0":               {quantiles(-0.001), []string{"quantiles::0"}},
		"above 1":               {quantiles(0.5, 1.001), []string{"quantiles::1"}},
		"no number":             {quantiles(math.NaN()), []string{"quantiles::0"}},
		"mean_constrained":      {func(c *DerivedConfig) { c.Percentiles.Interpolation = MeanConstrained }, nil},
		"another interpolation": {func(c *DerivedConfig) { c.Percentiles.Interpolation = "" }, []string{"percentiles::interpolation"}},
		"detailed":              {func(c *DerivedConfig) { c.Percentiles.Detailed = true }, nil},
		"detailed, no quantiles": {
			func(c *DerivedConfig) { c.Percentiles.Detailed, c.Quantiles = true, nil },
			[]string{"percentiles::detailed"},
		},
		"a gpu":                  {hardware(Hardware{GPU: gpu}), nil},
		"an unknown gpu":         {hardware(Hardware{GPU: "abacus"}), []string{"hardware::0"}},
		"a gpu with a dtype":     {hardware(Hardware{GPU: gpu, DType: "fp8"}), nil},
		"a gpu with flops":       {hardware(Hardware{GPU: gpu, FLOPS: 1e12}), []string{"hardware::0"}},
		"a gpu with bandwidth":   {hardware(Hardware{GPU: gpu, MemoryBandwidth: 1e12}), []string{"hardware::0"}},
		"numbers":                {hardware(numbers), nil},
		"flops alone":            {hardware(Hardware{FLOPS: 1e12}), nil},
		"bandwidth alone":        {hardware(Hardware{MemoryBandwidth: 1e12}), nil},
		"nothing":                {hardware(Hardware{}), []string{"hardware::0"}},
		"numbers with a dtype":   {hardware(Hardware{FLOPS: 1e12, DType: "fp8"}), []string{"hardware::0::dtype"}},
		"least flops":            {hardware(Hardware{FLOPS: 1e10}), nil},
		"too small flops":        {hardware(Hardware{FLOPS: 0.99e10}), []string{"hardware::0::flops"}},
		"least bandwidth":        {hardware(Hardware{MemoryBandwidth: 1e9}), nil},
		"too small bandwidth":    {hardware(Hardware{MemoryBandwidth: 0.99e9}), []string{"hardware::0::memory_bandwidth"}},
		"flops of no number":     {hardware(Hardware{FLOPS: math.NaN()}), []string{"hardware::0::flops"}},
		"infinite flops":         {hardware(Hardware{FLOPS: math.Inf(1)}), []string{"hardware::0::flops"}},
		"negative flops":         {hardware(Hardware{FLOPS: -1e12}), []string{"hardware::0::flops"}},
		"a match":                {hardware(Hardware{Match: node, GPU: gpu}), nil},
		"a match without a name": {hardware(Hardware{Match: map[string]string{"": "a"}, GPU: gpu}), []string{"hardware::0::match"}},
		"an empty pattern":       {hardware(Hardware{Match: map[string]string{"a": ""}, GPU: gpu}), []string{"hardware::0::match"}},
		"a match, then all":      {hardware(Hardware{Match: node, GPU: gpu}, numbers), nil},
		"two matches":            {hardware(Hardware{Match: node, GPU: gpu}, Hardware{Match: node, GPU: gpu}), nil},
		"all, then a match":      {hardware(numbers, Hardware{Match: node, GPU: gpu}), []string{"hardware::0"}},
		"all in the middle": {
			hardware(Hardware{Match: node, GPU: gpu}, numbers, Hardware{Match: node, GPU: gpu}, numbers),
			[]string{"hardware::1"},
		},
	} {
		c := DefaultDerivedConfig()
		test.change(&c)
		_, keys := invalid(&c)
		assert.Equal(t, test.want, keys, name)
	}
}

// A quantile in percent is reported with the number to write instead; beyond 100 it cannot
// be meant as a percentage.
func TestAQuantileInPercentIsReportedWithTheShare(t *testing.T) {
	t.Parallel()
	c := DefaultDerivedConfig()
	c.Quantiles = []float64{95, 100, 100.1, 0.5, 0.5}
	all, _ := invalid(&c)
	assert.Equal(t, []string{
		"quantiles::0: 95 is not from 0 to 1; write 0.95 for p95",
		"quantiles::1: 100 is not from 0 to 1; write 1 for p100",
		"quantiles::2: 100.1 is not from 0 to 1; write for example 0.95",
		"quantiles::4: 0.5 is there twice; remove one",
	}, all)
	c = DefaultDerivedConfig()
	c.Hardware = []Hardware{{FLOPS: 1e12}, {FLOPS: 1e12}}
	all, _ = invalid(&c)
	assert.Equal(t, []string{"hardware::0: has no match, so hardware::1 is never used; write the entry without match last"}, all)
}

// The configuration is that of the stage.
func TestTheStageTakesItsConfiguration(t *testing.T) {
	t.Parallel()
	p := &Processor{Enabled: func(metric string) bool { return metric == "vllm.prompt_throughput" }}
	for interpolation, want := range map[Interpolation]bool{Linear: false, MeanConstrained: true} {
		c := DefaultDerivedConfig()
		c.Percentiles.Interpolation, c.Percentiles.PerEngine = interpolation, want
		s, err := NewDerived(&c, p)
		if assert.NoError(t, err) {
			assert.Equal(t, want, s.settings.MeanConstrained)
			assert.Equal(t, want, s.settings.PerEngineQuantiles)
			assert.Len(t, s.settings.Quantiles, 3)
			assert.True(t, s.Derives("vllm.prompt_throughput") && s.Derives("vllm.generation_throughput"), "also what is switched off")
			assert.False(t, s.Derives("vllm.diagnosis.condition"))
		}
	}
	c := DefaultDerivedConfig()
	c.Hardware = []Hardware{{GPU: "abacus"}}
	_, err := NewDerived(&c, p)
	assert.ErrorContains(t, err, "hardware::0")
}
