//go:build e2e

package backends

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/lab/test/collector"
)

// receiver is where Alertmanager sends to.
type receiver struct {
	mu sync.Mutex
	// alerts are the annotations that arrived, by the name of the alert and of the server or model.
	alerts map[string]map[string]string
	// labels are those of each alert.
	labels []map[string]string
	// texts are the messages for people, by the name of the alert.
	texts map[string]string
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	var body struct {
		Alerts []struct {
			Status              string
			Labels, Annotations map[string]string
		}
		Attachments []struct{ Title, Text string }
	}
	if err := json.NewDecoder(request.Body).Decode(&body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range body.Alerts {
		who := a.Labels["instance"]
		if who == "" {
			who = a.Labels["model_name"]
		}
		r.alerts[a.Labels["alertname"]+" "+who] = a.Annotations
		r.labels = append(r.labels, a.Labels)
	}
	for _, a := range body.Attachments {
		if words := strings.Fields(a.Title); len(words) > 1 {
			r.texts[words[1]] = strings.TrimSpace(a.Title) + "\n" + a.Text
		}
	}
	// As Slack.
	_, _ = w.Write([]byte("ok"))
}

func (r *receiver) arrived(name string) map[string]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.alerts[name]
}

const alertmanagerConfig = `
route: {receiver: test, group_by: ["..."], group_wait: 3s, group_interval: 1s, repeat_interval: 1h}
receivers:
  - name: test
    webhook_configs: [{url: "http://%[1]s/webhook", send_resolved: false}]
    slack_configs: [{api_url: "http://%[1]s/slack", channel: c, send_resolved: false, text: '{{ template "__text_alert_list" .Alerts.Firing }}'}]
`

// startAlertmanager runs a real one with the shipped inhibition rules.
func startAlertmanager(t *testing.T, program, receiver string) (*collector.Process, string) {
	t.Helper()
	inhibition, err := os.ReadFile(filepath.Join(root, "content", "alertmanager", "inhibition.yaml"))
	require.NoError(t, err)
	dir, addr := t.TempDir(), collector.FreeAddr(t)
	// Debian's program reads its templates from a folder of an installed package. Where it is only unpacked,
	// a copy of it reads them from the folder in which it runs.
	const installed = "/usr/share/prometheus/alertmanager"
	if share := filepath.Join(filepath.Dir(program), "..", "share", "prometheus", "alertmanager"); share != installed && isFolder(share) {
		require.NoError(t, os.CopyFS(dir, os.DirFS(share)))
		data, err := os.ReadFile(program)
		require.NoError(t, err)
		program = filepath.Join(dir, "alertmanager")
		data = bytes.ReplaceAll(data, []byte(installed), bytes.Repeat([]byte("./"), len(installed)/2))
		require.NoError(t, os.WriteFile(program, data, 0o700))
	}
	file := filepath.Join(dir, "alertmanager.yml")
	require.NoError(t, os.WriteFile(file, append(fmt.Appendf(nil, alertmanagerConfig, receiver), inhibition...), 0o600))
	p := collector.Start(t, nil, "/bin/sh", "-c", `cd "$0" && exec "$@"`, dir, program, "--config.file="+file, "--storage.path="+filepath.Join(dir, "data"),
		"--web.listen-address="+addr, "--cluster.listen-address=", "--log.level=warn")
	p.WaitFor(t, "Alertmanager", func() bool { return len(collector.Get(t, "http://"+addr+"/-/ready")) > 0 })
	return p, addr
}

func isFolder(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}

// afflicted is a server of the story, with what it is now; a day ago it was well.
type afflicted struct {
	instance, pod, model     string
	severity                 int
	condition, cause, detail string
}

var servers = []afflicted{
	{"10.0.0.1:8000", "chat-0", "llama", 0, "serving", "", ""},
	{"10.0.0.2:8000", "chat-1", "llama", 3, "stalled", "", ""},
	{"10.0.0.3:8000", "chat-2", "llama", 2, "degraded", "kv_pressure", ""},
	{"10.0.1.1:8000", "code-0", "coder", 2, "degraded", "slow_steps", "thermal"},
	{"10.0.1.2:8000", "code-1", "coder", 3, "stalled", "", ""},
	{"10.0.2.1:8000", "", "lone", 3, "critical", "demand_exceeds_capacity", ""},
	{"10.0.3.1:8000", "", "slow", 2, "degraded", "slow_steps", "since_version"},
}

func (s afflicted) labels(more string) string {
	labels := fmt.Sprintf(`{job="vllm",instance=%q,engine="0",model_name=%q,k8s_cluster_name="prod"`, s.instance, s.model)
	if s.pod != "" {
		labels += fmt.Sprintf(`,k8s_namespace_name="chat",k8s_pod_name=%q`, s.pod)
	}
	return labels + more + "}"
}

