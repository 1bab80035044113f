//go:build e2e

package kubernetes

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	control "github.com/otelcol-vllm/otelcol-vllm/lab/test/cluster"
	"github.com/otelcol-vllm/otelcol-vllm/lab/test/collector"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim"
)

// poolside are the objects of a Poolside deployment: a Deployment for each model.
const poolside = `
apiVersion: v1
kind: Namespace
metadata: {name: poolside-models}
---
apiVersion: v1
kind: Namespace
metadata:
  name: otelcol-vllm
  labels: {pod-security.kubernetes.io/enforce: restricted}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: inference-MODEL, namespace: poolside-models}
spec:
  replicas: 2
  selector: {matchLabels: {app.kubernetes.io/model: MODEL}}
  template:
    metadata: {labels: {app.kubernetes.io/component: inference, app.kubernetes.io/model: MODEL}}
    spec: {containers: [{name: inference, image: vllm, args: [MODEL], ports: [{containerPort: 8080}]}]}
`

// serveModel is a simulated vLLM server.
func serveModel(ctx context.Context, c control.Container) error {
	server, err := vllmsim.New(vllmsim.Config{Dialect: "v1", Version: "0.20.0", Model: c.Args[0]})
	if err != nil {
		return err
	}
	return server.Serve(ctx, c.IP+":8080", func([]string) {})
}

// scrapes are the jobs into which the Prometheus operator turns a PodMonitor: the pods with its labels, one job for each
// named port. Debian's Prometheus has no discovery of Kubernetes, so the pods are listed here.
func scrapes(t *testing.T, monitor *podMonitor, c *control.Cluster) string {
	t.Helper()
	selector := metav1.FormatLabelSelector(&monitor.Spec.Selector)
	pods, err := c.Client.CoreV1().Pods(monitor.Namespace).List(t.Context(), metav1.ListOptions{LabelSelector: selector})
	require.NoError(t, err)
	var jobs []any
	for i, endpoint := range monitor.Spec.PodMetricsEndpoints {
		var targets []any
		for _, pod := range pods.Items {
			for _, port := range pod.Spec.Containers[0].Ports {
				if port.Name == endpoint.Port {
					targets = append(targets, map[string]any{
						"targets": []string{fmt.Sprintf("%s:%d", pod.Status.PodIP, port.ContainerPort)},
						"labels":  map[string]string{"__meta_kubernetes_pod_name": pod.Name, "namespace": pod.Namespace, "pod": pod.Name, "container": pod.Spec.Containers[0].Name, "endpoint": port.Name},
					})
				}
			}
		}
		require.NotEmpty(t, targets, endpoint.Port)
		jobs = append(jobs, map[string]any{
			"job_name": fmt.Sprintf("podMonitor/%s/%s/%d", monitor.Namespace, monitor.Name, i), "honor_labels": endpoint.HonorLabels,
			"scrape_interval": endpoint.Interval, "static_configs": targets,
			"relabel_configs": rules(endpoint.Relabelings), "metric_relabel_configs": rules(endpoint.MetricRelabelings),
		})
	}
	text, err := yaml.Marshal(jobs)
	require.NoError(t, err)
	return string(text)
}

// rules are relabelings in the words of Prometheus's configuration.
func rules(of []relabeling) []map[string]any {
	var all []map[string]any
	for _, r := range of {
		rule := map[string]any{}
		for name, value := range map[string]any{"action": r.Action, "regex": r.Regex, "target_label": r.TargetLabel, "replacement": r.Replacement} {
			if value != "" {
				rule[name] = value
			}
		}
		if len(r.SourceLabels) > 0 {
			rule["source_labels"] = r.SourceLabels
		}
		all = append(all, rule)
	}
	return all
}

// labelsOf asks a Prometheus for the labels of the series of a query.
func labelsOf(t *testing.T, address, query string) []map[string]string {
	t.Helper()
	var answer struct {
		Data struct {
			Result []struct {
				Metric map[string]string `json:"metric"`
			} `json:"result"`
		} `json:"data"`
	}
	require.NoError(t, json.Unmarshal(collector.Get(t, "http://"+address+"/api/v1/query?query="+url.QueryEscape(query)), &answer))
	var all []map[string]string
	for _, one := range answer.Data.Result {
		all = append(all, one.Metric)
	}
	return all
}

