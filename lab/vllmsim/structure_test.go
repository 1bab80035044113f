package vllmsim

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/internal/test/captures"
)

// shape is how a family looks on the wire, without its values: its type, and
// for one child the samples in order with their label names, bounds and style
// of numbers.
type shape struct {
	kind    string
	hasHelp bool
	// samples are one line per distinct sample of a child: suffix, label names
	// in order and the bound, such as "_bucket{engine,le=1.0,model_name}".
	samples []string
	// numbers are the values as written.
	numbers []string
}

var (
	sampleLine = regexp.MustCompile(`^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$`)
	labelPair  = regexp.MustCompile(`([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"`)
)

// shapes reads a body by lines; it shares nothing with the writers. The second
// result is the order of first appearance.
func shapes(t *testing.T, body string) (map[string]*shape, []string) {
	t.Helper()
	families, order := map[string]*shape{}, []string(nil)
	current := ""
	helped := map[string]bool{}
	for _, line := range strings.Split(body, "\n") {
		switch fields := strings.SplitN(line, " ", 4); {
		case line == "" || line == "# EOF":
		case strings.HasPrefix(line, "# HELP "):
			helped[fields[2]] = true
		case strings.HasPrefix(line, "# TYPE "):
			current = fields[2]
			if families[current] == nil {
				families[current] = &shape{kind: fields[3], hasHelp: helped[current]}
				order = append(order, current)
			}
		default:
			m := sampleLine.FindStringSubmatch(line)
			require.NotNil(t, m, "sample line %q", line)
			f := families[current]
			require.NotNil(t, f, "sample before any TYPE: %q", line)
			require.True(t, strings.HasPrefix(m[1], current), "sample %q within family %q", m[1], current)
			var labels []string
			for _, pair := range labelPair.FindAllStringSubmatch(m[2], -1) {
				if pair[1] == "le" {
					pair[1] += "=" + pair[2]
				}
				labels = append(labels, pair[1])
			}
			sample := fmt.Sprintf("%s{%s}", strings.TrimPrefix(m[1], current), strings.Join(labels, ","))
			if !slices.Contains(f.samples, sample) {
				f.samples = append(f.samples, sample)
			}
			f.numbers = append(f.numbers, m[3])
		}
	}
	return families, order
}

// Styles of numbers. Python always writes a point or an exponent; the Rust
// client writes integers plainly.
var (
	pythonNumber = regexp.MustCompile(`^(-?\d+\.\d+(e[+-]\d{2,3})?|-?\de[+-]\d{2,3}|NaN|[+-]Inf)$`)
	rustNumber   = regexp.MustCompile(`^(\d+|\d+\.\d+)$`)
)

