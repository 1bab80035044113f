// Package configfile reads the configuration of a collector as the collector itself does:
// with Confmap's resolver, environment and files. It decodes the components of this project
// and keeps the sections of all others as they are written.
package configfile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/provider/envprovider"
	"go.opentelemetry.io/collector/confmap/provider/fileprovider"
	"go.opentelemetry.io/collector/confmap/provider/yamlprovider"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-vllm/otelcol-vllm/extension/extensioncheck"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver"
)

// maxBytes is the largest file that is read. A configuration is written by hand.
const maxBytes = 4 << 20

// File is the configuration of a collector.
type File struct {
	// Receivers and Processors are those of the type vllm that a pipeline uses, by their
	// names.
	Receivers  []Receiver
	Processors []Processor
	// Exporters, Extensions and Others are sections as they are written, with the values of
	// the environment in their place: they can contain secrets. Others are the receivers,
	// processors and connectors of other types.
	Exporters, Extensions, Others map[string]map[string]any
	// Telemetry is service::telemetry::metrics as it is written.
	Telemetry map[string]any
	// Started are the extensions that service::extensions lists.
	Started []string
	// Pipelines are those of the service, by their names.
	Pipelines []Pipeline
	// Problems are mistakes that stop the collector from starting, each one sentence.
	Problems []error
	// Warnings are for example environment variables that are not set.
	Warnings []string
}

// Receiver is one receiver vllm.
type Receiver struct {
	Name   string
	Config *vllmreceiver.Config
}

// Processor is one processor vllm.
type Processor struct {
	Name   string
	Config *vllmprocessor.Config
}

// Pipeline is one pipeline with the names of its components.
type Pipeline struct {
	Name                             string
	Receivers, Processors, Exporters []string
}

// Read reads a configuration; several are merged in their order, as the collector does. An
// error means that nothing can be said about it. Mistakes in what could be read are in
// Problems; a component with a mistake is left out.
func Read(ctx context.Context, paths ...string) (*File, error) {
	for _, path := range paths {
		if err := readable(path); err != nil {
			return nil, err
		}
	}
	core, logged := observer.New(zapcore.WarnLevel)
	resolver, err := confmap.NewResolver(confmap.ResolverSettings{
		URIs:              paths,
		ProviderFactories: []confmap.ProviderFactory{fileprovider.NewFactory(), envprovider.NewFactory(), yamlprovider.NewFactory()},
		DefaultScheme:     "env",
		ProviderSettings:  confmap.ProviderSettings{Logger: zap.New(core)},
	})
	if err != nil {
		return nil, err
	}
	conf, err := resolver.Resolve(ctx)
	err = errors.Join(err, resolver.Shutdown(ctx))
	if err != nil {
		return nil, fmt.Errorf("%s cannot be read as a configuration: %w", strings.Join(paths, ", "), err)
	}
	f := parse(ctx, conf)
	for _, entry := range logged.All() {
		f.Warnings = append(f.Warnings, warning(entry))
	}
	slices.Sort(f.Warnings)
	f.Warnings = slices.Compact(f.Warnings)
	return f, nil
}

// readable returns a sentence where a path is not a file of a usual size. Confmap reads a file
// as a whole. Paths with a scheme are left to it.
func readable(path string) error {
	if strings.Contains(path, ":") && !strings.HasPrefix(path, "file:") {
		return nil
	}
	path = strings.TrimPrefix(path, "file:")
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("the configuration %s does not exist; check the path", path)
	case err != nil:
		return fmt.Errorf("the configuration cannot be read: %w", err)
	case info.IsDir():
		return fmt.Errorf("%s is a folder; name the file of the configuration", path)
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a regular file; write the configuration to a file", path)
	case info.Size() > maxBytes:
		return fmt.Errorf("%s has %d bytes, and the limit of a configuration is %d; is this the right file?", path, info.Size(), maxBytes)
	}
	return nil
}

// warning is a line that a provider has logged.
func warning(entry observer.LoggedEntry) string {
	var text strings.Builder
	text.WriteString(strings.TrimSuffix(entry.Message, "."))
	fields := entry.ContextMap()
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		fmt.Fprintf(&text, " (%s: %v)", name, fields[name])
	}
	return text.String()
}

