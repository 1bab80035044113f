package scenario

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim"
)

// expectationsOfGPUs are those of files about GPUs: what users feel, and what the exporter
// shows.
var expectationsOfGPUs = map[string]func(s *story){
	"gpu-power-cap": func(s *story) {
		slower(s, 1.3)
		g := exporter(s, during)
		assert.InDelta(s.t, 540, g.increase("DCGM_FI_DEV_POWER_VIOLATION")/1e9, 30, "nearly all the time")
		assert.Zero(s.t, g.increase("DCGM_FI_DEV_THERMAL_VIOLATION"))
		assert.LessOrEqual(s.t, g.increase("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION")/1000/540, 175.1, "the mean power")
		clean(s, before)
	},
	"gpu-hot": func(s *story) {
		slower(s, 1.5)
		g := exporter(s, during)
		assert.Greater(s.t, g.increase("DCGM_FI_DEV_THERMAL_VIOLATION")/1e9, 450.0)
		assert.Zero(s.t, g.increase("DCGM_FI_DEV_POWER_VIOLATION"))
		assert.InDelta(s.t, 83, g.to.sum("DCGM_FI_DEV_GPU_TEMP"), 3)
		clean(s, before)
	},
	"gpu-memory-errors": func(s *story) {
		slower(s, 1.3)
		g := exporter(s, during)
		assert.InDelta(s.t, 540*0.5/15, g.increase("DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS")+g.increase("DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS"), 3)
		assert.Positive(s.t, g.increase("DCGM_FI_DEV_ECC_SBE_VOL_TOTAL"))
		assert.InDelta(s.t, 63, g.to.sum("DCGM_FI_DEV_XID_ERRORS"), 0)
		clean(s, before)
	},
	"gpu-link-errors": func(s *story) {
		slower(s, 1.3)
		g := exporter(s, during)
		assert.Positive(s.t, g.increase("DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL"))
		assert.Zero(s.t, g.to.sum("DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL", `gpu="1"`)+g.to.sum("DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL", `gpu="3"`))
		clean(s, before)
	},
	"gpu-clocks-low": func(s *story) {
		slower(s, 1.5)
		g := exporter(s, during)
		assert.InDelta(s.t, 0.25*1980, g.to.sum("DCGM_FI_DEV_SM_CLOCK"), 1)
		assert.InDelta(s.t, 1980, g.to.sum("DCGM_FI_DEV_MAX_SM_CLOCK"), 0)
		assert.Zero(s.t, g.increase("DCGM_FI_DEV_POWER_VIOLATION")+g.increase("DCGM_FI_DEV_THERMAL_VIOLATION"))
		clean(s, before)
	},
	"gpu-clean": func(s *story) {
		slower(s, 1.5)
		clean(s, before)
		clean(s, during)
		assert.InDelta(s.t, 1980, exporter(s, during).to.sum("DCGM_FI_DEV_SM_CLOCK"), 0)
	},
	"gpu-throttled-before": func(s *story) {
		late := part{780, 1200}
		assert.Greater(s.t, s.mean(late, gap), 1.5*s.undisturbed().mean(late, gap))
		clean(s, late)
		assert.Greater(s.t, exporter(s, part{300, 420}).increase("DCGM_FI_DEV_POWER_VIOLATION")/1e9, 60.0)
		assert.InEpsilon(s.t, s.undisturbed().mean(part{300, 420}, gap), s.mean(part{300, 420}, gap), 0.2, "users do not notice")
	},
	"gpu-no-counters": func(s *story) {
		slower(s, 1.5)
		assert.NotContains(s.t, exporter(s, during).families, "DCGM_FI_DEV_POWER_VIOLATION")
	},
	"gpu-shared":    sharedByTwo,
	"gpu-partition": sharedByTwo,
	"gpu-exporter-restarts": func(s *story) {
		slower(s, 1.3)
		g := exporter(s, part{660, 1200})
		assert.InDelta(s.t, 540, g.increase("DCGM_FI_DEV_POWER_VIOLATION")/1e9, 30)
	},
	"gpu-amd": func(s *story) {
		slower(s, 1.3)
		g := exporter(s, during)
		assert.InDelta(s.t, 1, g.increase("amd_gpu_violation_ppt_residency_accumulated")/g.increase("amd_gpu_violation_current_accumulated_counter"), 0.1)
	},
}

