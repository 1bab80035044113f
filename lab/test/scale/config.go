package scale

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"go.yaml.in/yaml/v3"
)

// example is the configuration that is run.
func (r *run) example() string { return filepath.Join(r.Root, "examples", "shards.yaml") }

// objective is the threshold of the objective, a bound of vLLM's histogram.
const objective = 2500 * time.Millisecond

// addition is what the run adds to the example: the exporter of otlp-vendor.yaml, as its comment
// says, an objective, storage, and what differs between processes. The environment of each member
// has the rest.
func addition(root string, interval, window time.Duration, backend string) ([]byte, error) {
	content, err := os.ReadFile(filepath.Join(root, "examples", "otlp-vendor.yaml"))
	if err != nil {
		return nil, err
	}
	var vendor struct {
		Extensions map[string]any            `yaml:"extensions"`
		Exporters  map[string]map[string]any `yaml:"exporters"`
	}
	if err := yaml.Unmarshal(content, &vendor); err != nil {
		return nil, fmt.Errorf("otlp-vendor.yaml: %w", err)
	}
	exporter := vendor.Exporters["otlp_http"]
	exporter["endpoint"] = backend
	delete(exporter, "headers")
	queue, _ := exporter["sending_queue"].(map[string]any)
	// The example's queue is for one server: thousands fill it in minutes.
	queue["queue_size"] = int64(8e9)
	if batch, is := queue["batch"].(map[string]any); is {
		batch["flush_timeout"] = min(5*time.Second, interval/2).String()
	}
	type object = map[string]any
	return yaml.Marshal(object{
		"extensions": vendor.Extensions,
		"receivers": object{"vllm": object{
			"collection_interval": interval.String(), "timeout": min(5*time.Second, interval).String(), "headers": object{lifeHeader: "${env:LIFE}"},
		}},
		"processors": object{"vllm": object{
			"window": window.String(), "storage": "file_storage",
			"pool":       object{"interval": min(15*time.Second, interval).String()},
			"objectives": []any{object{"name": "ttft", "metric": firstMetric, "threshold": objective.String(), "target": 0.95}},
		}},
		"exporters": object{"otlp_http": exporter},
		"service": object{
			"extensions": []any{"storage_check", "file_storage"},
			"pipelines":  object{"metrics": object{"exporters": []any{"otlp_http"}}},
			"telemetry": object{
				"resource": object{"service.instance.id": "${env:INSTANCE}"},
				"metrics": object{"readers": []any{object{"pull": object{"exporter": object{"prometheus": object{
					"host": "127.0.0.1", "port": "${env:OWN_PORT}",
				}}}}}},
			},
		},
	})
}
