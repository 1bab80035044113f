package extensioncheck

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/confmap"
)

// NewFactory returns the factory of the converter, for the "converters" of a builder
// configuration.
func NewFactory() confmap.ConverterFactory {
	return confmap.NewConverterFactory(func(confmap.ConverterSettings) confmap.Converter { return converter{} })
}

type converter struct{}

// Convert returns an error with one sentence for each missing extension, and for each processor
// whose window is too short for the receivers of its pipeline. It ignores what
// it cannot read; the collector reports that itself.
func (converter) Convert(_ context.Context, conf *confmap.Conf) error {
	all := conf.ToStringMap()
	service := section(all, "service")
	started := map[string]bool{}
	if extensions, ok := service["extensions"].([]any); ok {
		for _, name := range extensions {
			started[fmt.Sprint(name)] = true
		}
	}
	used := usedComponents(section(service, "pipelines"))
	var problems []error
	report := func(path, extension string) {
		if !started[extension] {
			problems = append(problems, fmt.Errorf(
				"%s names the extension %q, which service::extensions does not list; add it there and configure it under extensions",
				path, extension))
		}
	}
	for _, id := range ours(section(all, "receivers"), used) {
		authenticators("receivers::"+id, section(all, "receivers")[id], report)
	}
	for _, id := range ours(section(all, "processors"), used) {
		if storage, named := section(section(all, "processors"), id)["storage"].(string); named && storage != "" {
			report("processors::"+id+"::storage", storage)
		}
	}
	return errors.Join(append(problems, windows(all)...)...)
}

// section returns a part of the configuration; nil if it is missing or not a map.
func section(of map[string]any, name string) map[string]any {
	part, _ := of[name].(map[string]any)
	return part
}

// usedComponents returns the receivers and processors of all pipelines. Others are never
// started.
func usedComponents(pipelines map[string]any) map[string]bool {
	used := map[string]bool{}
	for name := range pipelines {
		for _, role := range []string{"receivers", "processors"} {
			ids, _ := section(pipelines, name)[role].([]any)
			for _, id := range ids {
				used[fmt.Sprint(id)] = true
			}
		}
	}
	return used
}

// ours returns the components of type vllm that are used, in order.
func ours(components map[string]any, used map[string]bool) (ids []string) {
	for _, id := range slices.Sorted(maps.Keys(components)) {
		if kind, _, _ := strings.Cut(id, "/"); strings.TrimSpace(kind) == "vllm" && used[id] {
			ids = append(ids, id)
		}
	}
	return ids
}

// authenticators reports every "auth::authenticator" below a path: the receiver has one,
// and so can each of its targets.
func authenticators(path string, value any, report func(path, extension string)) {
	switch value := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			if key != "auth" {
				authenticators(path+"::"+key, value[key], report)
			} else if name, named := section(value, key)["authenticator"].(string); named && name != "" {
				report(path+"::auth::authenticator", name)
			}
		}
	case []any:
		for i, element := range value {
			authenticators(fmt.Sprintf("%s::%d", path, i), element, report)
		}
	}
}
