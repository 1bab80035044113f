package gpu

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestEveryRowIsPlausible(t *testing.T) {
	for _, peak := range table {
		t.Run(peak.Name, func(t *testing.T) {
			assert.NotEmpty(t, peak.Source)
			assert.Greater(t, peak.FP16, 50e12)
			assert.Less(t, peak.FP16, 3000e12)
			assert.Greater(t, peak.MemoryBandwidth, 0.25e12)
			assert.Less(t, peak.MemoryBandwidth, 10e12)
			// What a matrix unit does in 16 bits it does alike in both formats, where
			// it has both, and twice as often each time the type is halved.
			if peak.BF16 > 0 {
				assert.Equal(t, peak.FP16, peak.BF16)
			}
			if peak.FP8 > 0 {
				assert.InEpsilon(t, 2*peak.FP16, peak.FP8, 0.02)
			}
			if peak.FP4 > 0 {
				assert.InEpsilon(t, 2*peak.FP8, peak.FP4, 0.02)
			}
			// Operations for each byte moved: a slip by a factor of ten would show.
			assert.Greater(t, peak.FP16/peak.MemoryBandwidth, 100.0)
			assert.Less(t, peak.FP16/peak.MemoryBandwidth, 500.0)
		})
	}
}

// The peaks follow from the chips: units x operations per clock x boost clock.
func TestPeaksFollowFromTheChips(t *testing.T) {
	for name, test := range map[string]struct {
		units, operations float64 // multiprocessors; FP16 operations of one per clock, dense
		clock             float64 // Hz
	}{
		"V100-SXM":      {80, 1024, 1.53e9},
		"T4":            {40, 1024, 1.59e9},
		"A100-SXM-80GB": {108, 2048, 1.41e9},
		"A10":           {72, 1024, 1.695e9},
		"L4":            {58, 1024, 2.04e9},
		"L40S":          {142, 1024, 2.52e9},
		"H100-PCIe":     {114, 4096, 1.62e9},
		"H100-SXM":      {132, 4096, 1.83e9},
		"MI300X":        {304, 2048, 2.1e9},
	} {
		t.Run(name, func(t *testing.T) {
			peak, ok := Lookup(name)
			require.True(t, ok)
			assert.InEpsilon(t, test.units*test.operations*test.clock, peak.FP16, 0.02)
		})
	}
}

func TestEachSpellingMeansOneGPU(t *testing.T) {
	owners := map[string]string{}
	for _, peak := range table {
		for _, name := range append([]string{peak.Name}, peak.aliases...) {
			if owner, ok := owners[key(name)]; ok {
				assert.Equal(t, owner, peak.Name, "%s", name)
			}
			owners[key(name)] = peak.Name
			found, ok := Lookup(name)
			require.True(t, ok, "%s", name)
			assert.Equal(t, peak.Name, found.Name, "%s", name)
		}
	}
	assert.Len(t, Names(), len(table))
}

func TestLookupUnderstandsLabelsAndDriverNames(t *testing.T) {
	for name, want := range map[string]string{
		"NVIDIA-H100-80GB-HBM3":        "H100-SXM",
		"NVIDIA H100 80GB HBM3":        "H100-SXM",
		"h100_sxm5":                    "H100-SXM",
		"H100 SXM":                     "H100-SXM",
		"NVIDIA-H100-80GB-HBM3-SHARED": "H100-SXM",
		"NVIDIA-H100-PCIe":             "H100-PCIe",
		"NVIDIA-H100-NVL":              "H100-NVL",
		"NVIDIA-H200":                  "H200-SXM",
		"NVIDIA-H200-NVL":              "H200-NVL",
		"NVIDIA-A100-SXM4-80GB":        "A100-SXM-80GB",
		"A100-SXM4-40GB":               "A100-SXM-40GB",
		"NVIDIA-A100-80GB-PCIe":        "A100-PCIe-80GB",
		"A100-80GB-SXM":                "A100-SXM-80GB",
		"NVIDIA-L4":                    "L4",
		"nvidia l40s":                  "L40S",
		"NVIDIA-A10G":                  "A10G",
		"Tesla-T4":                     "T4",
		"Tesla-V100-SXM2-16GB":         "V100-SXM",
		"NVIDIA B200":                  "B200",
		"NVIDIA-GB200":                 "GB200",
		"AMD Instinct MI300X":          "MI300X",
		"AMD_Instinct_MI325X_OAM":      "MI325X",
	} {
		peak, ok := Lookup(name)
		assert.True(t, ok, name)
		assert.Equal(t, want, peak.Name, name)
	}
}

