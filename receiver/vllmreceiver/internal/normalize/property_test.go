package normalize

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
)

// bodyMaker writes random bodies out of the catalogue's families in the dialects
// of deployments, with unknown and contradicting families among them.
type bodyMaker struct{ *rand.Rand }

func pick[T any](b bodyMaker, of []T) T { return of[b.IntN(len(of))] }

// chance is true once in n times.
func (b bodyMaker) chance(n int) bool { return b.IntN(n) == 0 }

func (b bodyMaker) body() (body string, options Options) {
	prefixes := append([]string{"acme_", "acme_vllm:"}, catalog.Prefixes...)
	main := pick(b, prefixes)
	// A body without vLLM's families can be a gateway's.
	gateway := b.chance(3)
	written := map[string]bool{}
	var out strings.Builder
	for range 1 + b.IntN(40) {
		name, kind := b.family()
		prefix := main
		if b.chance(4) {
			prefix = pick(b, prefixes)
		}
		if rest, ok := strings.CutPrefix(name, "vllm:"); ok {
			name = prefix + rest
		}
		if written[name] || gateway && strings.Contains(name, "vllm") {
			continue
		}
		written[name] = true
		b.write(&out, name, kind)
	}
	options = Options{
		Source: pick(b, []Source{SourceAuto, SourceAuto, SourceVLLM, SourceGateway, SourceLoRA}), KeepFairness: b.chance(4),
		Wire: b.chance(5), Version: pick(b, []string{"", "0.8.5", "0.9.1", "0.10.2", "0.24.0"}),
		CapacityFromBlocks: b.chance(2), GenAI: b.chance(2),
		Enabled: map[string]bool{pick(b, catalog.All()).Name: b.chance(2), "process_start_time": b.chance(2)},
	}
	if b.chance(2) {
		options.Prefixes = []string{"acme_"}
	}
	return out.String(), options
}

// onTheWire returns the metrics with families.
var onTheWire = sync.OnceValue(func() []catalog.Metric {
	return slices.DeleteFunc(slices.Clone(catalog.All()), func(m catalog.Metric) bool { return len(m.Sources) == 0 })
})

// family returns a name on the wire and its kind, mostly as the catalogue has it.
func (b bodyMaker) family() (name, kind string) {
	kinds := []string{"gauge", "counter", "histogram", "summary", ""}
	if b.chance(4) {
		words := []string{"vllm:", "request_", "prompt_tokens", "new", "_total", "_seconds", "_bytes", "a", ":", "_", "_gauge", "go_", "llm_d_epp_", "inference_extension_", "router_"}
		for range 1 + b.IntN(4) {
			name += pick(b, words)
		}
		return name, pick(b, kinds)
	}
	m := pick(b, onTheWire())
	name, kind = pick(b, m.Sources).Family, m.Kind.String()
	if kind == "sum" {
		kind = "counter"
		if b.chance(4) {
			name = strings.TrimSuffix(name, "_total")
		}
	}
	if b.chance(8) {
		kind = pick(b, kinds)
	}
	return name, kind
}

func (b bodyMaker) write(out *strings.Builder, name, kind string) {
	if kind != "" {
		fmt.Fprintf(out, "# TYPE %s %s\n", name, kind)
	}
	seen := map[string]bool{}
	for range b.IntN(5) {
		labels := b.labels()
		if seen[labels] {
			continue
		}
		seen[labels] = true
		switch kind {
		case "histogram":
			bounds := strings.Fields(pick(b, []string{"1 2", "0.5 1 3", vllmFirstToken, vllmOutputToken, ""}))
			out.WriteString(histogramSeries(name, labels, b.IntN(9), bounds...))
		case "summary":
			fmt.Fprintf(out, "%s_sum{%s} 1\n%s_count{%s} 2\n", name, labels, name, labels)
		default:
			fmt.Fprintf(out, "%s{%s} %d\n", name, labels, b.IntN(9))
		}
	}
}

// labels writes some labels of vLLM, of Ray, of imitators and of info families.
func (b bodyMaker) labels() string {
	values := map[string][]string{
		"engine": {"0", "1"}, "model_name": {"m", "n"}, "pid": {"1", "2"}, "finish_reason": {"stop"}, "finished_reason": {"stop"},
		"WorkerId": {"w1", "w2"}, "ReplicaId": {"r1"}, "SessionName": {"s"}, "namespace": {"x", "y"},
		"block_size": {"16", "None"}, "num_gpu_blocks": {"100"}, "kv_cache_size_tokens": {"None", "1600"},
		"fairness_id": {"a", "b"}, "name": {"p"}, "inference_pool": {"p", "q"}, "pod_name": {"e", "f"}, "server": {"s"},
		"running_lora_adapters": {"a,b", "b, c", ""}, "max_lora": {"4"}, "cache_dtype": {"auto", "fp8"},
	}
	names := []string{
		"ReplicaId", "SessionName", "WorkerId", "block_size", "cache_dtype", "engine", "fairness_id", "finish_reason", "finished_reason",
		"inference_pool", "kv_cache_size_tokens", "max_lora", "model_name", "name", "namespace", "num_gpu_blocks", "pid", "pod_name",
		"running_lora_adapters", "server",
	}
	var pairs []string
	for _, name := range names {
		if b.chance(4) {
			pairs = append(pairs, fmt.Sprintf("%s=%q", name, pick(b, values[name])))
		}
	}
	return strings.Join(pairs, ",")
}

// For any families, dialects and orders, every series is in one point or counted, and all
// points have different names or keys.
func TestEveryBodyKeepsTheInvariants(t *testing.T) {
	for seed := range uint64(400) {
		body, options := bodyMaker{rand.New(rand.NewPCG(seed, 1))}.body()
		snapshot := snapshotOf(body)
		checkPlan(t, snapshot.Layout, &options, Make(snapshot.Layout, options))
		if t.Failed() {
			t.Fatalf("seed %d, %+v\n%s", seed, options, body)
		}
	}
}