// slower holds that users feel it while it lasts, and not after.
func slower(s *story, times float64) {
	s.t.Helper()
	undisturbed := s.undisturbed()
	assert.Greater(s.t, s.mean(during, gap), times*undisturbed.mean(during, gap))
	assert.InEpsilon(s.t, undisturbed.mean(before, gap), s.mean(before, gap), 0.01)
	assert.InEpsilon(s.t, undisturbed.mean(after, gap), s.mean(after, gap), 0.1)
}

// sharedByTwo has each number twice.
func sharedByTwo(s *story) {
	slower(s, 1.3)
	g := exporter(s, during)
	assert.InDelta(s.t, 2*540, g.increase("DCGM_FI_DEV_POWER_VIOLATION")/1e9, 60, "for both pods")
	assert.InDelta(s.t, 540, g.of(`pod="embeddings-0"`).increase("DCGM_FI_DEV_POWER_VIOLATION")/1e9, 30)
}

// shown is what the exporter showed at the beginning and the end of a part of a story.
type shown struct {
	from, to page
	label    string
	families map[string]bool
}

func (g shown) of(label string) shown { g.label = label; return g }

func (g shown) increase(family string) float64 {
	var labels []string
	if g.label != "" {
		labels = []string{g.label}
	}
	return g.to.sum(family, labels...) - g.from.sum(family, labels...)
}

// clean holds that no error or violation was counted.
func clean(s *story, p part) {
	s.t.Helper()
	g := exporter(s, p)
	for _, family := range []string{
		"DCGM_FI_DEV_POWER_VIOLATION", "DCGM_FI_DEV_THERMAL_VIOLATION", "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS",
		"DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL", "DCGM_FI_DEV_PCIE_REPLAY_COUNTER",
	} {
		assert.Zero(s.t, g.increase(family), family)
	}
}

// exporter plays the scenario once more and asks the exporter of its first server.
func exporter(s *story, p part) shown {
	s.t.Helper()
	config := s.scenario.Config
	config.Start = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	server, err := vllmsim.New(config)
	require.NoError(s.t, err)
	g := shown{families: map[string]bool{}}
	server.Advance(time.Duration(p.from) * time.Second)
	body, _, err := server.Exporters()[0].Body()
	require.NoError(s.t, err)
	g.from = read(s.t, body)
	server.Advance(time.Duration(p.to-p.from) * time.Second)
	body, _, err = server.Exporters()[0].Body()
	require.NoError(s.t, err)
	g.to = read(s.t, body)
	for series := range g.to {
		name, _, _ := strings.Cut(series, "{")
		g.families[name] = true
	}
	return g
}

// Each file about GPUs has them, and no other file has.
func TestOnlyFilesOfGPUsHaveThem(t *testing.T) {
	for name := range expectations {
		s, err := Load(folder + "/" + name + ".yaml")
		require.NoError(t, err)
		assert.Nil(t, s.Config.GPUs, name)
	}
	for name := range expectationsOfGPUs {
		s, err := Load(folder + "/" + name + ".yaml")
		require.NoError(t, err)
		assert.NotNil(t, s.Config.GPUs, name)
	}
}

func TestGPUsThatCannotBeAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		"gpus: {exporter: intel}":                         "unknown exporter",
		"gpus: {families: [all]}":                         "unknown families",
		"gpus: {exporter: amd, sharing: mig}":             "simulated for dcgm only",
		"gpus: {away: [{at: 5m}]}":                        "want at and until",
		"gpus: {away: [{at: 5m, until: 4m}]}":             "the later one second",
		"changes: [{at: 1m, set: {cooling: 0.5}}]":        "add gpus, which can be {}",
		"changes: [{at: 1m, effect: {memory_errors: 2}}]": "add gpus",
	} {
		_, err := parse("f.yaml", []byte("about: x\nlength: 10m\nworkload: {rate: 1}\n"+text+"\n"))
		assert.ErrorContains(t, err, want, text)
	}
}
