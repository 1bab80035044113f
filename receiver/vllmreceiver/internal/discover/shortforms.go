package discover

import (
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/prometheus/common/config"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/discovery/kubernetes"
	"github.com/prometheus/prometheus/model/relabel"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// Pods are the settings that both short forms have: which pods, and where their metrics
// are.
type Pods struct {
	// Node selects the pods of one node.
	Node string `yaml:"node,omitempty" mapstructure:"node"`
	// ReadyOnly excludes the pods that were never ready; nil means true.
	ReadyOnly *bool  `yaml:"ready_only,omitempty" mapstructure:"ready_only"`
	Path      string `yaml:"path,omitempty" mapstructure:"path"`
	Scheme    string `yaml:"scheme,omitempty" mapstructure:"scheme"`
	// APIServer and KubeConfig are for a collector outside the cluster.
	APIServer  string `yaml:"api_server,omitempty" mapstructure:"api_server"`
	KubeConfig string `yaml:"kubeconfig_file,omitempty" mapstructure:"kubeconfig_file"`
}

// Kubernetes is the short form for the pods of a selector.
type Kubernetes struct {
	Namespaces []string `yaml:"namespaces,omitempty" mapstructure:"namespaces"`
	Selector   string   `yaml:"selector,omitempty" mapstructure:"selector"`
	Port       int      `yaml:"port,omitempty" mapstructure:"port"`
	Pods       Pods     `yaml:",inline" mapstructure:",squash"`
}

// InferencePool is the short form for the pods of an InferencePool.
type InferencePool struct {
	Name      string `yaml:"name" mapstructure:"name"`
	Namespace string `yaml:"namespace" mapstructure:"namespace"`
	Pods      Pods   `yaml:",inline" mapstructure:",squash"`
}

// defaultPort is the default port of vLLM.
const defaultPort = 8000

func (k *Kubernetes) validate() []error {
	var mistakes []error
	add := func(key, format string, args ...any) {
		mistakes = append(mistakes, fmt.Errorf("kubernetes::%s: %s", key, fmt.Sprintf(format, args...)))
	}
	if k.Selector == "" {
		add("selector", "is missing; write the labels of the vLLM pods, for example app.kubernetes.io/component=inference")
	} else if _, err := labels.Parse(k.Selector); err != nil {
		add("selector", "is not a label selector of Kubernetes: %v", err)
	}
	if k.Port < 0 || k.Port > 65535 {
		add("port", "%d is not a port", k.Port)
	}
	for i, namespace := range k.Namespaces {
		if namespace == "" {
			add("namespaces::"+strconv.Itoa(i), "is empty; leave the list out to look into all namespaces")
		}
	}
	k.Pods.validate(add)
	return mistakes
}

func (p *InferencePool) validate() []error {
	var mistakes []error
	add := func(key, format string, args ...any) {
		mistakes = append(mistakes, fmt.Errorf("inference_pool::%s: %s", key, fmt.Sprintf(format, args...)))
	}
	if p.Name == "" {
		add("name", "is missing; write the name of the InferencePool")
	}
	if p.Namespace == "" {
		add("namespace", "is missing; write the namespace of the InferencePool")
	}
	p.Pods.validate(add)
	return mistakes
}

func (p *Pods) validate(add func(key, format string, args ...any)) {
	if p.KubeConfig != "" {
		if _, err := os.Stat(p.KubeConfig); err != nil {
			add("kubeconfig_file", "the file cannot be read: %v", err)
		}
	}
	if p.Scheme != "" && p.Scheme != "http" && p.Scheme != "https" {
		add("scheme", "%q is unknown; write http or https", p.Scheme)
	}
	if p.Path != "" && !strings.HasPrefix(p.Path, "/") {
		add("path", "%q does not begin with /", p.Path)
	}
	if p.APIServer != "" {
		if p.KubeConfig != "" {
			add("api_server", "set either api_server or kubeconfig_file")
		}
		if u, err := url.Parse(p.APIServer); err != nil || u.Host == "" {
			add("api_server", "is not a URL; write for example https://10.0.0.1:6443")
		}
	}
}

// expand returns the configuration of Prometheus for the pods of a selector in these
// namespaces.
func (p *Pods) expand(namespaces []string, selector string) *kubernetes.SDConfig {
	out := kubernetes.DefaultSDConfig
	out.Role = kubernetes.RolePod
	out.KubeConfig = p.KubeConfig
	out.NamespaceDiscovery.Names = namespaces
	if p.APIServer != "" {
		// validate has checked it.
		address, _ := url.Parse(p.APIServer)
		out.APIServer = config.URL{URL: address}
	}
	pods := kubernetes.SelectorConfig{Role: kubernetes.RolePod, Label: selector}
	if p.Node != "" {
		pods.Field = fields.OneTermEqualSelector("spec.nodeName", p.Node).String()
	}
	out.Selectors = []kubernetes.SelectorConfig{pods}
	return &out
}

// rules returns the relabelling rules that make one target of each pod: its address with
// this port, whatever ports its containers declare.
func (p *Pods) rules(port int) []*relabel.Config {
	number := strconv.Itoa(port)
	out := []*relabel.Config{
		set(model.AddressLabel, "pod_ip", "([^:]+)", "${1}:"+number),
		set(model.AddressLabel, "pod_ip", "(.*:.*)", "[${1}]:"+number),
	}
	if p.Path != "" {
		out = append(out, set(model.MetricsPathLabel, "", "(.*)", literal(p.Path)))
	}
	if p.Scheme != "" {
		out = append(out, set(model.SchemeLabel, "", "(.*)", p.Scheme))
	}
	return out
}

// scraped reports whether a pod is scraped.
func (p *Pods) scraped(pod *podState) bool {
	return pod.scraped(p.ReadyOnly == nil || *p.ReadyOnly)
}

// literal escapes a text, so that a replacement contains it unchanged.
func literal(text string) string { return strings.ReplaceAll(text, "$", "$$") }

func set(target, label, regex, replacement string) *relabel.Config {
	rule := relabel.DefaultRelabelConfig
	rule.TargetLabel = target
	if label != "" {
		rule.SourceLabels = model.LabelNames{model.LabelName(metaPrefix + label)}
	}
	rule.Regex = relabel.MustNewRegexp(regex)
	rule.Replacement = replacement
	rule.NameValidationScheme = model.UTF8Validation
	return &rule
}
