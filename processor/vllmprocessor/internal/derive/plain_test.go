package derive_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
)

// plainRatios are the metrics that their formula in metadata.yaml explains: "increase(a) / increase(b)".
var plainRatios = func() map[string][2]input.Metric {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "metadata.yaml"))
	if err != nil {
		panic(err)
	}
	var catalogue struct {
		Metrics map[string]struct {
			Formula     string   `yaml:"formula"`
			DerivedFrom []string `yaml:"derived_from"`
		} `yaml:"metrics"`
	}
	if err := yaml.Unmarshal(text, &catalogue); err != nil {
		panic(err)
	}
	found := map[string][2]input.Metric{}
	form := regexp.MustCompile(`^increase\((\w+)\) / increase\((\w+)\)$`)
	for metric, m := range catalogue.Metrics {
		names := form.FindStringSubmatch(m.Formula)
		// Those that expect has more to say about.
		if names == nil || metric == "vllm.mm_cache.hit_ratio" || metric == "vllm.spec_decode.acceptance_ratio" {
			continue
		}
		var of [2]input.Metric
		known := 0
		for in := range input.NumMetrics {
			if slices.Contains(m.DerivedFrom, in.String()) {
				for i, name := range names[1:] {
					if strings.HasSuffix("."+in.String(), "."+name) {
						of[i] = in
						known++
					}
				}
			}
		}
		if known == len(of) {
			found[metric] = of
		}
	}
	return found
}()
