// Package rulefile writes the rules of package content as rule files of Prometheus.
package rulefile

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/prometheus/common/model"
	"go.yaml.in/yaml/v3"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/content"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/spelling"
)

// generatedBy is the first line of each file.
const generatedBy = "# Written by lab/cmd/contentgen from cmd/vllmctl/content. Do not edit: run \"make generate\".\n"

// raw begins the names of the files on vLLM's own names, beside those on ours.
func raw(to spelling.Spelling) string {
	if to == spelling.Wire {
		return "-raw"
	}
	return ""
}

// Files returns the rules in a spelling: a plain rule file, and, where the names are those of most
// backends, a PrometheusRule and a mixin of Jsonnet.
func Files(to spelling.Spelling) (map[string][]byte, error) {
	plain, err := Plain(to)
	files := map[string][]byte{"content/rules/" + string(to) + "/vllm.yaml": plain}
	if err != nil || to != spelling.Suffixed && to != spelling.Wire {
		return files, err
	}
	if files["content/kubernetes/vllm"+raw(to)+"-rules.yaml"], err = prometheusRule(to); err != nil {
		return nil, err
	}
	files["content/mixin/mixin"+raw(to)+".libsonnet"], err = mixin(to)
	return files, err
}

// Plain returns the rules as Prometheus reads them.
func Plain(to spelling.Spelling) ([]byte, error) {
	groups, err := Groups(content.Groups(), to)
	if err != nil {
		return nil, err
	}
	return document(ruleFile{Groups: groups})
}

// ruleFile, Group and Rule are Prometheus's format.
type ruleFile struct {
	Groups []Group `yaml:"groups" json:"groups"`
}

// Group is a group of rules.
type Group struct {
	Name     string `yaml:"name" json:"name"`
	Interval string `yaml:"interval,omitempty" json:"interval,omitempty"`
	Rules    []Rule `yaml:"rules" json:"rules"`
}

// Rule is a recording rule or an alert.
type Rule struct {
	Record        string            `yaml:"record,omitempty" json:"record,omitempty"`
	Alert         string            `yaml:"alert,omitempty" json:"alert,omitempty"`
	Expr          string            `yaml:"expr" json:"expr"`
	For           string            `yaml:"for,omitempty" json:"for,omitempty"`
	KeepFiringFor string            `yaml:"keep_firing_for,omitempty" json:"keep_firing_for,omitempty"`
	Labels        map[string]string `yaml:"labels,omitempty" json:"labels,omitempty"`
	Annotations   map[string]string `yaml:"annotations,omitempty" json:"annotations,omitempty"`
}

// Groups translates the groups into a spelling.
func Groups(groups []content.Group, to spelling.Spelling) ([]Group, error) {
	var written []Group
	for i := range groups {
		g := &groups[i]
		if (g.Set == content.Wire) != (to == spelling.Wire) {
			continue
		}
		out := Group{Name: g.Name}
		if g.Interval > 0 {
			out.Interval = model.Duration(g.Interval).String()
		}
		for _, r := range g.Records {
			expr, err := spelling.Expr(r.Expr, to)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", r.Name, err)
			}
			out.Rules = append(out.Rules, Rule{Record: r.Name, Expr: expr})
		}
		for j := range g.Alerts {
			rule, err := alert(&g.Alerts[j], to)
			if err != nil {
				return nil, err
			}
			out.Rules = append(out.Rules, rule)
		}
		written = append(written, out)
	}
	return written, nil
}

func alert(a *content.Alert, to spelling.Spelling) (Rule, error) {
	expr, err := spelling.Expr(a.Expr, to)
	if err != nil {
		return Rule{}, fmt.Errorf("%s: %w", a.Name, err)
	}
	rule := Rule{
		Alert: a.Name, Expr: expr, Labels: map[string]string{"severity": string(a.Severity)},
		Annotations: map[string]string{"runbook_url": a.RunbookURL()},
	}
	for name, text := range map[string]string{"summary": a.Summary, "description": a.Description} {
		if rule.Annotations[name], err = spelling.Annotation(text, to); err != nil {
			return Rule{}, fmt.Errorf("%s: %w", a.Name, err)
		}
	}
	// Routes of Alertmanager look for the labels that Kubernetes's own alerts have, those of AlertmanagerConfig always. The
	// summary names what the alert knows of its place. An empty value is no label.
	for name, from := range map[string]string{"namespace": "k8s_namespace_name", "pod": "k8s_pod_name"} {
		if strings.Contains(a.Summary, "$labels."+from) {
			rule.Labels[name] = spelling.Template("{{ $labels."+from+" }}", to)
		}
	}
	if a.For > 0 {
		rule.For = model.Duration(a.For).String()
	}
	if a.KeepFiringFor > 0 {
		rule.KeepFiringFor = model.Duration(a.KeepFiringFor).String()
	}
	return rule, nil
}

// document writes a value as YAML, with expressions of several lines as blocks.
func document(value any) ([]byte, error) {
	var b bytes.Buffer
	b.WriteString(generatedBy)
	encoder := yaml.NewEncoder(&b)
	encoder.SetIndent(2)
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

func sortedKeys(values map[string]string) []string { return slices.Sorted(maps.Keys(values)) }