func TestBodiesAreBuiltLikeTheCaptures(t *testing.T) {
	for _, c := range []struct {
		capture string
		config  Config
		// absent are families of the capture that the stand-in leaves out, by
		// pattern.
		absent string
		// ordered requires the families in the order of the capture. The
		// multi-process collector's order is that of a directory.
		ordered bool
		number  *regexp.Regexp
	}{
		{"inferguard-packet_a-vllm-v0.20-lmcache-mp.txt", Config{Version: "0.20.0", MaxModelLen: 16384}, `^$`, true, pythonNumber},
		{"inferguard-packet_b-vllm-v0.20.txt", Config{Version: "0.20.0"}, `^$`, true, pythonNumber},
		{"inferguard-packet_h1-vllm-multiproc-lmcache-embedded.txt", Config{Dialect: "v1-multiproc", Version: "0.10.2"}, `^lmcache:`, true, pythonNumber},
		{"datadog-vllm_metrics-v0.5.0-original.txt", Config{Dialect: "v0", Version: "0.5.0", MaxModelLen: 2048}, `^$`, true, pythonNumber},
		{"tempest11-vllm-v0engine-0.9-multiproc-lora.txt", Config{Dialect: "v0", Version: "0.9.1", LoRA: true}, `^$`, false, pythonNumber},
		{
			"datadog-ray_vllm_metrics-v0.6-ray2.32.txt",
			Config{Dialect: "ray-old", Version: "0.6.3", MaxModelLen: 131072, KVCacheTokens: 262144},
			// Edited into that body by hand, or gone by v0.6.3 after the version table.
			`cache_config_info|num_preemptions|best_of|avg_generation_throughput`, false, pythonNumber,
		},
		{
			"generated/generated-vllm-main-20260817-dp2-lora-spec-allconnectors.txt",
			Config{Version: "0.24.0", Engines: 2, LoRA: true, SpecDecode: true, MaxModelLen: 131072, KVCacheTokens: 262144},
			// Connectors and switches that the stand-in does not have.
			`nixl|kv_offload|mooncake|hf3fs|corrupted_requests|kv_block_|tool_call|websocket|diffusion`, false, pythonNumber,
		},
		{"generated/emulated-vllm-rust-frontend-20260817-openmetrics.txt", Config{Dialect: "rust", Version: "0.24.0"}, `^$`, false, rustNumber},
	} {
		t.Run(filepath.Base(c.capture), func(t *testing.T) {
			raw, err := os.ReadFile(filepath.Join(captures.Dir(t), filepath.FromSlash(c.capture)))
			require.NoError(t, err)
			theirs, theirOrder := shapes(t, string(raw))
			ours, ourOrder := shapes(t, bodyOf(t, c.config))
			c.config.Hardware, c.config.MaxModelLen = "8b-h100", cmp.Or(c.config.MaxModelLen, 8192)
			simulated, simulatedOrder := shapes(t, bodyOf(t, c.config))
			assert.Equal(t, ourOrder, simulatedOrder)
			for name, f := range ours {
				if len(f.samples) > 0 && len(simulated[name].samples) > 0 {
					assert.Equal(t, f.samples, simulated[name].samples, "samples of %s", name)
				}
			}
			absent := regexp.MustCompile(c.absent)
			shared := 0
			for name, want := range theirs {
				if absent.MatchString(name) {
					continue
				}
				got := ours[name]
				if !assert.NotNil(t, got, "the capture has %s", name) {
					continue
				}
				shared++
				assert.Equal(t, want.kind, got.kind, "type of %s", name)
				assert.True(t, got.hasHelp, "%s has a HELP line", name)
				if len(want.samples) > 0 && len(got.samples) > 0 {
					assert.Equal(t, want.samples, got.samples, "samples of %s", name)
				}
				for _, number := range append(got.numbers, want.numbers...) {
					assert.Regexp(t, c.number, number, "numbers of %s", name)
				}
			}
			assert.Greater(t, shared, 15)
			if c.ordered {
				in := func(a map[string]*shape) func(string) bool {
					return func(name string) bool { return a[name] == nil }
				}
				assert.Equal(t, slices.DeleteFunc(theirOrder, in(ours)), slices.DeleteFunc(ourOrder, in(theirs)))
			}
		})
	}
}

// bodyOf is what one target answers after ten busy minutes.
func bodyOf(t *testing.T, cfg Config) string {
	t.Helper()
	s, err := New(cfg)
	require.NoError(t, err)
	s.Advance(10 * time.Minute)
	body, _, err := s.Targets()[0].Body()
	require.NoError(t, err)
	return string(body)
}

func TestBlockMetricsAreBuiltLikeTheCapture(t *testing.T) {
	capture := filepath.Join(captures.Dir(t), "generated", "generated-vllm-main-20260817-dp2-lora-spec-allconnectors.txt")
	raw, err := os.ReadFile(capture)
	require.NoError(t, err)
	theirs, theirOrder := shapes(t, string(raw))
	ours, ourOrder := shapes(t, bodyOf(t, Config{Version: "0.24.0", Engines: 2, Hardware: "8b-h100", FollowBlocks: 0.01}))
	block := func(name string) bool { return strings.HasPrefix(name, "vllm:kv_block_") }
	for name, want := range theirs {
		if block(name) {
			require.NotNil(t, ours[name], "the capture has %s", name)
			assert.Equal(t, want.kind, ours[name].kind)
			assert.Equal(t, want.samples, ours[name].samples, "samples of %s", name)
		}
	}
	first, theirFirst := slices.IndexFunc(ourOrder, block), slices.IndexFunc(theirOrder, block)
	assert.Equal(t, theirOrder[theirFirst-1:theirFirst+6], ourOrder[first-1:first+6])
	absent, _ := shapes(t, bodyOf(t, Config{Version: "0.24.0", Hardware: "8b-h100"}))
	assert.Nil(t, absent["vllm:kv_block_lifetime_seconds"], "only with the flag")
}
