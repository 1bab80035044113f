package collect

import (
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/otlptranslator"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
)

// sources are the metrics of the catalogue that an input is read from.
func sources(in input.Metric) []string {
	definition := in.Define()
	if definition.Name == "" {
		return nil
	}
	all := append([]string{definition.Name}, definition.Older...)
	if definition.Level != "" {
		all = append(all, definition.Level)
	}
	return all
}

func TestAnInputIsFoundUnderEveryFamilyOfItsMetric(t *testing.T) {
	for in := range input.NumMetrics {
		for _, name := range sources(in) {
			metric, known := catalog.ByName(name)
			require.True(t, known, name)
			for _, source := range metric.Sources {
				if source.Label != "" {
					assert.True(t, isCacheConfig(source.Family), source.Family)
					continue
				}
				rest, vllm := strings.CutPrefix(source.Family, catalog.Prefixes[0])
				families := []string{source.Family}
				for _, prefix := range catalog.Prefixes {
					if vllm {
						families = append(families, prefix+rest)
					}
				}
				for _, family := range families {
					found, is := lookUp(family)
					assert.True(t, is && found.input == in, "%s is %s", family, in)
				}
			}
		}
	}
}

func TestAnInputIsFoundUnderTheNamesThatPrometheusGivesIt(t *testing.T) {
	types := map[catalog.Kind]otlptranslator.MetricType{
		catalog.KindGauge: otlptranslator.MetricTypeGauge, catalog.KindSum: otlptranslator.MetricTypeMonotonicCounter,
		catalog.KindHistogram: otlptranslator.MetricTypeHistogram,
	}
	for _, strategy := range []otlptranslator.TranslationStrategyOption{
		otlptranslator.UnderscoreEscapingWithSuffixes, otlptranslator.UnderscoreEscapingWithoutSuffixes,
		otlptranslator.NoUTF8EscapingWithSuffixes, otlptranslator.NoTranslation,
	} {
		namer := otlptranslator.NewMetricNamer("", strategy)
		for in := range input.NumMetrics {
			for _, name := range sources(in) {
				metric, _ := catalog.ByName(name)
				translated, err := namer.Build(otlptranslator.Metric{Name: name, Unit: metric.Unit, Type: types[metric.Kind]})
				require.NoError(t, err)
				found, known := lookUp(translated)
				assert.True(t, known && found.input == in, "%s as %s (%s)", name, translated, strategy)
			}
		}
	}
}

// A name that two inputs claim would be given to one of them in silence.
func TestNoNameMeansTwoInputs(t *testing.T) {
	claimed := map[string]input.Metric{}
	for in := range input.NumMetrics {
		for _, name := range sources(in) {
			claim := func(name string) {
				if other, taken := claimed[name]; taken {
					assert.Equal(t, other, in, name)
				}
				claimed[name] = in
			}
			claim(name)
			addFamilies(name, func(family string, _ int) { claim(family) })
			for _, translated := range translations(name) {
				claim(translated)
			}
		}
	}
	for name, in := range claimed {
		metric, known := catalog.ByName(name)
		assert.True(t, !known || slices.Contains(sources(in), name), "%s is the catalogue's %v", name, metric)
	}
}

func TestTheInputsAreAsTheCatalogueHasThem(t *testing.T) {
	kinds := map[catalog.Kind]input.Kind{catalog.KindGauge: input.Gauge, catalog.KindSum: input.Counter, catalog.KindHistogram: input.Distribution}
	for in := range input.NumMetrics {
		assert.LessOrEqual(t, len(in.Define().Labels), input.MaxLabels)
		for _, name := range sources(in) {
			metric, _ := catalog.ByName(name)
			want := in.Define().Kind
			if name == in.Define().Level {
				want = input.Gauge
			}
			assert.Equal(t, want, kinds[metric.Kind], name)
			if in.Summed() {
				continue // It has the model and whether requests failed, from any of the attributes.
			}
			for _, label := range in.Define().Labels {
				// Servers that count what they drop otherwise give no reason.
				assert.True(t, in == input.Dropped || slices.Contains(metric.Attributes, label), "%s has no %s", name, label)
			}
			// What is neither a label of the input nor of the engine would split it.
			for _, attribute := range metric.Attributes {
				of := []string{"engine", "model_name"}
				switch {
				case in == input.GatewayQueue:
					of = append(of, "pool") // A gateway has a queue for each pool.
				case in.ByModel():
					of = append(of, "target_model_name")
				}
				of = append(of, in.Define().Summed...)
				assert.Contains(t, append(of, in.Define().Labels...), attribute,
					"%s: Labels of the input lack %s, so that each of its values would be an engine of its own", name, attribute)
			}
			found, known := input.ByName(in.String())
			assert.True(t, known)
			assert.Equal(t, in, found)
		}
	}
}

func TestASimilarNameIsNotAnInput(t *testing.T) {
	for _, name := range []string{
		"", "vllm:", "vllm:prompt_tokens_created", "vllm:request_success_created", "prompt_tokens", "my_vllm:prompt_tokens_total",
		"vllm_router.num_requests.running", "vllm:time_to_first_token_seconds_bucket", "vllm:prompt_tokens_recomputed_total",
		"vllm:gpu_prefix_cache_hit_rate", "vllm.prefix_cache.hit_ratio",
	} {
		_, known := lookUp(name)
		assert.False(t, known, name)
	}
}

// lookUp returns the input of a metric's name.
func lookUp(name string) (named, bool) {
	m := meanings()[name]
	return m.named, m.known
}

func isCacheConfig(name string) bool {
	return meanings()[name].cacheConfig
}
