package kubernetes

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
)

// configuration is the part of a collector configuration that the pod must fit.
type configuration struct {
	Extensions struct {
		HealthCheck struct{ Endpoint string } `yaml:"health_check"`
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
		Pipelines  map[string]struct{ Receivers, Processors []string }
	}
}

// configText is the configuration that a container's --config names, out of the
// ConfigMap that is mounted there.
func configText(index map[string]runtime.Object, w workload, container corev1.Container) (string, bool) {
	for _, arg := range container.Args {
		file, ok := strings.CutPrefix(arg, "--config=")
		if !ok {
			continue
		}
		mount, ok := mountOf(container, file)
		if !ok {
			continue
		}
		for _, volume := range w.template.Spec.Volumes {
			if volume.Name != mount.Name || volume.ConfigMap == nil {
				continue
			}
			if m, ok := index[key("ConfigMap", w.namespace, volume.ConfigMap.Name)].(*corev1.ConfigMap); ok {
				text, ok := m.Data[strings.TrimPrefix(file, mount.MountPath+"/")]
				return text, ok
			}
		}
	}
	return "", false
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
	}
	for _, e := range container.Env {
		values[e.Name] = e.Value
		if e.ValueFrom != nil && e.ValueFrom.FieldRef != nil {
			values[e.Name] = fields[e.ValueFrom.FieldRef.FieldPath]
		}
	}
	return values
}

var variable = regexp.MustCompile(`\$\{env:(\w+)`)

// configured checks that the collector's configuration and its pod fit together.
func configured(index map[string]runtime.Object, w workload, container corev1.Container, say func(bool, string, ...any)) {
	text, ok := configText(index, w, container)
	if !ok {
		say(true, "no configuration where --config points")
		return
	}
	values := variables(index, w, container)
	used := map[string]bool{"GOMEMLIMIT": true, "PICKER_NAMESPACE": true}
	for _, match := range variable.FindAllStringSubmatch(text, -1) {
		used[match[1]] = true
		say(values[match[1]] == "", "the configuration reads %s, which nothing sets", match[1])
	}
	for name := range values {
		say(!used[name], "nothing reads %s", name)
	}

	var config configuration
	if err := yaml.Unmarshal([]byte(text), &config); err != nil {
		say(true, "%v", err)
		return
	}
	_, port, _ := strings.Cut(config.Extensions.HealthCheck.Endpoint, "]:")
	say(!slices.ContainsFunc(container.Ports, func(p corev1.ContainerPort) bool {
		return container.LivenessProbe != nil && container.LivenessProbe.HTTPGet != nil &&
			p.Name == container.LivenessProbe.HTTPGet.Port.StrVal && strconv.Itoa(int(p.ContainerPort)) == port
	}), "the probes do not ask where health_check listens")

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
		say(exporter.Queue.Storage != "file_storage", "exporter %s has its queue in memory", name)
		say(exporter.Queue.Sizer != "bytes" || exporter.Queue.Size > storage.MaxSize/2, "the queue of %s is not bounded well below its file", name)
		say(exporter.Retry.MaxElapsedTime == nil || *exporter.Retry.MaxElapsedTime != 0, "exporter %s gives up", name)
	}
	for name, pipeline := range config.Service.Pipelines {
		wanted := []string{"memory_limiter"}
		if slices.Contains(pipeline.Receivers, "vllm") {
			// Gateways have nothing that it derives from.
			wanted = append(wanted, "vllm")
		}
		say(!slices.Equal(pipeline.Processors, wanted), "pipeline %s has other processors than %v", name, wanted)
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
