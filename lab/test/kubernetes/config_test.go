package kubernetes

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
)

// configuration is the part of a collector configuration that the pod must fit.
type configuration struct {
	Extensions struct {
		Health      healthCheck `yaml:"health_check"`
		Ready       healthCheck `yaml:"health_check/ready"`
		FileStorage struct {
			Directory  string
			MaxSize    int64 `yaml:"max_size"`
			Recreate   bool
			Compaction struct{ Directory string }
		} `yaml:"file_storage"`
		StorageCheck struct {
			SetAside struct {
				MaxSizeMiB int64 `yaml:"max_size_mib"`
			} `yaml:"set_aside"`
		} `yaml:"storage_check"`
		BearerToken *struct{ Filename string } `yaml:"bearertokenauth"`
	}
	Processors map[string]struct{ Storage string }
	Exporters  map[string]struct {
		Retry struct {
			MaxElapsedTime *int `yaml:"max_elapsed_time"`
		} `yaml:"retry_on_failure"`
		Queue struct {
			Storage string
			Size    int64 `yaml:"queue_size"`
			Sizer   string
		} `yaml:"sending_queue"`
	}
	Service struct {
		Extensions []string
		Telemetry  struct {
			Resource struct{ Attributes []attribute }
			Metrics  struct {
				Readers []struct {
					Pull struct {
						Exporter struct {
							Prometheus struct {
								Host string
								Port int32
							}
						}
					}
				}
			}
		}
		Pipelines map[string]struct{ Receivers, Processors []string }
	}
}

// attribute is one of the resource of the collector's own metrics.
type attribute struct{ Name, Value string }

// configTexts are the configurations that a container's --config name, out of the ConfigMaps
// that are mounted there, in their order.
func configTexts(index map[string]runtime.Object, w workload, container corev1.Container) ([]string, bool) {
	var texts []string
	for _, arg := range container.Args {
		file, ok := strings.CutPrefix(arg, "--config=")
		if !ok {
			continue
		}
		text, ok := mountedText(index, w, container, file)
		if !ok {
			return nil, false
		}
		texts = append(texts, text)
	}
	return texts, len(texts) > 0
}

// mountedText is the text of a file that is a key of a mounted ConfigMap.
func mountedText(index map[string]runtime.Object, w workload, container corev1.Container, file string) (string, bool) {
	mount, ok := mountOf(container, file)
	if !ok {
		return "", false
	}
	for _, volume := range w.template.Spec.Volumes {
		if volume.Name != mount.Name || volume.ConfigMap == nil {
			continue
		}
		if m, ok := index[key("ConfigMap", w.namespace, volume.ConfigMap.Name)].(*corev1.ConfigMap); ok {
			name := strings.TrimPrefix(file, mount.MountPath+"/")
			for _, item := range volume.ConfigMap.Items {
				if item.Path == name {
					name = item.Key
				}
			}
			text, ok := m.Data[name]
			return text, ok
		}
	}
	return "", false
}

// merged merges configurations as the collector does: maps by their keys, and anything else
// is replaced by the later one.
func merged(texts []string) (string, error) {
	all := map[string]any{}
	for _, text := range texts {
		var next map[string]any
		if err := yaml.Unmarshal([]byte(text), &next); err != nil {
			return "", err
		}
		merge(all, next)
	}
	out, err := yaml.Marshal(all)
	return string(out), err
}

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

// variables is the environment of a container: what the manifests say, and for what
// only a cluster knows, a value of the same form.
func variables(index map[string]runtime.Object, w workload, container corev1.Container) map[string]string {
	values := map[string]string{}
	for _, from := range container.EnvFrom {
		if from.ConfigMapRef != nil {
			if m, ok := index[key("ConfigMap", w.namespace, from.ConfigMapRef.Name)].(*corev1.ConfigMap); ok {
				maps.Copy(values, m.Data)
			}
		}
		if from.SecretRef != nil {
			if s, ok := index[key("Secret", w.namespace, from.SecretRef.Name)].(*corev1.Secret); ok {
				for name, value := range s.Data {
					values[name] = string(value)
				}
			}
		}
	}
	fields := map[string]string{
		"status.podIP": "127.0.0.1", "spec.nodeName": "node-1", "metadata.name": "pod-1",
		"metadata.namespace": w.namespace, "metadata.uid": "6a1f3c5e-0000-4000-8000-000000000001",
		"metadata.labels['apps.kubernetes.io/pod-index']": "0",
	}
	for _, e := range container.Env {
		values[e.Name] = e.Value
		if e.ValueFrom != nil && e.ValueFrom.FieldRef != nil {
			values[e.Name] = fields[e.ValueFrom.FieldRef.FieldPath]
		}
		if e.ValueFrom != nil && e.ValueFrom.SecretKeyRef != nil {
			from := e.ValueFrom.SecretKeyRef
			if s, ok := index[key("Secret", w.namespace, from.Name)].(*corev1.Secret); ok {
				values[e.Name] = string(s.Data[from.Key])
			}
		}
	}
	return values
}