// felt are what users of the server feel: a day ago, and now while it is not well.
func (s afflicted) felt(well bool) map[string]float64 {
	if well {
		return map[string]float64{"vllm_diagnosis_first_token_wait_seconds": 0.4, "vllm_inter_token_latency_mean_seconds": 0.02, "vllm_num_requests_waiting": 1, "vllm_arrival_rate_per_second": 0.75, "vllm_request_prompt_tokens_mean": 145}
	}
	return map[string]float64{"vllm_diagnosis_first_token_wait_seconds": 14.25, "vllm_inter_token_latency_mean_seconds": 0.085, "vllm_num_requests_waiting": 40, "vllm_arrival_rate_per_second": 6, "vllm_request_prompt_tokens_mean": 802}
}

// before is the day before the incident, as OpenMetrics, which has all points of a series together.
func before(now time.Time) string {
	var b strings.Builder
	for _, metric := range []string{"vllm_diagnosis_first_token_wait_seconds", "vllm_inter_token_latency_mean_seconds", "vllm_num_requests_waiting", "vllm_arrival_rate_per_second", "vllm_request_prompt_tokens_mean"} {
		fmt.Fprintf(&b, "# TYPE %s gauge\n", metric)
		for _, s := range servers {
			for at := now.Add(-24 * time.Hour); at.Before(now.Add(-10 * time.Minute)); at = at.Add(4 * time.Minute) {
				fmt.Fprintf(&b, "%s%s %g %d\n", metric, s.labels(""), s.felt(true)[metric], at.Unix())
			}
		}
	}
	return b.String() + "# EOF\n"
}

// page is what a collector shows now. Two models have pools.
func page() string {
	var b strings.Builder
	for _, s := range servers {
		fmt.Fprintf(&b, "vllm_diagnosis_severity%s %d\n", s.labels(""), s.severity)
		fmt.Fprintf(&b, "vllm_diagnosis_condition%s 1\n", s.labels(fmt.Sprintf(`,condition=%q`, s.condition)))
		if s.cause != "" {
			fmt.Fprintf(&b, "vllm_diagnosis_cause%s 1\n", s.labels(fmt.Sprintf(`,role="primary",cause=%q,detail=%q`, s.cause, s.detail)))
		}
		for metric, v := range s.felt(s.severity == 0) {
			fmt.Fprintf(&b, "%s%s %g\n", metric, s.labels(""), v)
		}
	}
	for model, is := range map[string][2]string{"llama": {"3", "critical"}, "coder": {"2", "degraded"}} {
		of := fmt.Sprintf(`{job="otelcol-vllm",instance="c",model_name=%q`, model)
		fmt.Fprintf(&b, "vllm_pool_diagnosis_severity%s} %s\nvllm_pool_diagnosis_condition%s,condition=%q} 1\n", of, is[0], of, is[1])
	}
	return b.String() + "vllm_pool_diagnosis_cause{job=\"otelcol-vllm\",instance=\"c\",model_name=\"llama\",role=\"primary\",cause=\"kv_pressure\"} 1\nvllm_up{job=\"vllm\",instance=\"10.0.0.1:8000\",k8s_cluster_name=\"prod\"} 1\n"
}

const runbooks = "https://wiki.example/"

