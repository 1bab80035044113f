package discover

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/config"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/discovery"
	"github.com/prometheus/prometheus/discovery/dns"
	"github.com/prometheus/prometheus/discovery/file"
	"github.com/prometheus/prometheus/discovery/http"
	"github.com/prometheus/prometheus/discovery/kubernetes"
	"github.com/prometheus/prometheus/model/relabel"
	"go.yaml.in/yaml/v2"

	"github.com/otelcol-vllm/otelcol-vllm/internal/settings"
)

// Settings configure the discovery. They contain secrets, such as the credentials for an
// HTTP endpoint; they are printed and marshalled without them.
type Settings struct {
	// Kubernetes is the short form for the pods of a selector.
	Kubernetes *Kubernetes `mapstructure:"kubernetes" yaml:"kubernetes,omitempty"`
	// InferencePool is the short form for the pods of an InferencePool.
	InferencePool *InferencePool `mapstructure:"inference_pool" yaml:"inference_pool,omitempty"`
	// Mechanisms are Prometheus's own, in its types: kubernetes_sd_configs,
	// http_sd_configs, file_sd_configs, dns_sd_configs and static_configs.
	Mechanisms discovery.Configs `mapstructure:"-" yaml:"-"`
	// RelabelConfigs are Prometheus's rules, for all targets.
	RelabelConfigs []*relabel.Config `mapstructure:"-" yaml:"relabel_configs,omitempty"`
}

// IsSet reports whether at least one mechanism or short form is set.
func (s *Settings) IsSet() bool {
	return len(s.Mechanisms) > 0 || s.Kubernetes != nil || s.InferencePool != nil
}

// UnmarshalYAML reads the section with Prometheus's own unmarshallers. Its library adds the keys
// of its registered mechanisms.
func (s *Settings) UnmarshalYAML(unmarshal func(any) error) error {
	return discovery.UnmarshalYAMLWithInlineConfigs(s, unmarshal)
}

// Parse reads the section. Each mistake is an error that begins with its key
// below the section, such as "kubernetes_sd_configs::0".
func Parse(section map[string]any) (*Settings, []error) {
	known := []string{"relabel_configs", "kubernetes", "inference_pool"}
	for _, name := range discovery.RegisteredConfigNames() {
		known = append(known, name+"_sd_configs")
	}
	known[slices.Index(known, "static_sd_configs")] = "static_configs"
	slices.Sort(known)
	var mistakes []error
	for _, key := range slices.Sorted(maps.Keys(section)) {
		if !slices.Contains(known, key) {
			mistakes = append(mistakes, fmt.Errorf("%s: is unknown; known are %s", key, strings.Join(known, ", ")))
			continue
		}
		list, ok := section[key].([]any)
		if !ok {
			if err := read(map[string]any{key: section[key]}, &Settings{}); err != nil {
				mistakes = append(mistakes, fmt.Errorf("%s: %w", key, err))
			}
			continue
		}
		for i := range list {
			if err := read(map[string]any{key: list[i : i+1]}, &Settings{}); err != nil {
				mistakes = append(mistakes, fmt.Errorf("%s::%d: %w", key, i, err))
			}
		}
	}
	if len(mistakes) > 0 {
		return nil, mistakes
	}
	// All at once, because Prometheus numbers the groups of a list.
	s := &Settings{}
	if err := read(section, s); err != nil {
		return nil, []error{err}
	}
	return s, slices.Concat(emptyNodes(section), emptyRules(section), s.Mistakes())
}

// emptyNodes finds a node that is set and empty, which cannot be seen any more
// once it is read. It would mean every node, and a DaemonSet that scrapes
// everything on every node multiplies the series.
func emptyNodes(section map[string]any) (mistakes []error) {
	for _, key := range []string{"kubernetes", "inference_pool"} {
		form, _ := section[key].(map[string]any)
		if node, set := form["node"]; set && (node == nil || node == "") {
			mistakes = append(mistakes, fmt.Errorf("%s::node: is empty; is the environment variable that it comes from set? "+
				"Leave the key out to scrape the pods of all nodes", key))
		}
	}
	return mistakes
}

// read converts the section to YAML, because Prometheus's types can only be read from
// YAML.
func read(section map[string]any, out *Settings) error {
	text, err := yaml.Marshal(section)
	if err != nil {
		return err
	}
	if err := yaml.UnmarshalStrict(text, out); err != nil {
		var known []string
		for key := range section {
			known = append(known, keysOf[key]...)
		}
		return words(err, known)
	}
	return nil
}

