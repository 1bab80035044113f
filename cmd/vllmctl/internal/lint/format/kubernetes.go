package format

import (
	"strings"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/lint/document"
)

// kubernetes reads an object that has apiVersion and kind.
func (r *reader) kubernetes(n *document.Node) {
	version, kind := n.Get("apiVersion").String(), n.Get("kind").String()
	spec := n.Get("spec")
	switch {
	case strings.HasSuffix(kind, "List") && n.Get("items").Is(document.List):
		for _, item := range n.Get("items").Items {
			r.value(item)
		}
	case kind == "ConfigMap":
		r.configMap(n.Get("data"))
	case kind == "Secret":
		r.configMap(n.Get("stringData"))
	case spec.Get("groups").Is(document.List):
		// PrometheusRule, VMRule, and Google's Rules, ClusterRules and GlobalRules.
		r.extended = kind == "VMRule"
		if r.rules(spec) {
			r.kind(kind)
		}
		r.extended = false
	case kind == "ScaledObject", kind == "ScaledJob":
		r.scaled(n)
	case kind == "GrafanaDashboard":
		r.operatorDashboard(spec)
	case strings.HasPrefix(version, "dashboard.grafana.app/"):
		if spec.Get("elements").Is(document.Map) {
			r.dashboardV2(spec)
		} else if spec.Is(document.Map) {
			r.dashboard(spec)
		}
	case kind == persesKind && spec.Is(document.Map):
		if config := spec.Get("config"); config.Is(document.Map) {
			spec = config
		}
		r.persesDashboard(n, spec)
	case r.rules(n), r.perses(n):
	default:
		r.ignore("an object of the kind " + kind)
	}
}

// configMap reads the texts that are rules or dashboards themselves.
func (r *reader) configMap(data *document.Node) {
	if !data.Is(document.Map) {
		return
	}
	before := r.prefix
	for _, p := range data.Pairs {
		if !p.Value.Is(document.Scalar) || !p.Value.IsText || !holdsDocument(p.Key, p.Value.Text) {
			continue
		}
		r.prefix = before + p.Key + ": "
		r.inner(p.Value)
	}
	r.prefix = before
}

// holdsDocument reports whether a text can be rules or a dashboard.
func holdsDocument(key, text string) bool {
	for _, suffix := range []string{".json", ".yaml", ".yml", ".rules"} {
		if strings.HasSuffix(key, suffix) {
			return true
		}
	}
	return strings.Contains(text, "groups:") || strings.HasPrefix(strings.TrimSpace(text), "{")
}

func (r *reader) inner(n *document.Node) {
	if r.depth > 4 {
		return
	}
	d, err := n.Inner()
	if err != nil && !looksKnown(n.Text) {
		r.ignore("a text that cannot be read: " + err.Error())
		return
	}
	if err != nil {
		r.file.Problems = append(r.file.Problems, Problem{Node: n, Path: strings.TrimSuffix(r.prefix, ": "), Message: "it cannot be read: " + err.Error()})
		return
	}
	for _, root := range d.Roots {
		r.value(root)
	}
}

// looksKnown reports whether a text that cannot be read was meant as rules or as a dashboard. A
// ConfigMap has other things, too.
func looksKnown(text string) bool {
	return strings.Contains(text, "expr") && (strings.Contains(text, "groups") || strings.Contains(text, "panels") || strings.Contains(text, "targets"))
}

// operatorDashboard reads the object of the Grafana operator.
func (r *reader) operatorDashboard(spec *document.Node) {
	text := spec.Get("json")
	if !text.Is(document.Scalar) || text.Text == "" {
		r.ignore("a GrafanaDashboard without the field json, which is the only checked one")
		return
	}
	r.kind("GrafanaDashboard")
	r.inner(text)
}