// variable is a reference to the environment without another one inside.
var variable = regexp.MustCompile(`\$\{env:(\w+)\}`)

// expand puts the environment into a text, also where the name of a variable contains another
// one, and returns the names.
func expand(text string, values map[string]string) (string, []string) {
	var names []string
	for {
		match := variable.FindStringSubmatch(text)
		if match == nil {
			return text, names
		}
		names = append(names, match[1])
		text = strings.ReplaceAll(text, match[0], values[match[1]])
	}
}

// configured checks that the collector's configuration and its pod fit together.
func configured(index map[string]runtime.Object, w workload, container corev1.Container, say func(bool, string, ...any)) {
	texts, ok := configTexts(index, w, container)
	if !ok {
		say(true, "no configuration where --config points")
		return
	}
	text, err := merged(texts)
	if err != nil {
		say(true, "%v", err)
		return
	}
	values := variables(index, w, container)
	// Some are for Go or for the manifests only.
	used := map[string]bool{"GOMEMLIMIT": true, "PICKER_NAMESPACE": true, "MONITORING_NAMESPACE": true}
	used["VLLM_PORT"] = strings.Contains(text, "inference_pool:")
	expanded, names := expand(text, values)
	for _, name := range names {
		used[name] = true
		say(values[name] == "", "the configuration reads %s, which nothing sets", name)
	}
	for name := range values {
		say(!used[name], "nothing reads %s", name)
	}

	var config configuration
	if err := yaml.Unmarshal([]byte(expanded), &config); err != nil {
		say(true, "%v", err)
		return
	}
	watched(w, container, config, values, say)

	storage := config.Extensions.FileStorage
	say(!slices.Contains(config.Service.Extensions, "storage_check"), "a damaged queue ends the collector each time it starts")
	say(!storage.Recreate, "a damaged queue may not be set aside")
	for name, processor := range config.Processors {
		say(strings.HasPrefix(name, "vllm") && processor.Storage != "file_storage", "processor %s forgets what it has learned with a restart", name)
	}
	for _, dir := range []string{storage.Directory, storage.Compaction.Directory} {
		mount, ok := mountOf(container, dir)
		say(!ok || mount.ReadOnly, "cannot write the queue to %s", dir)
		for _, volume := range w.template.Spec.Volumes {
			if volume.Name != mount.Name || volume.EmptyDir == nil {
				continue
			}
			limit := volume.EmptyDir.SizeLimit
			say(limit == nil || limit.Value() < storage.MaxSize*5/4, "the queue does not fit into its volume")
			aside := config.Extensions.StorageCheck.SetAside.MaxSizeMiB << 20
			say(limit == nil || limit.Value() < storage.MaxSize+aside, "a damaged queue and the new one do not fit into the volume")
			ephemeral := container.Resources.Limits[corev1.ResourceEphemeralStorage]
			say(limit == nil || ephemeral.Cmp(*limit) < 0, "the volume does not fit into the container's limit")
		}
	}
	if bearer := config.Extensions.BearerToken; bearer != nil {
		say(!isToken(w, container, bearer.Filename), "no token at %s", bearer.Filename)
	}
	for name, exporter := range config.Exporters {
		if name == "prometheus" {
			continue // nothing is sent
		}
		say(exporter.Queue.Storage != "file_storage", "exporter %s has its queue in memory", name)
		say(exporter.Queue.Sizer != "bytes" || exporter.Queue.Size > storage.MaxSize/2, "the queue of %s is not bounded well below its file", name)
		say(exporter.Retry.MaxElapsedTime == nil || *exporter.Retry.MaxElapsedTime != 0, "exporter %s gives up", name)
	}
	for name, pipeline := range config.Service.Pipelines {
		wanted := []string{"memory_limiter", "vllm"}
		say(!slices.Equal(pipeline.Processors, wanted) && !slices.Equal(pipeline.Processors, append(wanted, "transform/cluster")), "pipeline %s has other processors than %v", name, wanted)
	}

	soft, err := resource.ParseQuantity(strings.TrimSuffix(values["GOMEMLIMIT"], "B"))
	hard := container.Resources.Limits[corev1.ResourceMemory]
	say(err != nil || soft.Value() < hard.Value()/2 || soft.Value() > hard.Value()*9/10, "GOMEMLIMIT does not fit the limit")
}

// isToken reports whether a path is that of a projected token of the pod's account.
func isToken(w workload, container corev1.Container, file string) bool {
	mount, ok := mountOf(container, file)
	if !ok {
		return false
	}
	for _, volume := range w.template.Spec.Volumes {
		if volume.Name != mount.Name || volume.Projected == nil {
			continue
		}
		for _, source := range volume.Projected.Sources {
			if source.ServiceAccountToken != nil && mount.MountPath+"/"+source.ServiceAccountToken.Path == file {
				return true
			}
		}
	}
	return false
}
