package faults

import (
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/otelcol-vllm/otelcol-vllm/lab/test/fleet"
)

// Shipped is a deployment of examples/kubernetes: its configuration, and what its
// container may use.
type Shipped struct {
	// Memory is the limit of the container in bytes; GoMemory is its GOMEMLIMIT.
	Memory   int64
	GoMemory string
	// Processors is how many processors the limit of the container allows.
	Processors int
	// Gates are the arguments of the container that set feature gates.
	Gates []string
	// config is the configuration as it is shipped.
	config map[string]any
}

// container is what this package reads of a manifest.
type container struct {
	Spec struct {
		Template struct {
			Spec struct {
				Containers []struct {
					Name      string
					Args      []string
					Env       []struct{ Name, Value string }
					Resources struct{ Limits struct{ CPU, Memory string } }
				}
			}
		}
	}
}

// LoadShipped reads a deployment: a folder and the name of its manifest. Its configuration is
// one file, or what it reads and, in the folder beside it, what all collectors do.
func LoadShipped(folder, manifest string) (*Shipped, error) {
	var c container
	if err := load(filepath.Join(folder, manifest), &c); err != nil {
		return nil, err
	}
	s := &Shipped{}
	files := []string{filepath.Join(folder, "collector.yaml")}
	if own := filepath.Join(folder, "receivers.yaml"); exists(own) {
		files = []string{filepath.Join(folder, "..", "collector", "collector.yaml"), filepath.Join(folder, "..", "collector", "exporter.yaml"), own}
	}
	s.config = map[string]any{}
	for _, file := range files {
		var part map[string]any
		if err := load(file, &part); err != nil {
			return nil, err
		}
		merge(s.config, part)
	}
	for _, one := range c.Spec.Template.Spec.Containers {
		if one.Name != "collector" {
			continue
		}
		memory, err := resource.ParseQuantity(one.Resources.Limits.Memory)
		if err != nil {
			return nil, fmt.Errorf("%s: the limit of memory: %w", manifest, err)
		}
		cpu, err := resource.ParseQuantity(one.Resources.Limits.CPU)
		if err != nil {
			return nil, fmt.Errorf("%s: the limit of processors: %w", manifest, err)
		}
		s.Memory, s.Processors = memory.Value(), int(math.Ceil(cpu.AsApproximateFloat64()))
		for _, arg := range one.Args {
			if strings.HasPrefix(arg, "--feature-gates=") {
				s.Gates = append(s.Gates, arg)
			}
		}
		for _, variable := range one.Env {
			if variable.Name == "GOMEMLIMIT" {
				s.GoMemory = variable.Value
			}
		}
		return s, nil
	}
	return nil, fmt.Errorf("%s has no container called collector", manifest)
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// merge merges a configuration into another one as the collector does: maps by their keys,
// and anything else is replaced.
func merge(into, from map[string]any) {
	for name, value := range from {
		before, isMap := into[name].(map[string]any)
		if after, ok := value.(map[string]any); ok && isMap {
			merge(before, after)
			continue
		}
		into[name] = value
	}
}

func load(file string, into any) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if err := yaml.Unmarshal(content, into); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}

// Setup is what a run changes of a shipped configuration: where it reads and
// sends, where its files are, and that time passes faster.
type Setup struct {
	Interval, Timeout time.Duration
	Targets           []any
	Discovery         map[string]any
	// Backend is a URL, OTLP an address to listen on or empty.
	Backend, OTLP string
	// Dir is the folder of the queue.
	Dir string
}

// Config is the shipped configuration with the changes of a setup, as YAML.
func (s *Shipped) Config(setup *Setup) ([]byte, error) {
	content, err := yaml.Marshal(s.config)
	if err != nil {
		return nil, err
	}
	// All folders of the container lie under one.
	content = []byte(strings.ReplaceAll(string(content), "/var/lib/otelcol-vllm", setup.Dir))
	var c map[string]any
	if err := yaml.Unmarshal(content, &c); err != nil {
		return nil, err
	}
	at := func(path ...string) map[string]any { return fleet.Section(c, path...) }
	for name, extension := range at("extensions") {
		check, _ := extension.(map[string]any)
		if kind, _, _ := strings.Cut(name, "/"); kind != "health_check" && kind != "vllm_fleet" {
			continue
		}
		if _, newer := check["http"]; newer {
			check = at("extensions", name, "http")
		}
		check["endpoint"] = "127.0.0.1:0"
	}
	vllm := at("receivers", "vllm")
	delete(vllm, "discovery")
	maps.Copy(vllm, map[string]any{
		"collection_interval": setup.Interval.String(), "timeout": setup.Timeout.String(), "targets": setup.Targets,
	})
	if setup.Discovery != nil {
		vllm["discovery"] = setup.Discovery
	}
	receivers := []any{"vllm"}
	if setup.OTLP != "" {
		at("receivers", "otlp", "protocols", "http")["endpoint"] = setup.OTLP
		receivers = append(receivers, "otlp")
	}
	at("service", "pipelines", "metrics")["receivers"] = receivers
	// The limits are shares of the container's memory, which this machine does not have.
	limiter := at("processors", "memory_limiter")
	for _, key := range []string{"limit", "spike_limit"} {
		if share, ok := limiter[key+"_percentage"].(int); ok {
			delete(limiter, key+"_percentage")
			limiter[key+"_mib"] = s.Memory * int64(share) / 100 >> 20
		}
	}
	exporter := at("exporters", "otlp_http")
	exporter["endpoint"] = setup.Backend
	delete(exporter, "headers")
	at("exporters", "otlp_http", "sending_queue", "batch")["flush_timeout"] = "500ms"
	at("service", "telemetry", "metrics")["level"] = "none"
	return yaml.Marshal(c)
}

// Env is the environment of the container.
func (s *Shipped) Env() map[string]string {
	return map[string]string{
		"GOMEMLIMIT": s.GoMemory, "GOMAXPROCS": strconv.Itoa(s.Processors),
		"POD_NAMESPACE": "otelcol-vllm", "POD_NAME": "collector", "POD_IP": "127.0.0.1",
	}
}
