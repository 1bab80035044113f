package scenario

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim"
)

const measurements = `gpu,model,tp,dtype,component,x,y,ms
A100-80G-SXM,Llama-3.1-8B,1,bf16,gemm,1,,9
A100-80G-SXM,Llama-3.1-8B,1,bf16,gemm,8192,,435
A100-80G-SXM,Llama-3.1-8B,1,bf16,lm_head,1,,1
A100-80G-SXM,Llama-3.1-8B,1,bf16,decode_attention,1,1000,1
A100-80G-SXM,Llama-3.1-8B,1,bf16,prefill_attention,1000,0,4
B999,Moon-1T,1,bf16,gemm,1,,9
B999,Moon-1T,1,bf16,lm_head,1,,1
B999,Moon-1T,1,bf16,decode_attention,1,1000,1
B999,Moon-1T,1,bf16,prefill_attention,1000,0,4
`

// The file is in the folder of the scenario, whatever the working directory.
func TestAProfileReplacesTheHardware(t *testing.T) {
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "times.csv"), []byte(measurements), 0o600))
	load := func(keys string) (Scenario, error) {
		path := filepath.Join(folder, "story.yaml")
		require.NoError(t, os.WriteFile(path, []byte("about: a test\nlength: 10m\nworkload: {rate: 1}\n"+keys), 0o600))
		return Load(path)
	}
	s, err := load("profile: {components: times.csv, gpu: a100_sxm, model: llama-3.1-8b, tp: 1, dtype: bf16}\n")
	require.NoError(t, err)
	assert.Equal(t, "A100-80G-SXM Llama-3.1-8B tp1 bf16", s.Config.Measured.Name)
	assert.Empty(t, s.Notes)
	servers, err := vllmsim.New(s.Config)
	require.NoError(t, err)
	require.NotNil(t, servers)
	again, err := load("profile: {components: times.csv, gpu: A100, model: 8b}\n")
	require.NoError(t, err)
	assert.NotSame(t, s.Config.Measured, again.Config.Measured)

	s, err = load("profile: {components: times.csv, gpu: b999, model: moon}\n")
	require.NoError(t, err)
	require.Len(t, s.Notes, 1)
	assert.Contains(t, s.Notes[0], "the size of the KV cache of Moon-1T on B999 is not known")

	s, err = load("")
	require.NoError(t, err)
	assert.Equal(t, "8b-h100", s.Config.Hardware)
	assert.Nil(t, s.Config.Measured)

	for keys, want := range map[string]string{
		"hardware: 8b-h100\nprofile: {components: times.csv, gpu: a100, model: 8b}\n": "story.yaml:5: profile: hardware is there as well; want one of them",
		"profile: {gpu: a100, model: 8b}\n":                                           "story.yaml:4: profile: want components, a CSV file of measured times, and gpu and model",
		"profile: {components: no.csv, gpu: a100, model: 8b}\n":                       "profile: there is no file no.csv, neither in the folder of this file nor in the working directory",
		"profile: {components: times.csv, gpu: h100, model: 8b}\n":                    `times.csv: gpu: no "h100": the file has A100-80G-SXM, B999`,
		"profile: {components: times.csv, gpu: a100, model: 8b, tp: 0}\n":             "profile.tp: 0 is not between 1 and 1024",
		"lockstep: true\n":                       "lockstep: it goes with two or more engines",
		"lockstep: sometimes\nengines: 2\n":      "lockstep: want true or false",
		"hardware: 8b-l40s\nkv_cache_tokens: 32": "cannot hold one request",
	} {
		_, err := load(keys)
		require.ErrorContains(t, err, want, keys)
	}
	s, err = load("lockstep: true\nengines: 2\n")
	require.NoError(t, err)
	assert.True(t, s.Config.Lockstep)
}
