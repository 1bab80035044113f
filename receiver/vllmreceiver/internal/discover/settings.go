package discover

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/discovery"
	"github.com/prometheus/prometheus/discovery/dns"
	"github.com/prometheus/prometheus/discovery/file"
	"github.com/prometheus/prometheus/discovery/http"
	"github.com/prometheus/prometheus/model/relabel"
	"go.yaml.in/yaml/v2"
)

// Settings are what to discover. They hold secrets, such as the credentials for
// an HTTP endpoint, and are therefore never printed.
type Settings struct {
	mechanisms discovery.Configs
	rules      []*relabel.Config
	kubernetes *kubernetesForm
	pool       *poolForm
}

// String hides the secrets from every print.
func (*Settings) String() string { return "discovery settings" }

// GoString hides them from %#v too.
func (s *Settings) GoString() string { return s.String() }

// written is the section as a whole. Prometheus's library adds the keys of its
// registered mechanisms.
type written struct {
	Rules      []*relabel.Config `yaml:"relabel_configs,omitempty"`
	Kubernetes *kubernetesForm   `yaml:"kubernetes,omitempty"`
	Pool       *poolForm         `yaml:"inference_pool,omitempty"`
	Mechanisms discovery.Configs `yaml:"-"`
}

// UnmarshalYAML reads the section with Prometheus's own unmarshallers.
func (w *written) UnmarshalYAML(unmarshal func(any) error) error {
	return discovery.UnmarshalYAMLWithInlineConfigs(w, unmarshal)
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
			if err := read(map[string]any{key: section[key]}, &written{}); err != nil {
				mistakes = append(mistakes, fmt.Errorf("%s: %w", key, err))
			}
			continue
		}
		for i := range list {
			if err := read(map[string]any{key: list[i : i+1]}, &written{}); err != nil {
				mistakes = append(mistakes, fmt.Errorf("%s::%d: %w", key, i, err))
			}
		}
	}
	if len(mistakes) > 0 {
		return nil, mistakes
	}
	// As a whole and not by parts: Prometheus numbers the groups of a list.
	var all written
	if err := read(section, &all); err != nil {
		return nil, []error{err}
	}
	s := &Settings{mechanisms: all.Mechanisms, rules: all.Rules, kubernetes: all.Kubernetes, pool: all.Pool}
	mistakes = s.validate(section)
	return s, mistakes
}

// read goes through YAML, because Prometheus's types know no other way in.
func read(section map[string]any, out *written) error {
	text, err := yaml.Marshal(section)
	if err != nil {
		return err
	}
	if err := yaml.UnmarshalStrict(text, out); err != nil {
		return words(err)
	}
	return nil
}

var (
	unknownField = regexp.MustCompile(`field (\S+) not found in type .*`)
	lineNumber   = regexp.MustCompile(`line \d+: `)
)

// words turns an error of the YAML library into a sentence about the setting.
// Its line numbers count in a text that the user has never seen.
func words(err error) error {
	var typed *yaml.TypeError
	if !errors.As(err, &typed) {
		return errors.New(lineNumber.ReplaceAllString(strings.TrimPrefix(err.Error(), "yaml: "), ""))
	}
	messages := make([]string, len(typed.Errors))
	for i, message := range typed.Errors {
		message = lineNumber.ReplaceAllString(message, "")
		messages[i] = unknownField.ReplaceAllString(message, "the setting $1 is unknown")
	}
	return errors.New(strings.Join(messages, "; "))
}

func (s *Settings) validate(section map[string]any) []error {
	var mistakes []error
	for i, rule := range s.rules {
		if rule == nil {
			mistakes = append(mistakes, fmt.Errorf("relabel_configs::%d: is empty", i))
		} else if err := rule.Validate(model.UTF8Validation); err != nil {
			mistakes = append(mistakes, fmt.Errorf("relabel_configs::%d: %w", i, err))
		}
	}
	for _, c := range s.mechanisms {
		if interval, ok := refreshOf(c); ok && interval < minRefresh {
			mistakes = append(mistakes, fmt.Errorf("%s_sd_configs: refresh_interval %s is too short; the least is %s",
				c.Name(), interval, minRefresh))
		}
	}
	if s.kubernetes != nil {
		mistakes = append(mistakes, s.kubernetes.validate(section["kubernetes"])...)
	}
	if s.pool != nil {
		mistakes = append(mistakes, s.pool.validate(section["inference_pool"])...)
	}
	if len(s.mechanisms) == 0 && s.kubernetes == nil && s.pool == nil {
		mistakes = append(mistakes, errors.New("has nothing to discover by; add for example kubernetes, inference_pool or file_sd_configs"))
	}
	return mistakes
}

// minRefresh is the least time between two questions to a list of targets.
const minRefresh = 100 * time.Millisecond

// refreshOf returns how often a mechanism asks, if it asks.
func refreshOf(c discovery.Config) (time.Duration, bool) {
	switch c := c.(type) {
	case *http.SDConfig:
		return time.Duration(c.RefreshInterval), true
	case *file.SDConfig:
		return time.Duration(c.RefreshInterval), true
	case *dns.SDConfig:
		return time.Duration(c.RefreshInterval), true
	}
	return 0, false
}
