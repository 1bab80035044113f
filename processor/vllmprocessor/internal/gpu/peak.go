package gpu

import (
	"slices"
	"strings"
	"unicode"
)

// byKey finds the row of a name, however it is spelled.
var byKey = func() map[string]*Peak {
	index := map[string]*Peak{}
	for i := range table {
		for _, name := range append([]string{table[i].Name}, table[i].aliases...) {
			index[key(name)] = &table[i]
		}
	}
	return index
}()

// Lookup finds a GPU by its name in the table or by what drivers and the label
// nvidia.com/gpu.product call it: upper or lower case, separated by spaces, dashes
// or underscores, in any order, with or without the vendor. A name that fits several
// GPUs, such as H100 or A100-80GB, or a part of a GPU (MIG) is not found: a wrong
// peak would look like a right one.
func Lookup(name string) (Peak, bool) {
	peak, ok := byKey[key(name)]
	if !ok {
		return Peak{}, false
	}
	found := *peak
	found.aliases = nil
	return found, true
}

// Names lists all GPUs of the table, for messages.
func Names() []string {
	names := make([]string, 0, len(table))
	for i := range table {
		names = append(names, table[i].Name)
	}
	return names
}

// key is the same for all spellings of a name.
func key(name string) string {
	words := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool {
		return r != '.' && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
	words = slices.DeleteFunc(words, func(word string) bool {
		switch word {
		// "shared" marks a GPU that several pods take turns on.
		case "nvidia", "amd", "tesla", "instinct", "shared":
			return true
		}
		return false
	})
	for i, word := range words {
		switch word {
		case "sxm2", "sxm4", "sxm5":
			words[i] = "sxm"
		}
	}
	slices.Sort(words)
	return strings.Join(words, " ")
}

// FLOPS returns the peak in FLOP/s for the type that the GPU computes in: bf16,
// fp16, fp8 or fp4, or as vLLM and checkpoints spell them. This is not the type of
// quantized weights, which many kernels widen first. It returns false where the GPU does
// not support the type.
func (p Peak) FLOPS(dtype string) (float64, bool) {
	flops := 0.0
	switch strings.ToLower(dtype) {
	case "bf16", "bfloat16":
		flops = p.BF16
	case "fp16", "float16", "half":
		flops = p.FP16
	case "fp8", "float8", "fp8_e4m3", "fp8_e5m2":
		flops = p.FP8
	case "fp4", "float4", "nvfp4", "mxfp4":
		flops = p.FP4
	}
	return flops, flops > 0
}

// DTypes lists the types that FLOPS answers for, for messages.
func (p Peak) DTypes() []string {
	var types []string
	for _, dtype := range []string{"bf16", "fp16", "fp8", "fp4"} {
		if _, ok := p.FLOPS(dtype); ok {
			types = append(types, dtype)
		}
	}
	return types
}