// What a person gets, through a real Prometheus and a real Alertmanager: who, what, why, how bad, since when,
// and where to go on.
func TestAMessageThatArrivesSaysItAll(t *testing.T) {
	t.Parallel()
	inbox := &receiver{alerts: map[string]map[string]string{}, texts: map[string]string{}}
	hook := httptest.NewServer(inbox)
	t.Cleanup(hook.Close)
	manager, managed := startAlertmanager(t, collector.Tool(t, "prometheus-alertmanager"), strings.TrimPrefix(hook.URL, "http://"))
	shown := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(page())) }))
	t.Cleanup(shown.Close)
	documented, err := os.ReadFile(filepath.Join(root, "docs", "alerts.md"))
	require.NoError(t, err)
	dir := t.TempDir()
	rules := filepath.Join(dir, "vllm.yaml")
	require.NoError(t, os.WriteFile(rules, []byte(quickRules(t)), 0o600))
	// The page says how to set the addresses.
	_, command, _ := strings.Cut(string(documented), "```sh\nsed ")
	command, _, _ = strings.Cut(command, "\n")
	sed := exec.CommandContext(t.Context(), "/bin/sh", "-c", "sed "+command)
	sed.Dir = dir
	require.NoError(t, sed.Run(), command)
	prometheus, addr := collector.Prometheus(t, fmt.Sprintf(`
global: {scrape_interval: 500ms, scrape_timeout: 400ms, evaluation_interval: 1s}
rule_files: [%q]
scrape_configs: [{job_name: c, honor_labels: true, static_configs: [{targets: [%q]}]}]
alerting: {alertmanagers: [{static_configs: [{targets: [%q]}]}]}
`, rules, strings.TrimPrefix(shown.URL, "http://"), managed), before(time.Now()))

	const (
		numbers = `
Wait for the first token so far%[1]s: 14.25s now, usual 400ms
Time between tokens%[1]s: 85ms now, usual 20ms
Requests that wait: %[2]d now, usual %[3]d
Requests that arrive a second: %[5]s
Tokens of a prompt%[1]s: 802 now, usual 145
Reported since T. Usual is the median of up to 24 hours before, without harm.
Next: %[4]s
Board: https://grafana.example`
		ask, compare = "Send one request of your own. No answer proves an outage. A quick answer proves little while others wait: compare it with the usual wait for the first token.", "Compare with the other servers of the model: one slow server is hardware or routing, all of them are load or software."
		dump         = "Check the state of the server's processes. If other servers have its model, take it out of rotation. Save a stack dump (py-spy dump) before you restart it, and within five minutes: vLLM can exit by itself after that."
	)
	type message struct{ description, board string }
	for name, want := range map[string]message{
		"VLLMServerNotServing 10.0.2.1:8000": {
			"Condition: critical. Cause: demand_exceeds_capacity. What to do: " + runbooks + "demand_exceeds_capacity.md" + fmt.Sprintf(numbers, "", 40, 1, ask, "6 now, usual 0.75"),
			"/d/vllm-engine?from=now-6h&to=now&var-cluster=prod&var-model=lone&var-job=vllm&var-instance=10.0.2.1%3A8000",
		},
		"VLLMReplicaNotServing 10.0.1.2:8000": {
			"Condition: stalled. Cause: not visible from outside. What to do: " + runbooks + "stalled.md" + fmt.Sprintf(numbers, "", 40, 1, dump, "6 now, usual 0.75"),
			"/d/vllm-engine?from=now-6h&to=now&var-cluster=prod&var-namespace=chat&var-model=coder&var-job=vllm&var-pod=code-1&var-instance=10.0.1.2%3A8000",
		},
		"VLLMServerDegraded 10.0.3.1:8000": {
			"Condition: degraded. Cause: slow_steps (since_version). What to do: " + runbooks + "slow_steps.md" + fmt.Sprintf(numbers, "", 40, 1, compare, "6 now, usual 0.75"),
			"/d/vllm-engine?from=now-6h&to=now&var-cluster=prod&var-model=slow&var-job=vllm&var-instance=10.0.3.1%3A8000",
		},
		"VLLMPoolNotServing llama": {
			"Condition: critical. Cause: kv_pressure. What to do: " + runbooks + "kv_pressure.md\n" +
				"Server 10.0.0.2:8000 (chat-1): stalled, cause not visible from outside\nServer 10.0.0.3:8000 (chat-2): degraded, cause kv_pressure" + fmt.Sprintf(numbers, ", worst of these servers", 80, 2, dump, "12 now, usual 1.5"),
			"/d/vllm-pool?from=now-6h&to=now&var-model=llama",
		},
		"VLLMPoolDegraded coder": {
			"Condition: degraded. Cause: not known. What to do: " + runbooks + "degraded.md\n" +
				"Server 10.0.1.2:8000 (code-1): stalled, cause not visible from outside\nServer 10.0.1.1:8000 (code-0): degraded, cause slow_steps (thermal)" + fmt.Sprintf(numbers, ", worst of these servers", 80, 2, dump, "12 now, usual 1.5"),
			"/d/vllm-pool?from=now-6h&to=now&var-model=coder",
		},
	} {
		manager.WaitFor(t, name, func() bool { return inbox.arrived(name) != nil })
		got := inbox.arrived(name)
		assert.NotEmpty(t, got["summary"], name)
		_, description, _ := strings.Cut(got["description"], "\n")
		assert.Equal(t, want.description+want.board, someTime(description), name)
		alert, _, _ := strings.Cut(name, " ")
		assert.Equal(t, runbooks+alert+".md", got["runbook_url"], name)
	}
	assert.Empty(t, broken(t, addr))

	inbox.mu.Lock()
	defer inbox.mu.Unlock()
	// What is muted is in a message of something else.
	all := ""
	for name, annotations := range inbox.alerts {
		for _, text := range annotations {
			all += text + "\n"
			for _, wrong := range []string{"<error", "<no value>", "{{"} {
				assert.NotContains(t, text, wrong, name)
			}
		}
	}
	for _, s := range servers {
		assert.Equal(t, s.severity > 1, strings.Contains(all, s.instance), "%s is named: %s", s.instance, all)
	}
	for _, muted := range []string{"VLLMServerDegraded 10.0.0.3:8000", "VLLMReplicaNotServing 10.0.0.2:8000"} {
		assert.NotContains(t, inbox.alerts, muted, "its pool names it")
	}

	text, _, _ := strings.Cut(someTime(inbox.texts["VLLMPoolNotServing"]), "Source: ")
	_, shows, _ := strings.Cut(someTime(string(documented)), "```text\n")
	shows, _, _ = strings.Cut(shows, "```")
	assert.Equal(t, text, shows, "docs/alerts.md shows another message than the one that arrived")
	prometheus.Stop(t)
	manager.Stop(t)
}

var timestamp = regexp.MustCompile(`Reported since \d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)? \+0000 UTC`)

func someTime(text string) string { return timestamp.ReplaceAllString(text, "Reported since T") }
