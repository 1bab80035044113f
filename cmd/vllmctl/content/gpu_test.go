package content_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// gpusFired are the alerts about GPUs of a story of an hour and a half.
func gpusFired(t *testing.T, story ...series) []firing {
	t.Helper()
	return newPlayer(t, "vllm-gpu").play(90*minute, time.Minute, append(story, constant(`vllm_up{job="vllm",instance="a"}`, 1))...)
}

func TestAServerThatAGPUSlowsIsReported(t *testing.T) {
	cause := func(cause, detail string, v float64) series {
		return constant(fmt.Sprintf(`vllm_diagnosis_cause{job="vllm",instance="a",engine="0",model_name="m",role="primary",cause=%q,detail=%q}`, cause, detail), v)
	}
	for _, detail := range []string{"power_cap", "thermal", "memory_error", "interconnect", "clocks_low"} {
		assert.Equal(t, []string{"VLLMGPUSlowsServer"}, names(gpusFired(t, cause("slow_steps", detail, 1))), detail)
	}
	assert.Empty(t, gpusFired(t, cause("slow_steps", "not_throttled", 1), cause("slow_steps", "since_version", 1), cause("slow_steps", "", 1)))
	assert.Empty(t, gpusFired(t, cause("slow_steps", "thermal", 0)), "it is over")
	assert.Empty(t, gpusFired(t, until(4*minute, cause("slow_steps", "thermal", 1))), "too short")
}

func TestOnlyNewUncorrectedErrorsOfMemoryAreReported(t *testing.T) {
	const card = `job="dcgm-exporter",instance="node-a:9400",k8s_pod_name="vllm-0",hw_id="GPU-1",hw_name="gpu0"`
	// step is a counter that changes once.
	step := func(name string, before, after float64) series {
		return series{name, func(at time.Duration) float64 {
			if at < 20*minute {
				return before
			}
			return after
		}}
	}
	rows := func(kind string, before, after float64) series {
		return step(fmt.Sprintf(`vllm_accelerator_row_remap_rows_total{%s,error_type=%q}`, card, kind), before, after)
	}
	assert.Equal(t, []string{"VLLMGPUMemoryErrors"}, names(gpusFired(t, rows("uncorrected", 2, 3))))
	assert.Empty(t, gpusFired(t, rows("uncorrected", 2, 2)), "they are old")
	assert.Empty(t, gpusFired(t, rows("corrected", 0, 5)), "the memory repaired itself")
	errors := step(`hw_errors_total{`+card+`,error_type="uncorrected"}`, 0, 1)
	assert.Equal(t, []string{"VLLMGPUMemoryErrors"}, names(gpusFired(t, errors)))
	assert.Equal(t, []string{"VLLMGPUMemoryErrors"}, names(gpusFired(t, constant(`vllm_accelerator_row_remap_failed{`+card+`}`, 1))))
	assert.Empty(t, gpusFired(t, constant(`vllm_accelerator_row_remap_failed{`+card+`}`, 0)))
}

// An exporter reports several resources: one is enough for it not to be silent.
func TestAnExporterThatIsNotReadAnyMoreIsReported(t *testing.T) {
	read := func(instance, pod string) series {
		return constant(fmt.Sprintf(`vllm_accelerator_workloads{job="dcgm-exporter",instance=%q,k8s_pod_name=%q,hw_id="GPU-1",hw_name="gpu0"}`, instance, pod), 1)
	}
	assert.Empty(t, gpusFired(t, read("a:9400", "vllm-0"), until(20*minute, read("a:9400", "vllm-1"))), "another pod uses the GPU")
	fired := gpusFired(t, read("a:9400", "vllm-0"), until(20*minute, read("b:9400", "vllm-1")))
	assert.Equal(t, []string{"VLLMGPUExporterSilent"}, names(fired))
	assert.Contains(t, fired[0].labels, `instance="b:9400"`)
	assert.Empty(t, newPlayer(t, "vllm-gpu").play(90*minute, time.Minute, until(20*minute, read("b:9400", "vllm-1")), until(20*minute, constant(`vllm_up{job="vllm",instance="a"}`, 1))),
		"no collector sends: VLLMCollectorSilent")
}
