package kubernetes

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/extension"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/yaml"

	"github.com/otelcol-vllm/otelcol-vllm/extension/vllmfleetextension"
	"github.com/otelcol-vllm/otelcol-vllm/internal/fleet"
)

// livenessProbe is that which the component adds to the vLLM container.
func livenessProbe(t *testing.T) *corev1.Probe {
	t.Helper()
	containers := above(t, copied(t), "sidecar", "sidecar-probes").workloads()[0].template.Spec.Containers
	for _, c := range containers {
		if c.Name == "vllm" {
			return c.LivenessProbe
		}
	}
	require.Fail(t, "no container vllm")
	return nil
}

// readinessProbe is that of the patch for vLLM pods whose pool has a collector.
func readinessProbe(t *testing.T) *corev1.Probe {
	t.Helper()
	content, err := os.ReadFile(root + "/examples/probes/readiness.yaml")
	require.NoError(t, err)
	var patch appsv1.Deployment
	require.NoError(t, yaml.UnmarshalStrict(content, &patch))
	return patch.Spec.Template.Spec.Containers[0].ReadinessProbe
}

// pretended is a processor that knows three servers of a pool; the first is in the condition that a test sets.
type pretended struct{ first func(*fleet.Engine) }

func (p pretended) Snapshot() *fleet.Snapshot {
	known, now := &fleet.Snapshot{Window: time.Minute}, time.Now()
	for i := range 3 {
		pod := "pod-" + strconv.Itoa(i)
		e := fleet.Engine{
			Key: pod, Resource: pod, Server: "vllm." + pod, Address: "127.0.0.1:" + strconv.Itoa(8000+i), Namespace: "vllm", Pod: pod, Model: "m",
			Diagnosis: fleet.Diagnosis{Condition: "healthy", Since: now.Add(-time.Hour)}, Read: true, At: now, Arrived: now, Interval: 15 * time.Second,
		}
		if i == 0 {
			p.first(&e)
		}
		known.Engines = append(known.Engines, e)
	}
	return known
}

func (pretended) Detail(string) *fleet.Detail { return nil }

// answering starts vllm_fleet with such a processor, and returns its address.
func answering(t *testing.T, first func(*fleet.Engine)) string {
	t.Helper()
	address := closed(t)
	t.Cleanup(answerAt(t, address, pretended{first}))
	return address
}

// answerAt starts vllm_fleet at an address, and returns what stops it.
func answerAt(t *testing.T, address string, source fleet.Source) func() {
	t.Helper()
	factory := vllmfleetextension.NewFactory()
	config := factory.CreateDefaultConfig().(*vllmfleetextension.Config)
	config.NetAddr.Endpoint = address
	made, err := factory.Create(t.Context(), extension.Settings{
		ID: component.NewID(factory.Type()), TelemetrySettings: componenttest.NewNopTelemetrySettings(),
	}, config)
	require.NoError(t, err)
	made.(fleet.Registry).Join("vllm", source)
	require.NoError(t, made.Start(t.Context(), componenttest.NewNopHost()))
	return func() { assert.NoError(t, made.Shutdown(context.WithoutCancel(t.Context()))) }
}

// exitOf runs the command of a probe as the kubelet does, with a proxy that does not work in the environment, and
// returns its exit status.
func exitOf(t *testing.T, probe *corev1.Probe, collector, health, path string) int {
	t.Helper()
	command := make([]string, len(probe.Exec.Command))
	for i, text := range probe.Exec.Command {
		command[i] = strings.NewReplacer("127.0.0.1:55690", collector, "http://127.0.0.1:8000/health", health).Replace(text)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/bin/"+command[0], command[1:]...)
	cmd.Env = []string{
		"PATH=" + path, "http_proxy=http://127.0.0.1:1", "FLEET=http://" + collector, "FLEET_POD=pod-0", "FLEET_NAMESPACE=vllm",
	}
	_ = cmd.Run()
	require.NoError(t, ctx.Err())
	return cmd.ProcessState.ExitCode()
}

// What a collector answers, and that none does, ends in a restart, or out of the pool, only where it should.
func TestTheCommandsOfProbesFailOnlyWhereTheyShould(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("there is no curl here")
	}
	liveness, readiness := livenessProbe(t), readinessProbe(t)
	vllm := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/health" {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(vllm.Close)
	in := func(condition string) string {
		return answering(t, func(e *fleet.Engine) { e.Condition = condition })
	}
	for name, row := range map[string]struct {
		collector       string
		alive, prepared int
	}{
		"healthy":     {in("healthy"), 0, 0},
		"slow":        {answering(t, func(e *fleet.Engine) { e.Condition, e.Severity = "degraded", 2 }), 0, 0},
		"stalled":     {in("stalled"), 1, 1},
		"failing":     {in("failing"), 0, 1},
		"unreachable": {answering(t, func(e *fleet.Engine) { e.Condition, e.Failure = "unreachable", "timeout" }), 0, 1},
		"never read":  {answering(t, func(e *fleet.Engine) { *e = fleet.Engine{Key: "k", Resource: "k", Address: e.Address, Pod: e.Pod} }), 0, 0},
		"old":         {answering(t, func(e *fleet.Engine) { e.Condition, e.Arrived = "stalled", e.Arrived.Add(-time.Minute) }), 0, 0},
		"not known":   {answering(t, func(e *fleet.Engine) { e.Condition, e.Address, e.Pod = "stalled", "other:1", "other" }), 0, 0},
		"down":        {closed(t), 0, 0},
		"hung":        {hung(t), 0, 0},
		"a mesh's":    {strings.TrimPrefix(vllm.URL, "http://"), 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			health := vllm.URL + "/health"
			assert.Equal(t, row.alive, exitOf(t, liveness, row.collector, health, os.Getenv("PATH")), "liveness")
			assert.Equal(t, row.prepared, exitOf(t, readiness, row.collector, health, os.Getenv("PATH")), "readiness")
			assert.Equal(t, 0, exitOf(t, liveness, row.collector, health, t.TempDir()), "an image without curl restarts nothing")
			assert.NotEqual(t, 0, exitOf(t, readiness, row.collector, vllm.URL, os.Getenv("PATH")), "vLLM's own answer counts as before")
		})
	}
}