// parse takes a resolved configuration apart.
func parse(ctx context.Context, conf *confmap.Conf) *File {
	f := &File{
		Exporters: sections(conf, "exporters"), Extensions: sections(conf, "extensions"),
		Others: map[string]map[string]any{},
	}
	var service struct {
		Extensions []string `mapstructure:"extensions"`
		Pipelines  map[string]struct {
			Receivers  []string `mapstructure:"receivers"`
			Processors []string `mapstructure:"processors"`
			Exporters  []string `mapstructure:"exporters"`
		} `mapstructure:"pipelines"`
	}
	part, err := conf.Sub("service")
	if err == nil {
		err = part.Unmarshal(&service, confmap.WithIgnoreUnused())
	}
	if err != nil {
		f.problem("service cannot be read: %w", err)
	}
	f.Started = service.Extensions
	f.Telemetry, _ = conf.Get("service::telemetry::metrics").(map[string]any)
	receivers, processors := map[string]bool{}, map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(service.Pipelines)) {
		p := service.Pipelines[name]
		f.Pipelines = append(f.Pipelines, Pipeline{Name: name, Receivers: p.Receivers, Processors: p.Processors, Exporters: p.Exporters})
		for _, id := range p.Receivers {
			receivers[id] = true
		}
		for _, id := range p.Processors {
			processors[id] = true
		}
	}
	if len(f.Pipelines) == 0 {
		f.problem("the configuration has no pipeline; add service::pipelines with a receiver and an exporter")
	}
	if err := extensioncheck.NewFactory().Create(confmap.ConverterSettings{Logger: zap.NewNop()}).Convert(ctx, conf); err != nil {
		f.Problems = append(f.Problems, split(err)...)
	}
	f.components(conf, "receivers", receivers, func(name string, section *confmap.Conf) error {
		config := vllmreceiver.NewFactory().CreateDefaultConfig().(*vllmreceiver.Config)
		if err := decode(section, config); err != nil {
			return err
		}
		f.Receivers = append(f.Receivers, Receiver{name, config})
		return nil
	})
	f.components(conf, "processors", processors, func(name string, section *confmap.Conf) error {
		config := vllmprocessor.NewFactory().CreateDefaultConfig().(*vllmprocessor.Config)
		if err := decode(section, config); err != nil {
			return err
		}
		f.Processors = append(f.Processors, Processor{name, config})
		return nil
	})
	for name, section := range sections(conf, "connectors") {
		f.Others["connectors::"+name] = section
	}
	f.dangling(conf)
	return f
}

func (f *File) problem(format string, args ...any) {
	f.Problems = append(f.Problems, fmt.Errorf(format, args...))
}

// components hands out the sections of our components that are used, and keeps all others.
func (f *File) components(conf *confmap.Conf, kind string, used map[string]bool, ours func(name string, section *confmap.Conf) error) {
	all := sections(conf, kind)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		var id component.ID
		if err := id.UnmarshalText([]byte(name)); err != nil {
			f.problem("%s::%s is not the name of a component: %w", kind, name, err)
			continue
		}
		switch {
		case id.Type().String() != vllmreceiver.NewFactory().Type().String():
			f.Others[kind+"::"+name] = all[name]
		case !used[name]:
			f.Warnings = append(f.Warnings, fmt.Sprintf("No pipeline uses %s::%s, so it does nothing", kind, name))
		default:
			if err := ours(name, confmap.NewFromStringMap(all[name])); err != nil {
				f.problem("%s::%s: %w", kind, name, err)
			}
		}
	}
}

// dangling reports components of pipelines that have no section. A connector is both an
// exporter and a receiver.
func (f *File) dangling(conf *confmap.Conf) {
	connectors := sections(conf, "connectors")
	for _, p := range f.Pipelines {
		for _, role := range []struct {
			kind, section string
			names         []string
		}{{"receiver", "receivers", p.Receivers}, {"processor", "processors", p.Processors}, {"exporter", "exporters", p.Exporters}} {
			known := sections(conf, role.section)
			for _, name := range role.names {
				_, has := known[name]
				if _, connects := connectors[name]; !has && (!connects || role.section == "processors") {
					f.problem("the pipeline %s names the %s %q, which has no section; add it under %s", p.Name, role.kind, name, role.section)
				}
			}
		}
	}
	for _, name := range f.Started {
		if _, has := f.Extensions[name]; !has {
			f.problem("service::extensions names %q, which has no section; add it under extensions", name)
		}
	}
}

// decode decodes and validates a section.
func decode(section *confmap.Conf, into component.Config) error {
	if err := section.Unmarshal(into); err != nil {
		return err
	}
	return confmap.Validate(into)
}

// sections returns the components of a kind. One without settings has an empty section.
func sections(conf *confmap.Conf, kind string) map[string]map[string]any {
	all, _ := conf.Get(kind).(map[string]any)
	out := make(map[string]map[string]any, len(all))
	for name, section := range all {
		settings, _ := section.(map[string]any)
		out[name] = settings
	}
	return out
}

// split takes joined errors apart.
func split(err error) []error {
	var joined interface{ Unwrap() []error }
	if errors.As(err, &joined) {
		return joined.Unwrap()
	}
	return []error{err}
}

// Processor returns the processor that follows a receiver in its first pipeline; nil if
// none does.
func (f *File) Processor(receiver string) *vllmprocessor.Config {
	for _, p := range f.Pipelines {
		if processor := f.ProcessorIn(&p); processor != nil && slices.Contains(p.Receivers, receiver) {
			return processor
		}
	}
	return nil
}

// ProcessorIn returns the first processor of a pipeline; nil without one.
func (f *File) ProcessorIn(p *Pipeline) *vllmprocessor.Config {
	for _, name := range p.Processors {
		i, found := slices.BinarySearchFunc(f.Processors, name, func(p Processor, name string) int { return cmp.Compare(p.Name, name) })
		if found {
			return f.Processors[i].Config
		}
	}
	return nil
}
