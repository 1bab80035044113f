package check

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// Promise is an objective about a latency.
type Promise struct {
	// Name identifies it, and Metric is the histogram.
	Name, Metric string
	// Threshold is the longest good time, and Target the share that must be good.
	Threshold time.Duration
	Target    float64
}

// Promises are the objectives that are suggested: those of examples/objectives.yaml.
func Promises() []Promise {
	return []Promise{
		{"ttft", "vllm.time_to_first_token", 2500 * time.Millisecond, 0.95},
		{"itl", "vllm.inter_token_latency", 100 * time.Millisecond, 0.99},
	}
}

// At moves the threshold to the nearest bound that the histograms of all servers have. It
// returns false where they have none in common.
func (p Promise) At(seen []Seen) (Promise, bool) {
	var common []float64
	first := true
	for i := range seen {
		r := seen[i].First
		if r == nil || r.Outcome != "ok" {
			continue
		}
		bounds, there := boundsOf(r, p.Metric)
		if !there {
			continue
		}
		if first {
			common, first = slices.Clone(bounds), false
			continue
		}
		common = slices.DeleteFunc(common, func(b float64) bool { return !slices.Contains(bounds, b) })
	}
	if len(common) == 0 {
		return p, first
	}
	want := p.Threshold.Seconds()
	nearest := slices.MinFunc(common, func(a, b float64) int {
		if math.Abs(a-want) < math.Abs(b-want) {
			return -1
		}
		return 1
	})
	p.Threshold = time.Duration(math.Round(nearest*1e6)) * time.Microsecond
	return p, p.Threshold > 0
}

// Request is what a configuration to paste is made from.
type Request struct {
	// Endpoints are the addresses of the targets. Client has the settings of the client, and
	// Extensions those that it needs, as a configuration writes them.
	Endpoints  []string
	Client     map[string]any
	Extensions map[string]map[string]any
	Interval   time.Duration
	// Promises are the objectives.
	Promises []Promise
}

// Paste returns a configuration of a collector that scrapes the targets. It has no secret:
// ${env:NAME} stands in its place.
func (q *Request) Paste() (string, error) {
	receiver := map[string]any{"collection_interval": q.Interval.String()}
	maps.Copy(receiver, cleanClient(q.Client))
	var endpoints []string
	for _, e := range q.Endpoints {
		endpoints = append(endpoints, withoutSecrets(e, "VLLM"))
	}
	if len(endpoints) == 1 {
		receiver["endpoint"] = endpoints[0]
	} else {
		var targets []any
		for _, e := range endpoints {
			targets = append(targets, map[string]any{"endpoint": e})
		}
		receiver["targets"] = targets
	}
	processor := map[string]any{}
	var objectives []pastedObjective
	for _, p := range q.Promises {
		objectives = append(objectives, pastedObjective{p.Name, p.Metric, p.Threshold.String(), p.Target})
	}
	if len(objectives) > 0 {
		processor["objectives"] = objectives
	}
	service := pastedService{Pipelines: map[string]pastedPipeline{"metrics": {[]string{"vllm"}, []string{"vllm"}, []string{"prometheus"}}}}
	whole := map[string]any{
		"receivers": map[string]any{"vllm": receiver}, "processors": map[string]any{"vllm": processor},
		"exporters": map[string]any{"prometheus": map[string]any{"endpoint": "127.0.0.1:9464"}},
	}
	if len(q.Extensions) > 0 {
		whole["extensions"] = q.Extensions
		service.Extensions = slices.Sorted(maps.Keys(q.Extensions))
	}
	whole["service"] = service
	return ordered(whole)
}

// pastedObjective, pastedService and pastedPipeline have the usual order of their keys.
type (
	pastedObjective struct {
		Name      string  `yaml:"name"`
		Metric    string  `yaml:"metric"`
		Threshold string  `yaml:"threshold"`
		Target    float64 `yaml:"target"`
	}
	pastedService struct {
		Extensions []string                  `yaml:"extensions,flow,omitempty"`
		Pipelines  map[string]pastedPipeline `yaml:"pipelines"`
	}
	pastedPipeline struct {
		Receivers  []string `yaml:"receivers,flow"`
		Processors []string `yaml:"processors,flow"`
		Exporters  []string `yaml:"exporters,flow"`
	}
)

// ordered writes the sections in the usual order.
func ordered(whole map[string]any) (string, error) {
	var out bytes.Buffer
	for _, section := range []string{"extensions", "receivers", "processors", "exporters", "service"} {
		if whole[section] == nil {
			continue
		}
		encoder := yaml.NewEncoder(&out)
		encoder.SetIndent(2)
		if err := encoder.Encode(map[string]any{section: whole[section]}); err != nil {
			return "", err
		}
		if err := encoder.Close(); err != nil {
			return "", err
		}
	}
	return out.String(), nil
}

// cleanClient replaces the secrets in the settings of a client.
func cleanClient(client map[string]any) map[string]any {
	out := maps.Clone(client)
	if headers, ok := client["headers"].(map[string]any); ok {
		clean := map[string]any{}
		for name := range headers {
			clean[name] = "${env:" + variable("VLLM", name) + "}"
		}
		out["headers"] = clean
	}
	if proxy, ok := client["proxy_url"].(string); ok {
		out["proxy_url"] = withoutSecrets(proxy, "PROXY")
	}
	return out
}

var notInNames = regexp.MustCompile(`[^A-Z0-9]+`)

// variable is the name of an environment variable for a header.
func variable(prefix, name string) string {
	return prefix + "_" + strings.Trim(notInNames.ReplaceAllString(strings.ToUpper(name), "_"), "_")
}

// withoutSecrets replaces the user information and the query of an address.
func withoutSecrets(address, prefix string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "${env:" + prefix + "_ENDPOINT}"
	}
	user, query := u.User, u.RawQuery
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	out := u.String()
	if user != nil {
		out = strings.Replace(out, "://", fmt.Sprintf("://${env:%[1]s_USER}:${env:%[1]s_PASSWORD}@", prefix), 1)
	}
	if query != "" {
		out += "?${env:" + prefix + "_QUERY}"
	}
	return strings.ReplaceAll(out, "$$", "$$$$")
}
