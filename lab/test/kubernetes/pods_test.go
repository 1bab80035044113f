package kubernetes

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
)

// workload is an object that makes pods.
type workload struct {
	name, namespace string
	selector        *metav1.LabelSelector
	template        corev1.PodTemplateSpec
	// claims are the volumes that each pod gets of its own.
	claims []corev1.PersistentVolumeClaim
	// rolls is true if pods are replaced some at a time, each after the ones before were
	// ready for minReady.
	rolls    bool
	minReady time.Duration
}

func (c cluster) workloads() []workload {
	var all []workload
	for _, object := range c {
		switch w := object.(type) {
		case *appsv1.DaemonSet:
			all = append(all, workload{
				name: name(w), namespace: w.Namespace, selector: w.Spec.Selector, template: w.Spec.Template,
				rolls: true, minReady: time.Duration(w.Spec.MinReadySeconds) * time.Second,
			})
		case *appsv1.Deployment:
			all = append(all, workload{name: name(w), namespace: w.Namespace, selector: w.Spec.Selector, template: w.Spec.Template})
		case *appsv1.StatefulSet:
			all = append(all, workload{
				name: name(w), namespace: w.Namespace, selector: w.Spec.Selector, template: w.Spec.Template,
				claims: w.Spec.VolumeClaimTemplates, rolls: true, minReady: time.Duration(w.Spec.MinReadySeconds) * time.Second,
			})
		}
	}
	return all
}

// ours are the containers that run this project's image.
func (w workload) ours() []corev1.Container {
	return slices.DeleteFunc(slices.Clone(w.template.Spec.Containers), func(c corev1.Container) bool {
		return !strings.Contains(c.Image, "otelcol-vllm")
	})
}

func (c cluster) index() map[string]runtime.Object {
	index := map[string]runtime.Object{}
	for _, object := range c {
		index[name(object)] = object
	}
	return index
}

// complaints collects the mistakes.
type complaints []string

func (c *complaints) add(condition bool, format string, args ...any) {
	if condition {
		*c = append(*c, fmt.Sprintf(format, args...))
	}
}

// podComplaints are what is wrong with the pods: references to what is not there,
// and confinement that is missing.
func (c cluster) podComplaints() []string {
	var found complaints
	index := c.index()
	for _, w := range c.workloads() {
		say := func(condition bool, format string, args ...any) {
			found.add(condition, w.name+": "+format, args...)
		}
		exists := func(kind, referred string) {
			say(index[key(kind, w.namespace, referred)] == nil, "no %s", key(kind, w.namespace, referred))
		}
		pod := w.template.Spec
		selector, err := metav1.LabelSelectorAsSelector(w.selector)
		say(err != nil || selector.Empty() || !selector.Matches(labels.Set(w.template.Labels)), "its selector does not match its pods")
		say(len(w.ours()) != 1, "%d containers of ours", len(w.ours()))
		say(pod.HostNetwork || pod.HostPID || pod.HostIPC, "shares a namespace of the node")
		if pod.ServiceAccountName != "" {
			exists("ServiceAccount", pod.ServiceAccountName)
		}
		volumes := map[string]corev1.Volume{}
		for _, v := range pod.Volumes {
			say(volumes[v.Name].Name != "", "volume %s twice", v.Name)
			volumes[v.Name] = v
			switch {
			case v.ConfigMap != nil:
				exists("ConfigMap", v.ConfigMap.Name)
			case v.Secret != nil:
				exists("Secret", v.Secret.SecretName)
			case v.PersistentVolumeClaim != nil:
				exists("PersistentVolumeClaim", v.PersistentVolumeClaim.ClaimName)
			case v.EmptyDir != nil:
				say(v.EmptyDir.SizeLimit == nil, "volume %s has no limit", v.Name)
			}
		}
		for _, claim := range w.claims {
			say(volumes[claim.Name].Name != "", "volume %s twice", claim.Name)
			volumes[claim.Name] = corev1.Volume{Name: claim.Name}
		}
		mounted := map[string]bool{}
		ports := map[string]bool{}
		for _, container := range pod.Containers {
			for _, m := range container.VolumeMounts {
				say(volumes[m.Name].Name == "", "no volume %s", m.Name)
				mounted[m.Name] = true
			}
			for _, from := range container.EnvFrom {
				if from.ConfigMapRef != nil {
					exists("ConfigMap", from.ConfigMapRef.Name)
				}
				if from.SecretRef != nil {
					exists("Secret", from.SecretRef.Name)
				}
			}
			for _, p := range container.Ports {
				say(p.HostPort != 0, "port %s is the node's", p.Name)
				say(len(p.Name) > 15, "port %s has a name that is too long", p.Name)
				say(ports[p.Name] || ports[fmt.Sprint(p.ContainerPort)], "port %s or %d twice", p.Name, p.ContainerPort)
				ports[p.Name], ports[fmt.Sprint(p.ContainerPort)] = true, true
			}
		}
		for _, volume := range slices.Sorted(maps.Keys(volumes)) {
			say(!mounted[volume], "volume %s is not mounted", volume)
		}
		for _, container := range w.ours() {
			confined(pod, container, say)
			configured(index, w, container, say)
		}
	}
	return found
}

