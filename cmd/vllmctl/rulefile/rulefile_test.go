package rulefile_test

import (
	"encoding/json"
	"log/slog"
	"maps"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-jsonnet"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/content"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/rulefile"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/spelling"
)

// files are those of all spellings.
func files(t *testing.T) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	for _, to := range append(spelling.All(), spelling.Wire) {
		built, err := rulefile.Files(to)
		require.NoError(t, err)
		maps.Copy(all, built)
	}
	return all
}

// Prometheus itself accepts each file, the dotted one as well.
func TestPrometheusAcceptsTheRuleFiles(t *testing.T) {
	built, plain := files(t), 0
	for path, data := range built {
		if !strings.HasPrefix(path, "content/rules/") {
			continue
		}
		plain++
		groups, errs := rulefmt.Parse(data, false, model.UTF8Validation, parser.NewParser(parser.Options{}), slog.New(slog.DiscardHandler))
		require.Empty(t, errs, path)
		rules := 0
		for _, g := range groups.Groups {
			rules += len(g.Rules)
		}
		assert.Positive(t, rules, path)
	}
	assert.Equal(t, 4, plain)
	dotted := string(built["content/rules/dotted/vllm.yaml"])
	assert.Contains(t, dotted, `{"vllm.slo.valid"}`)
	assert.Contains(t, dotted, `"k8s.cluster.name"`)
	assert.NotContains(t, dotted, "k8s_cluster_name")
	assert.NotContains(t, dotted, "vllm_up")
	unsuffixed := string(built["content/rules/unsuffixed/vllm.yaml"])
	assert.Contains(t, unsuffixed, "rate(vllm_slo_valid[5m])")
	assert.NotContains(t, unsuffixed, "_total[")
	assert.NotContains(t, unsuffixed, "vllm_slo_target_ratio")
}

// Each alert says what a person needs, and where the runbook is.
func TestEveryAlertHasItsWords(t *testing.T) {
	seen := map[string]bool{}
	for _, g := range content.Groups() {
		for i := range g.Alerts {
			a := &g.Alerts[i]
			assert.False(t, seen[a.Name], "two alerts are named %s", a.Name)
			seen[a.Name] = true
			assert.True(t, strings.HasPrefix(a.Name, "VLLM"), a.Name)
			assert.Contains(t, []content.Severity{content.Page, content.Ticket}, a.Severity, a.Name)
			for field, text := range map[string]string{
				"Summary": a.Summary, "Description": a.Description, "Meaning": a.Meaning, "Impact": a.Impact,
				"LooksTheSame": a.LooksTheSame, "NotConclude": a.NotConclude, "CannotFire": a.CannotFire,
			} {
				assert.NotEmpty(t, text, "%s of %s", field, a.Name)
			}
			assert.NotEmpty(t, a.Diagnosis, a.Name)
			assert.NotEmpty(t, a.Mitigation, a.Name)
			for _, step := range a.Diagnosis {
				if step.Query != "" {
					_, err := spelling.Expr(step.Query, spelling.Dotted)
					assert.NoError(t, err, a.Name)
				}
			}
			assert.Equal(t, "https://github.com/otelcol-vllm/otelcol-vllm/blob/main/docs/runbooks/"+a.Name+".md", a.RunbookURL())
		}
	}
}

// What the README and the page show is what is shipped.
func TestTheReadmeShowsAShippedAlert(t *testing.T) {
	shipped := string(files(t)["content/rules/suffixed/vllm.yaml"])
	readme, err := os.ReadFile("../../../README.md")
	require.NoError(t, err)
	_, after, found := strings.Cut(string(readme), "## Alert\n")
	require.True(t, found)
	_, after, _ = strings.Cut(after, "```yaml\n")
	alert, _, found := strings.Cut(after, "```")
	require.True(t, found)
	assert.Contains(t, shipped, alert)
	assert.Contains(t, alert, "expr: ")
}

// Each alert of the two public guides has its answer on the page.
func TestThePageAnswersTheAlertsOfTheGuides(t *testing.T) {
	page, err := os.ReadFile("../../../docs/alerts.md")
	require.NoError(t, err)
	known := map[string]bool{}
	for _, g := range content.Groups() {
		for i := range g.Alerts {
			known[g.Alerts[i].Name] = true
		}
	}
	for _, public := range []string{
		"VLLMHighTTFT", "VLLMQueueTimeHigh", "VLLMPreemptionRelatedDegradation", "HighInferenceRequestLatencyP99",
		"HighInferenceErrorRate", "HighInferencePoolAvgQueueSize", "HighInferencePoolAvgKVCacheUtilization",
	} {
		_, row, found := strings.Cut(string(page), "\n| "+public)
		require.True(t, found, public)
		row, _, _ = strings.Cut(row, "\n")
		cells := strings.Split(row, "|")
		require.Len(t, cells, 4, row)
		answers := regexp.MustCompile("`(VLLM[A-Za-z]+)`").FindAllStringSubmatch(cells[1], -1)
		assert.NotEmpty(t, answers, public)
		for _, a := range answers {
			assert.True(t, known[a[1]], "%s is no alert", a[1])
		}
	}
}