// closed is an address that refuses connections, hung one that takes them and does not answer.
func closed(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	return listener.Addr().String()
}

func hung(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, listener.Close()) })
	return listener.Addr().String()
}

// waits is how long a curl of a command waits at most.
var waits = regexp.MustCompile(`curl [^|&]*-m (\d+) `)

// The kubelet counts a command that takes too long as failed, whatever it would have said.
func TestTheKubeletWaitsLongerThanTheCommands(t *testing.T) {
	for _, probe := range []*corev1.Probe{livenessProbe(t), readinessProbe(t)} {
		command := probe.Exec.Command[len(probe.Exec.Command)-1]
		all := waits.FindAllStringSubmatch(command, -1)
		require.Len(t, all, strings.Count(command, "curl"), command)
		total := 0
		for _, wait := range all {
			seconds, err := strconv.Atoi(wait[1])
			require.NoError(t, err)
			total += seconds
		}
		assert.Less(t, total+1, int(probe.TimeoutSeconds), command)
	}
}

// Probes are a component of the overlays and a value of the charts, which make the same objects. Without them only a
// process in the pod can ask.
func TestProbesAreOffAndTheSameInBothForms(t *testing.T) {
	for overlay, text := range overlays(t) {
		assert.Equal(t, overlay != "sidecar", strings.Contains(string(text), "endpoint: 127.0.0.1:55690"), overlay)
		assert.NotContains(t, string(text), "containerPort: 55690", overlay)
	}
	files := copied(t)
	sidecar, _, err := helm(withSidecar(t), map[string]any{"otelcol-vllm-sidecar": map[string]any{"probes": true}}, "vllm")
	require.NoError(t, err)
	for _, row := range []struct {
		overlay, component string
		chart              []byte
	}{
		{"pool", "pool-probes", thin(t, "pool", "probes: true")},
		{"sidecar", "sidecar-probes", sidecar},
		{"pool-label", "pool-probes", thin(t, "pool-label", "probes: true")},
	} {
		made := renderedAbove(t, files, row.overlay, row.component)
		assert.Contains(t, string(made), "vllm_fleet", row.overlay)
		assert.Equal(t, row.overlay != "sidecar", strings.Contains(string(made), "containerPort: 55690"), row.overlay)
		assert.Empty(t, mustDecode(t, made).complaints(), row.overlay)
		want, got := compared(t, made, row.chart, allowances)
		assert.Equal(t, want, got, row.overlay)
	}
	other, _, err := helm(withSidecar(t), map[string]any{"otelcol-vllm-sidecar": map[string]any{"probes": true, "port": 9000}}, "vllm")
	require.NoError(t, err)
	assert.Contains(t, string(other), "/probe/127.0.0.1:9000?for=liveness")
}

// The policy lets in the namespace of the settings, and the name in the patch is that of a pod of the StatefulSet.
func TestTheVLLMPodsReachTheCollectorOfTheirPool(t *testing.T) {
	files := copied(t)
	settings := "/k/examples/kubernetes/overlays/pool/settings.env"
	content, err := files.ReadFile(settings)
	require.NoError(t, err)
	require.NoError(t, files.WriteFile(settings, []byte(strings.Replace(string(content), "VLLM_NAMESPACE=vllm", "VLLM_NAMESPACE=models", 1))))
	index := above(t, files, "pool", "pool-probes").index()
	policy, ok := index[key("NetworkPolicy", "otelcol-vllm", "otelcol-vllm-pool")].(*networkingv1.NetworkPolicy)
	require.True(t, ok)
	assert.Equal(t, "models", policy.Spec.Ingress[1].From[0].NamespaceSelector.MatchLabels[named])

	patch, err := os.ReadFile(root + "/examples/probes/readiness.yaml")
	require.NoError(t, err)
	var service corev1.Service
	for _, object := range index {
		if s, is := object.(*corev1.Service); is {
			service = *s
		}
	}
	assert.Contains(t, string(patch), "value: http://otelcol-vllm-pool-0."+service.Name+"."+service.Namespace+".svc:"+strconv.Itoa(int(service.Spec.Ports[1].Port))+"\n")
	assert.NotNil(t, index[key("StatefulSet", "otelcol-vllm", "otelcol-vllm-pool")])
}