// confined checks the settings that confine a container.
func confined(pod corev1.PodSpec, container corev1.Container, say func(bool, string, ...any)) {
	own := container.SecurityContext
	if own == nil {
		say(true, "no securityContext")
		return
	}
	around := pod.SecurityContext
	if around == nil {
		around = &corev1.PodSecurityContext{}
	}
	nonRoot, user, seccomp := own.RunAsNonRoot, own.RunAsUser, own.SeccompProfile
	if nonRoot == nil {
		nonRoot = around.RunAsNonRoot
	}
	if user == nil {
		user = around.RunAsUser
	}
	if seccomp == nil {
		seccomp = around.SeccompProfile
	}
	say(nonRoot == nil || !*nonRoot, "may run as root")
	say(user == nil || *user != imageUser, "does not run as the image's user")
	say(seccomp == nil || seccomp.Type != corev1.SeccompProfileTypeRuntimeDefault, "has no seccomp profile")
	say(own.ReadOnlyRootFilesystem == nil || !*own.ReadOnlyRootFilesystem, "may write to its image")
	say(own.AllowPrivilegeEscalation == nil || *own.AllowPrivilegeEscalation, "may gain privileges")
	say(own.Privileged != nil && *own.Privileged, "is privileged")
	say(own.Capabilities == nil || !slices.Equal(own.Capabilities.Drop, []corev1.Capability{"ALL"}) || len(own.Capabilities.Add) > 0,
		"keeps capabilities")
	for _, resource := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		request, limit := container.Resources.Requests[resource], container.Resources.Limits[resource]
		say(request.IsZero() || limit.IsZero() || request.Cmp(limit) > 0, "no request and limit of %s", resource)
	}
	say(container.LivenessProbe == nil, "no liveness probe")
	for what, probe := range map[string]*corev1.Probe{
		"liveness": container.LivenessProbe, "readiness": container.ReadinessProbe, "startup": container.StartupProbe,
	} {
		if probe == nil {
			continue
		}
		if probe.HTTPGet != nil && probe.HTTPGet.Port.IntValue() != 0 {
			// A number needs no name.
			continue
		}
		say(probe.HTTPGet == nil || !slices.ContainsFunc(container.Ports, func(p corev1.ContainerPort) bool {
			return p.Name == probe.HTTPGet.Port.StrVal
		}), "the %s probe asks a port that is not there", what)
	}
}

// mountOf is the mount that a path is in, if any.
func mountOf(container corev1.Container, file string) (corev1.VolumeMount, bool) {
	var best corev1.VolumeMount
	for _, m := range container.VolumeMounts {
		if (file == m.MountPath || strings.HasPrefix(path.Clean(file), m.MountPath+"/")) && len(m.MountPath) > len(best.MountPath) {
			best = m
		}
	}
	return best, best.Name != ""
}