func TestLookupRefusesToGuess(t *testing.T) {
	for _, name := range []string{
		"", "NVIDIA", "H100", "A100", "A100-80GB", "V100",
		"NVIDIA-H20", "NVIDIA-H800", "NVIDIA-GH200-480GB", "NVIDIA-L40",
		"NVIDIA-A100-SXM4-40GB-MIG-1g.5gb", "NVIDIA-H100-80GB-HBM3-MIG-3g.40gb",
	} {
		_, ok := Lookup(name)
		assert.False(t, ok, "%q", name)
	}
}

func TestFLOPSByType(t *testing.T) {
	h100, _ := Lookup("H100-SXM")
	for dtype, want := range map[string]float64{
		"bf16": 989.5e12, "bfloat16": 989.5e12, "FP16": 989.5e12, "half": 989.5e12, "fp8": 1979e12, "fp8_e4m3": 1979e12,
	} {
		flops, ok := h100.FLOPS(dtype)
		assert.True(t, ok, dtype)
		assert.Equal(t, want, flops, dtype)
	}
	for _, dtype := range []string{"fp4", "auto", "", "int8"} {
		_, ok := h100.FLOPS(dtype)
		assert.False(t, ok, dtype)
	}
	t4, _ := Lookup("T4")
	assert.Equal(t, []string{"fp16"}, t4.DTypes(), "Turing has neither bf16 nor fp8")
}

func TestNewRuleSaysWhatToWrite(t *testing.T) {
	rule, err := NewRule(map[string]string{"host.name": "a"}, "h100-sxm", "fp8")
	require.NoError(t, err)
	assert.Equal(t, Rule{Match: map[string]string{"host.name": "a"}, FLOPS: 1979e12, MemoryBandwidth: 3.35e12}, rule)

	_, err = NewRule(nil, "H100", "bf16")
	assert.ErrorContains(t, err, "H100-PCIe, H100-SXM, H100-NVL")
	_, err = NewRule(nil, "A100-SXM-80GB", "fp8")
	assert.ErrorContains(t, err, "write one of bf16, fp16")
}

func TestTheFirstMatchingRuleCounts(t *testing.T) {
	rules := []Rule{
		{Match: map[string]string{"k8s.node.name": "gpu-a-*", "k8s.cluster.name": "east"}, FLOPS: 1},
		{Match: map[string]string{"k8s.node.name": "gpu-*"}, FLOPS: 2},
		{Match: map[string]string{"service.name": "registry/team/*"}, FLOPS: 3},
		{FLOPS: 4},
	}
	for name, test := range map[string]struct {
		attributes map[string]string
		want       float64
	}{
		"all patterns match":       {map[string]string{"k8s.node.name": "gpu-a-7", "k8s.cluster.name": "east"}, 1},
		"one of two does not":      {map[string]string{"k8s.node.name": "gpu-a-7", "k8s.cluster.name": "west"}, 2},
		"an attribute is missing":  {map[string]string{"k8s.node.name": "gpu-a-7"}, 2},
		"a star covers a slash":    {map[string]string{"service.name": "registry/team/llama/70b"}, 3},
		"nothing matches but all":  {map[string]string{"k8s.node.name": "cpu-1"}, 4},
		"no attributes whatsoever": {nil, 4},
	} {
		t.Run(name, func(t *testing.T) {
			rule, ok := Match(test.attributes, rules)
			require.True(t, ok)
			assert.Equal(t, test.want, rule.FLOPS)
		})
	}
	_, ok := Match(map[string]string{"k8s.node.name": "cpu-1"}, rules[:3])
	assert.False(t, ok)
	_, ok = Match(nil, []Rule{{Match: map[string]string{"k8s.node.name": "*"}}})
	assert.False(t, ok, "an absent attribute has no value to match")
}

func FuzzLookup(f *testing.F) {
	for _, peak := range table {
		f.Add(peak.Name, "gpu-*")
	}
	f.Add("NVIDIA-A100-SXM4-40GB-MIG-1g.5gb", "**?*")
	f.Fuzz(func(t *testing.T, name, pattern string) {
		if peak, ok := Lookup(name); ok && peak.Name == "" {
			t.Fatalf("%q has no name", name)
		}
		if strings.Contains(strings.ToLower(name), "mig") {
			if _, ok := Lookup(name); ok {
				t.Fatalf("%q is a part of a GPU", name)
			}
		}
		_, fits := Match(map[string]string{"name": name}, []Rule{{Match: map[string]string{"name": pattern}}})
		if !strings.ContainsAny(pattern, "*?") && fits != (pattern == name) {
			t.Fatalf("%q and %q", pattern, name)
		}
	})
}