func TestThePrometheusRuleHasTheRulesOfTheFiles(t *testing.T) {
	built := files(t)
	for path, same := range map[string]string{
		"content/kubernetes/vllm-rules.yaml": "content/rules/suffixed/vllm.yaml", "content/kubernetes/vllm-raw-rules.yaml": "content/rules/wire/vllm.yaml",
	} {
		var resource struct {
			APIVersion string `yaml:"apiVersion"`
			Kind       string
			Metadata   struct{ Name string }
			Spec       map[string]any
		}
		require.NoError(t, yaml.Unmarshal(built[path], &resource))
		assert.Equal(t, "monitoring.coreos.com/v1", resource.APIVersion)
		assert.Equal(t, "PrometheusRule", resource.Kind)
		assert.NotEmpty(t, resource.Metadata.Name)
		var want map[string]any
		require.NoError(t, yaml.Unmarshal(built[same], &want))
		assert.Equal(t, want, resource.Spec)
	}
}

// rules evaluates a mixin with a configuration of the user, and returns the rules by name.
func mixinRules(t *testing.T, file, config string) map[string]rulefile.Rule {
	t.Helper()
	vm := jsonnet.MakeVM()
	vm.Importer(&jsonnet.MemoryImporter{Data: map[string]jsonnet.Contents{
		"mixin.libsonnet": jsonnet.MakeContents(string(files(t)[file])),
	}})
	out, err := vm.EvaluateAnonymousSnippet("user.jsonnet",
		`local m = (import 'mixin.libsonnet') + {_config+:: `+config+`}; m.prometheusRules.groups + m.prometheusAlerts.groups`)
	require.NoError(t, err)
	var groups []rulefile.Group
	require.NoError(t, json.Unmarshal([]byte(out), &groups))
	return byName(t, groups)
}

func byName(t *testing.T, groups []rulefile.Group) map[string]rulefile.Rule {
	t.Helper()
	rules := map[string]rulefile.Rule{}
	for _, g := range groups {
		for _, r := range g.Rules {
			parsed, err := spelling.Parse(r.Expr)
			require.NoError(t, err, r.Expr)
			r.Expr = parsed.String()
			// An empty selector leaves a comma.
			for key, text := range r.Annotations {
				r.Annotations[key], err = spelling.Queries(text, func(parser.Expr) error { return nil })
				require.NoError(t, err, text)
			}
			rules[strings.TrimSuffix(g.Name, ".rules")+" "+r.Alert+r.Record] = r
		}
	}
	return rules
}

func TestTheMixinIsThePlainRulesUnlessItIsConfigured(t *testing.T) {
	for file, to := range map[string]spelling.Spelling{"content/mixin/mixin.libsonnet": spelling.Suffixed, "content/mixin/mixin-raw.libsonnet": spelling.Wire} {
		plain, err := rulefile.Groups(content.Groups(), to)
		require.NoError(t, err)
		assert.Equal(t, byName(t, plain), mixinRules(t, file, "{}"))
	}
}

func TestTheMixinTakesTheConfigurationOfTheUser(t *testing.T) {
	rules := mixinRules(t, "content/mixin/mixin.libsonnet", `{selector: 'cluster="east"', runbookBase: 'https://wiki/', grafanaURL: 'https://boards', serversExpected: 7, gatewayErrorRatio: 0.125}`)
	assert.Equal(t, "vector(7)", rules["vllm-diagnosis vllm_config:servers:expected"].Expr)
	assert.Contains(t, rules["vllm-gateway VLLMGatewayErrors"].Expr, "> 0.125")
	assert.Equal(t, "https://wiki/VLLMGatewayErrors.md", rules["vllm-gateway VLLMGatewayErrors"].Annotations["runbook_url"])
	said := rules["vllm-diagnosis VLLMServerDegraded"].Annotations
	assert.Contains(t, said["description"], `{{ $runbooks := "https://wiki/" }}{{ $grafana := "https://boards" -}}`)
	assert.Contains(t, said["description"], "vllm_diagnosis_condition{cluster=\"east\",%s}")
	assert.Contains(t, said["description"], "ALERTS_FOR_STATE{alertname=\"VLLMServerDegraded\",%s}")
	whole := rendered(t, said["description"], spelling.Suffixed, map[string]string{"instance": "a:8000", "model_name": "org/m 1"}, nil)
	assert.True(t, strings.HasSuffix(whole, "\nBoard: https://boards/d/vllm-engine?from=now-6h&to=now&var-model=org%2Fm+1&var-instance=a%3A8000"), whole)
	// Each series of a target has the selector, and no series of the rules or of the collector itself. An alert has only
	// the labels that its expression leaves.
	for name, rule := range rules {
		parsed, err := spelling.Parse(rule.Expr)
		require.NoError(t, err)
		parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
			if s, is := node.(*parser.VectorSelector); is {
				own := strings.Contains(s.Name, ":") || strings.HasPrefix(s.Name, "ALERTS") || strings.HasPrefix(s.Name, "otelcol_")
				assert.NotEqual(t, own, strings.Contains(s.String(), `cluster="east"`), "%s: %s", name, s)
			}
			return nil
		})
	}
}