// keysOf are the settings of the parts, for messages.
var keysOf = map[string][]string{
	"kubernetes":            settings.Keys(reflect.TypeFor[Kubernetes](), "yaml"),
	"inference_pool":        settings.Keys(reflect.TypeFor[InferencePool](), "yaml"),
	"relabel_configs":       settings.Keys(reflect.TypeFor[relabel.Config](), "yaml"),
	"kubernetes_sd_configs": settings.Keys(reflect.TypeFor[kubernetes.SDConfig](), "yaml"),
	"http_sd_configs":       settings.Keys(reflect.TypeFor[http.SDConfig](), "yaml"),
	"file_sd_configs":       settings.Keys(reflect.TypeFor[file.SDConfig](), "yaml"),
	"dns_sd_configs":        settings.Keys(reflect.TypeFor[dns.SDConfig](), "yaml"),
}

var (
	unknownField = regexp.MustCompile(`field (\S+) not found in type .*`)
	lineNumber   = regexp.MustCompile(`line \d+: `)
)

// words converts an error of the YAML library to a sentence about the setting. It removes
// line numbers, because they are not those of the user's file.
func words(err error, known []string) error {
	var address *url.Error
	if errors.As(err, &address) {
		// Its text and its reason have the address with its secrets.
		return errors.New("an address is not a URL; in a user name or a password write % as %25, / as %2F and # as %23")
	}
	var typed *yaml.TypeError
	if !errors.As(err, &typed) {
		text := lineNumber.ReplaceAllString(strings.TrimPrefix(err.Error(), "yaml: "), "")
		if strings.HasPrefix(text, "unknown Kubernetes SD role ") {
			text += "; write pod, or endpoints, endpointslice, ingress, node or service"
		}
		if strings.HasPrefix(text, "unknown unit ") || strings.HasPrefix(text, "not a valid duration string") {
			text += "; write a number with its unit, for example 15s"
		}
		return errors.New(text)
	}
	messages := make([]string, len(typed.Errors))
	for i, message := range typed.Errors {
		message = lineNumber.ReplaceAllString(message, "")
		if field := unknownField.FindStringSubmatch(message); field != nil {
			message = "the setting " + field[1] + " " + settings.Unknown(field[1], known)
		}
		messages[i] = message
	}
	return errors.New(strings.Join(messages, "; "))
}

// Mistakes returns the mistakes in the values of the settings.
func (s *Settings) Mistakes() []error {
	var mistakes []error
	for i, rule := range s.RelabelConfigs {
		if rule == nil {
			mistakes = append(mistakes, fmt.Errorf("relabel_configs::%d: is empty", i))
		} else if err := rule.Validate(model.UTF8Validation); err != nil {
			mistakes = append(mistakes, fmt.Errorf("relabel_configs::%d: %w", i, err))
		}
	}
	for _, c := range s.Mechanisms {
		mistakes = append(mistakes, mistakesOf(c)...)
	}
	if s.Kubernetes != nil {
		mistakes = append(mistakes, s.Kubernetes.validate()...)
	}
	if s.InferencePool != nil {
		mistakes = append(mistakes, s.InferencePool.validate()...)
	}
	if !s.IsSet() {
		mistakes = append(mistakes, errors.New("has no mechanism; add for example kubernetes, inference_pool or file_sd_configs"))
	}
	return mistakes
}

// minRefresh is the shortest time between two reads of a list of targets.
const minRefresh = 100 * time.Millisecond

// mistakesOf returns the mistakes of a mechanism: files that it needs at its start and that cannot
// be read, and a list that is read too often.
func mistakesOf(c discovery.Config) (mistakes []error) {
	var client config.HTTPClientConfig
	kubeConfig, refresh := "", model.Duration(minRefresh)
	switch c := c.(type) {
	case *kubernetes.SDConfig:
		client, kubeConfig = c.HTTPClientConfig, c.KubeConfig
	case *http.SDConfig:
		client, refresh = c.HTTPClientConfig, c.RefreshInterval
	case *file.SDConfig:
		refresh = c.RefreshInterval
	case *dns.SDConfig:
		refresh = c.RefreshInterval
	}
	for _, file := range []struct{ key, name string }{
		{"kubeconfig_file", kubeConfig},
		{"tls_config::ca_file", client.TLSConfig.CAFile},
		{"tls_config::cert_file", client.TLSConfig.CertFile},
		{"tls_config::key_file", client.TLSConfig.KeyFile},
	} {
		if file.name == "" {
			continue
		}
		if _, err := os.Stat(file.name); err != nil {
			mistakes = append(mistakes, fmt.Errorf("%s_sd_configs: %s: the file cannot be read: %w", c.Name(), file.key, err))
		}
	}
	if refresh < model.Duration(minRefresh) {
		mistakes = append(mistakes, fmt.Errorf("%s_sd_configs: refresh_interval %s is too short; the least is %s",
			c.Name(), time.Duration(refresh), minRefresh))
	}
	return mistakes
}