// docs/start/poolside.md, from a cluster with models and nothing else to an alert of a real Prometheus: with the page's own
// values, the API server's admission, and the chart's image as its command.
func TestPoolsideFromAnEmptyClusterToAnAlert(t *testing.T) {
	collector.Tool(t, "prometheus")
	binary := collector.Binary(t)
	c := control.Start(t)
	c.Node(t, "node", map[string]control.Image{
		"vllm": {Serve: serveModel},
		"registry.example.com/otelcol-vllm:0.2.0": {
			Files:      map[string]string{"/otelcol-vllm": binary, "/vllmctl": filepath.Join(filepath.Dir(binary), "vllmctl")},
			Entrypoint: []string{"/otelcol-vllm"}, User: 10001,
		},
	})
	before, deployment, _ := strings.Cut(poolside, "---\napiVersion: apps/v1")
	models := before
	for _, model := range []string{"agent-large", "agent-small"} {
		models += "---\napiVersion: apps/v1" + strings.ReplaceAll(deployment, "MODEL", model)
	}
	apply := func(manifests string) {
		t.Helper()
		out, err := c.Kubectl(t, manifests, "apply", "-f", "-")
		require.NoError(t, err, out)
	}
	apply(models)
	c.Wait(t, "the models", func() bool { return len(c.Ready(t, "poolside-models")) == 4 })

	began := time.Now()
	file := filepath.Join(t.TempDir(), "values.yaml")
	require.NoError(t, os.WriteFile(file, []byte(stated(t, "docs/start/poolside.md")[0]), 0o600))
	fleet := collector.FreeAddr(t)
	// Here pods share 127.0.0.1, and another test may have the port.
	elsewhere := fmt.Sprintf("config: {extensions: {vllm_fleet: {endpoint: %q}}}", fleet)
	page, _, err := helm(load(t, charts+"/otelcol-vllm"), values(t, file, elsewhere), "otelcol-vllm")
	require.NoError(t, err)
	apply(string(page))
	out, err := c.Kubectl(t, "", "-n", "otelcol-vllm", "rollout", "status", "statefulset/otelcol-vllm-pool", "--timeout=120s")
	require.NoError(t, err, out)
	t.Logf("%s: the collector is ready", time.Since(began).Round(time.Second))

	out, err = c.Exec(t.Context(), "otelcol-vllm", "otelcol-vllm-pool-0", "", "/vllmctl", "check", "--running")
	require.NoError(t, err, out)
	t.Log(out)
	assert.Contains(t, out, "0 problems")
	t.Logf("%s: checked", time.Since(began).Round(time.Second))

	// A Prometheus with its operator: the same values and those of the page's section.
	with, _, err := helm(load(t, charts+"/otelcol-vllm"), values(t, file, stated(t, "docs/start/kubernetes.md")[1]), "otelcol-vllm")
	require.NoError(t, err)
	monitor, ok := mustDecode(t, with).index()[key("PodMonitor", "otelcol-vllm", "otelcol-vllm")].(*podMonitor)
	require.True(t, ok)
	var loaded []byte
	for document := range strings.SplitSeq(string(with), "\n---") {
		if strings.Contains(document, "\nkind: PrometheusRule\n") {
			var rule map[string]any
			require.NoError(t, yaml.Unmarshal([]byte(document), &rule))
			loaded, err = yaml.Marshal(rule["spec"])
			require.NoError(t, err)
		}
	}
	require.NotEmpty(t, loaded)
	rulesFile := filepath.Join(t.TempDir(), "rules.yaml")
	require.NoError(t, os.WriteFile(rulesFile, loaded, 0o600))
	_, prometheus := collector.Prometheus(t, fmt.Sprintf("global: {evaluation_interval: 15s}\nrule_files: [%q]\nscrape_configs:\n%s", rulesFile, scrapes(t, monitor, c)))
	c.Wait(t, "all servers in Prometheus", func() bool { return len(labelsOf(t, prometheus, "vllm_up == 1")) == 4 })
	c.Wait(t, "all engines judged", func() bool { return len(labelsOf(t, prometheus, "vllm_diagnosis_severity == 0")) == 4 })
	for _, one := range labelsOf(t, prometheus, "vllm_up") {
		assert.Equal(t, one["k8s_pod_name"], one["pod"], "the pod of the server, not of the collector")
		assert.Equal(t, "poolside-models", one["namespace"])
		assert.NotContains(t, one, "container")
	}
	c.Wait(t, "the collector's own metrics", func() bool { return len(labelsOf(t, prometheus, "otelcol_receiver_vllm_targets")) == 1 })
	assert.Empty(t, labelsOf(t, prometheus, "ALERTS"))
	out, err = c.Exec(t.Context(), "otelcol-vllm", "otelcol-vllm-pool-0", "", "/vllmctl", "top", "--once", "--from", "http://"+fleet)
	require.NoError(t, err, out)
	assert.Regexp(t, `(?s)agent-large.*agent-small`, out)
	t.Log(out)
	t.Logf("%s: Prometheus has all", time.Since(began).Round(time.Second))

	out, err = c.Kubectl(t, "", "-n", "poolside-models", "scale", "deployment", "inference-agent-small", "--replicas=0")
	require.NoError(t, err, out)
	scaled := time.Now()
	of := func(state string) bool {
		return len(labelsOf(t, prometheus, fmt.Sprintf(`ALERTS{alertname="VLLMModelWithoutServers",model_name="agent-small",alertstate=%q}`, state))) == 1
	}
	c.Wait(t, "a pending alert", func() bool { return of("pending") })
	t.Logf("%s after the scaling: pending", time.Since(scaled).Round(time.Second))
	c.Wait(t, "an alert", func() bool { return of("firing") })
	t.Logf("%s after the scaling: firing; %s after the start of the installation", time.Since(scaled).Round(time.Second), time.Since(began).Round(time.Second))
	assert.Len(t, labelsOf(t, prometheus, `ALERTS{alertstate="firing"}`), 1, "one alert, and no other")
	assert.Less(t, time.Since(began), 10*time.Minute)

	out, err = c.Kubectl(t, "", "-n", "poolside-models", "scale", "deployment", "inference-agent-small", "--replicas=2")
	require.NoError(t, err, out)
	c.Wait(t, "the end of the alert", func() bool { return !of("firing") })
}
