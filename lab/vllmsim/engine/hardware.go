package engine

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"
)

// Card is what step times were measured of. Names are compared by their words, see Words.
type Card struct {
	GPU, Model, DType string
	// TP is the number of GPUs over which each layer is spread (tensor parallelism).
	TP int
}

const (
	// hostSeconds are the part of a step that is on no GPU: on B300 and H100, with one
	// sequence, a step takes 0.7 to 1.4 ms longer than the sum of its kernels.
	hostSeconds = 0.8e-3
	// hostPerKVToken is what the difference grows by at TP 1, per token that the generating
	// sequences have in the cache: from about 1.2 ms to 1.9 ms at 77,000 tokens and 5.2 ms at
	// 144,000, with Qwen3-32B on a B300. With more GPUs it does not grow.
	hostPerKVToken = 20e-9
	// memoryShare is vLLM's default of gpu_memory_utilization.
	memoryShare = 0.9
	// reservedBytes of that share are neither weights nor KV cache: activations, graphs.
	reservedBytes = 1.5 * (1 << 30)
	// defaultKVTokens is the KV cache of hardware or a model with unknown sizes.
	defaultKVTokens = 262_144
	headSize        = 128
)

// architecture is the public shape of a model.
type architecture struct {
	layers, width, heads, kvHeads, between, vocabulary float64
}

var architectures = []struct {
	name string
	architecture
}{
	{"llama 8b", architecture{32, 4096, 32, 8, 14336, 128256}},
	{"llama 70b", architecture{80, 8192, 64, 8, 28672, 128256}},
	{"qwen3 32b", architecture{64, 5120, 64, 8, 25600, 151936}},
}

// gpus are public specifications: memory in GiB, its bandwidth in bytes per second. A size
// in the name, as in H100-94G, replaces the memory.
var gpus = []struct {
	name              string
	memory, bandwidth float64
}{
	{"a100", 80, 2.04e12},
	{"h100", 80, 3.35e12},
	{"h200", 141, 4.8e12},
	{"b200", 180, 8e12},
	{"b300", 288, 8e12},
	{"l40s", 48, 0.864e12},
	{"rtx 4090", 24, 1.01e12},
	{"rtx pro 6000", 96, 1.79e12},
}

// Words returns the words of a name in lower case: what is between characters that are
// neither letters nor digits.
func Words(name string) []string {
	return strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

// HasWords reports whether all wanted words are in a name.
func HasWords(name, wanted string) bool {
	has := map[string]bool{}
	for _, w := range Words(name) {
		has[w] = true
	}
	for _, w := range Words(wanted) {
		if !has[w] {
			return false
		}
	}
	return true
}

// parameters are those of the layers, and of the vocabulary, which is there twice: for the
// words that come in and for those that go out.
func (a architecture) parameters() (layers, vocabulary float64) {
	attention := a.width * headSize * (2*a.heads + 2*a.kvHeads)
	return a.layers * (attention + 3*a.width*a.between), a.vocabulary * a.width
}

// bytesPer is the size of a parameter of the layers. Quantization leaves the vocabulary as
// it is, with two bytes.
func bytesPer(dtype string) float64 {
	switch {
	case strings.Contains(strings.ToLower(dtype), "fp4"):
		return 0.5 + 1.0/16 // A scale for 16 of them.
	case strings.Contains(strings.ToLower(dtype), "8"):
		return 1
	default:
		return 2
	}
}

// Measured returns the model of a card with measured step times. The sizes of weights and of
// the KV cache are those of the model and GPU by name. Where one of them is unknown they are
// derived from the tables, and Note says so.
func Measured(name string, card Card, t *Tables) Model {
	m := Model{Name: name, Tables: t, GPUs: float64(max(1, card.TP)), StepSeconds: hostSeconds}
	if card.TP <= 1 {
		m.KVTokenSeconds = hostPerKVToken
	}
	memory, bandwidth := specification(card.GPU)
	m.MaxSeqs, m.MaxBatchedTokens = 1024, 8192
	if (memory > 0 && memory < 70) || HasWords(card.GPU, "a100") {
		// vLLM's defaults for such GPUs, see EngineArgs.get_batch_defaults.
		m.MaxSeqs, m.MaxBatchedTokens = 256, 2048
	}
	for _, known := range architectures {
		if !HasWords(card.Model, known.name) {
			continue
		}
		layers, vocabulary := known.parameters()
		m.Layers, m.Width = known.layers, known.heads*headSize
		m.WeightBytes = (layers*bytesPer(card.DType) + vocabulary*2) / m.GPUs
		m.FlopsPerToken = 2 * (layers + vocabulary) / m.GPUs
		// GPUs beyond the number of heads have copies of them.
		m.KVBytes = known.layers * math.Ceil(known.kvHeads/m.GPUs) * headSize * 2 * 2
		if memory > 0 {
			tokens := (memory*(1<<30)*memoryShare - m.WeightBytes - vocabulary*2/m.GPUs - reservedBytes) / m.KVBytes
			m.Blocks = max(0, int(tokens)) / 16
		}
		break
	}
	if m.KVBytes == 0 {
		// Two operations per parameter, which is two bytes; four fifths of the bandwidth are
		// reached.
		if bandwidth == 0 {
			bandwidth = h100Bandwidth
		}
		m.WeightBytes = t.products.v[0] * 0.8 * bandwidth
		m.FlopsPerToken = m.WeightBytes * 2 / bytesPer(card.DType)
		m.KVBytes = 131_072
	}
	if least := 2 * 16384 / 16; m.Blocks < least {
		m.Note = fmt.Sprintf("the size of the KV cache of %s on %s is not known: %d tokens are assumed; kv_cache_tokens sets it",
			card.Model, card.GPU, defaultKVTokens)
		m.Blocks = defaultKVTokens / 16
	}
	return m
}

// specification returns the memory of a GPU in GiB and its bandwidth, 0 where they are unknown.
func specification(name string) (memory, bandwidth float64) {
	for _, g := range gpus {
		if HasWords(name, g.name) {
			memory, bandwidth = g.memory, g.bandwidth
			break
		}
	}
	for _, w := range Words(name) {
		size := strings.TrimSuffix(strings.TrimSuffix(w, "b"), "g")
		if n, err := strconv.Atoi(size); err == nil && size != w && n > 0 && n < 10_000 {
			memory = float64(n)
		}
	}
	return memory, bandwidth
}
