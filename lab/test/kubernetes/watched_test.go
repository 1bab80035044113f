package kubernetes

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// gate lets health_check answer by the status of components.
const gate = "--feature-gates=+extension.healthcheck.useComponentStatus"

// healthCheck is the configuration of an extension health_check, with or without the gate.
type healthCheck struct {
	Endpoint string
	HTTP     *struct {
		Endpoint string
		Status   struct{ Path string }
	}
	ComponentHealth struct {
		Permanent   bool          `yaml:"include_permanent_errors"`
		Recoverable bool          `yaml:"include_recoverable_errors"`
		For         time.Duration `yaml:"recovery_duration"`
	} `yaml:"component_health"`
}

// port is where it listens, and path what it answers.
func (h healthCheck) port() (port, path string) {
	endpoint, path := h.Endpoint, "/"
	if h.HTTP != nil {
		endpoint, path = h.HTTP.Endpoint, h.HTTP.Status.Path
	}
	_, port, _ = strings.Cut(endpoint, "]:")
	return port, path
}

// asks reports whether a probe asks a health check.
func asks(container corev1.Container, probe *corev1.Probe, h healthCheck) bool {
	if probe == nil || probe.HTTPGet == nil {
		return false
	}
	port, path := h.port()
	if number := probe.HTTPGet.Port.IntValue(); number != 0 {
		return probe.HTTPGet.Path == path && strconv.Itoa(number) == port
	}
	return probe.HTTPGet.Path == path && slices.ContainsFunc(container.Ports, func(p corev1.ContainerPort) bool {
		return p.Name == probe.HTTPGet.Port.StrVal && strconv.Itoa(int(p.ContainerPort)) == port
	})
}

// patience is how long a probe fails until the kubelet acts.
func patience(probe *corev1.Probe) time.Duration {
	return time.Duration(probe.PeriodSeconds) * time.Second * time.Duration(probe.FailureThreshold)
}

// watched checks that probes ask what they should, and that the collector's own metrics can
// be read.
func watched(w workload, container corev1.Container, config configuration, values map[string]string, say func(bool, string, ...any)) {
	health, ready := config.Extensions.Health, config.Extensions.Ready
	say(!asks(container, container.LivenessProbe, health), "the liveness probe does not ask where health_check listens")
	say(health.ComponentHealth.Permanent || health.ComponentHealth.Recoverable, "an error that a restart does not help against restarts the collector")
	say(!asks(container, container.StartupProbe, health), "the startup probe does not ask where health_check listens")
	if container.StartupProbe != nil {
		say(patience(container.StartupProbe) < 5*time.Minute, "a start with a full queue takes too long for the startup probe")
	}
	if container.ReadinessProbe != nil {
		say(!asks(container, container.ReadinessProbe, ready), "the readiness probe does not ask where health_check/ready listens")
		say(!ready.ComponentHealth.Permanent || !ready.ComponentHealth.Recoverable || ready.ComponentHealth.For == 0,
			"the collector is ready whatever its components report")
		say(w.rolls && w.minReady <= ready.ComponentHealth.For, "a rollout goes on before a collector can be seen to fail")
		say(!slices.Contains(config.Service.Extensions, "health_check/ready"), "health_check/ready is not started")
	}
	say(health.HTTP != nil && !slices.Contains(container.Args, gate), "health_check needs its feature gate")

	readers := config.Service.Telemetry.Metrics.Readers
	if len(readers) != 1 {
		say(true, "%d readers of the collector's own metrics", len(readers))
		return
	}
	at := readers[0].Pull.Exporter.Prometheus
	say(at.Host != values["POD_IP"], "the collector's own metrics are on %q, not on the pod's address", at.Host)
	say(!slices.ContainsFunc(container.Ports, func(p corev1.ContainerPort) bool {
		return strings.HasSuffix(p.Name, "metrics") && p.ContainerPort == at.Port
	}), "no port is named for the collector's own metrics on %d", at.Port)
	instance := fmt.Sprintf("%s.%s", values["POD_NAMESPACE"], values["POD_NAME"])
	say(!slices.Contains(config.Service.Telemetry.Resource.Attributes, attribute{"service.instance.id", instance}), "each start makes new series of the collector's own metrics")
}
