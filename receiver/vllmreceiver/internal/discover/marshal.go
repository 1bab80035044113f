package discover

import (
	"net/url"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/discovery"
	"github.com/prometheus/prometheus/model/relabel"
	"go.yaml.in/yaml/v2"
	yamlv3 "go.yaml.in/yaml/v3"
)

// redacted replaces a secret, as in the rest of the collector.
const redacted = "[REDACTED]"

// String returns the settings without secrets.
func (s Settings) String() string {
	all, err := s.Map()
	if err != nil {
		return "discovery settings that cannot be printed: " + err.Error()
	}
	text, err := yaml.Marshal(all)
	if err != nil {
		return "discovery settings that cannot be printed: " + err.Error()
	}
	return string(text)
}

// GoString returns the settings without secrets.
func (s Settings) GoString() string { return s.String() }

// Map returns the section in the form of the configuration, without secrets.
func (s *Settings) Map() (map[string]any, error) {
	text, err := yaml.Marshal(&Settings{Kubernetes: s.Kubernetes, InferencePool: s.InferencePool, Mechanisms: s.Mechanisms})
	if err != nil {
		return nil, err
	}
	out := map[string]any{}
	if err := yamlv3.Unmarshal(text, &out); err != nil {
		return nil, err
	}
	var rules []any
	for _, rule := range s.RelabelConfigs {
		rules = append(rules, ruleMap(rule))
	}
	if len(rules) > 0 {
		out["relabel_configs"] = rules
	}
	return redact("", out).(map[string]any), nil
}

// MarshalYAML writes Prometheus's mechanisms under their keys.
func (s *Settings) MarshalYAML() (any, error) { return discovery.MarshalYAMLWithInlineConfigs(s) }

// ruleMap returns all settings of a rule. The library omits an empty replacement, which
// is not the default.
func ruleMap(rule *relabel.Config) map[string]any {
	if rule == nil {
		return nil
	}
	out := map[string]any{
		"separator": rule.Separator, "regex": rule.Regex.String(), "replacement": rule.Replacement, "action": string(rule.Action),
	}
	if len(rule.SourceLabels) > 0 {
		var names []any
		for _, name := range rule.SourceLabels {
			names = append(names, string(name))
		}
		out["source_labels"] = names
	}
	if rule.TargetLabel != "" {
		out["target_label"] = rule.TargetLabel
	}
	if rule.Modulus != 0 {
		out["modulus"] = int(rule.Modulus)
	}
	if strings.HasPrefix(rule.TargetLabel, model.ParamLabelPrefix) {
		out["replacement"] = redacted
	}
	return out
}

// redact replaces what may be a secret: what the library marks as one, the credentials
// and the query of an address, and the parameters of a request.
func redact(key string, value any) any {
	switch value := value.(type) {
	case map[string]any:
		for name, item := range value {
			value[name] = redact(name, item)
		}
	case []any:
		for i, item := range value {
			value[i] = redact(key, item)
		}
	case string:
		switch {
		case value == "<secret>" || strings.HasPrefix(key, model.ParamLabelPrefix):
			return redacted
		case strings.Contains(value, "://"):
			return redactedAddress(value)
		}
	}
	return value
}

func redactedAddress(text string) string {
	address, err := url.Parse(text)
	if err != nil {
		return redacted
	}
	if address.User != nil {
		address.User = url.User("REDACTED")
	}
	if address.RawQuery != "" {
		address.RawQuery = "REDACTED"
	}
	return address.String()
}
