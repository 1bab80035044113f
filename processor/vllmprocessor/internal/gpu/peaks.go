package gpu

import (
	_ "embed"
	"encoding/csv"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
)

// Peak is the peak throughput of one GPU, as its vendor states it: dense tensor (or
// matrix) operations, not the doubled numbers for structured sparsity, and not
// what a real kernel reaches. 0 means not supported or not stated.
type Peak struct {
	Name            string
	BF16, FP16      float64 // FLOP/s
	FP8, FP4        float64 // FLOP/s
	MemoryBandwidth float64 // By/s
	Source          string  // the vendor's document

	// aliases are what drivers and Kubernetes labels call it.
	aliases []string
}

//go:embed peaks.csv
var peaks string

// table has the GPUs of peaks.csv.
var table = func() (all []Peak) {
	reader := csv.NewReader(strings.NewReader(peaks))
	reader.Comment = '#'
	rows, err := reader.ReadAll()
	if err != nil {
		panic(err) // The file is a part of the program.
	}
	for _, row := range rows[1:] {
		numbers := make([]float64, 5)
		for i := range numbers {
			numbers[i], _ = strconv.ParseFloat(row[i+1], 64) // An empty one is 0.
		}
		all = append(all, Peak{
			Name: row[0], BF16: numbers[0], FP16: numbers[1], FP8: numbers[2], FP4: numbers[3], MemoryBandwidth: numbers[4],
			aliases: strings.Fields(row[6]), Source: row[7],
		})
	}
	return all
}()

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
	if peak := byKey[key(name)]; peak != nil {
		return *peak, true
	}
	return Peak{}, false
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
		// "shared" marks a GPU that several pods take turns on.
		return slices.Contains([]string{"nvidia", "amd", "tesla", "instinct", "shared"}, word)
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
	return slices.DeleteFunc([]string{"bf16", "fp16", "fp8", "fp4"}, func(dtype string) bool {
		_, has := p.FLOPS(dtype)
		return !has
	})
}

// Rule is the peak throughput of one GPU of the matching resources.
type Rule struct {
	// Match maps names of resource attributes to patterns: * stands for any
	// characters, / included, and ? for one. All must match. No patterns match
	// every resource.
	Match map[string]string

	FLOPS           float64 // FLOP/s, dense, for the type computed in; 0 where unknown
	MemoryBandwidth float64 // By/s; 0 where unknown
}

// NewRule makes a rule from the table. The error names the valid values.
func NewRule(match map[string]string, gpu, dtype string) (Rule, error) {
	peak, ok := Lookup(gpu)
	if !ok {
		return Rule{}, fmt.Errorf("gpu %q is not known, or fits several; write one of %s, or give its flops and memory_bandwidth",
			gpu, strings.Join(Names(), ", "))
	}
	flops, ok := peak.FLOPS(dtype)
	if !ok {
		return Rule{}, fmt.Errorf("dtype %q is not known for %s; write one of %s, or give flops",
			dtype, peak.Name, strings.Join(peak.DTypes(), ", "))
	}
	return Rule{Match: match, FLOPS: flops, MemoryBandwidth: peak.MemoryBandwidth}, nil
}

// Match returns the first rule that matches the attributes of a resource.
func Match(attributes map[string]string, rules []Rule) (Rule, bool) {
	for _, rule := range rules {
		if rule.matches(attributes) {
			return rule, true
		}
	}
	return Rule{}, false
}

func (r Rule) matches(attributes map[string]string) bool {
	for name, wanted := range r.Match {
		value, ok := attributes[name]
		if !ok || !input.MatchPattern(wanted, value) {
			return false
		}
	}
	return true
}
