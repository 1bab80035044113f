package kubernetes

import (
	"encoding/json"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/otelcol-vllm/otelcol-vllm/internal/test/race"
)

// objects are those of a rendering by kind, namespace and name, as plain maps.
type objects map[string]map[string]any

func plain(t *testing.T, manifests []byte) objects {
	t.Helper()
	all := objects{}
	for _, object := range mustDecode(t, manifests) {
		text, err := json.Marshal(object)
		require.NoError(t, err)
		var m map[string]any
		require.NoError(t, json.Unmarshal(text, &m))
		all[name(object)] = m
	}
	return all
}

// An allowance is a difference between an overlay and the chart that is meant. It takes the
// difference out of both.
type allowance struct {
	why   string
	apply func(overlay, chart objects)
}

// at follows keys into an object; nil where one is missing.
func at(object map[string]any, keys ...string) map[string]any {
	for _, key := range keys {
		next, ok := object[key].(map[string]any)
		if !ok {
			return nil
		}
		object = next
	}
	return object
}

// each calls do for all maps inside of a value, the value itself among them.
func each(value any, do func(map[string]any)) {
	switch v := value.(type) {
	case map[string]any:
		do(v)
		for _, inside := range v {
			each(inside, do)
		}
	case []any:
		for _, inside := range v {
			each(inside, do)
		}
	}
}

// hashed is the name of a ConfigMap or a Secret that kustomize has generated.
var hashed = regexp.MustCompile(`^(otelcol-vllm-[a-z-]+?)-[a-z0-9]{10}$`)

var allowances = []allowance{
	{
		why: "kustomize makes the namespace; a release is installed into one that exists",
		apply: func(overlay, _ objects) {
			maps.DeleteFunc(overlay, func(_ string, o map[string]any) bool { return o["kind"] == "Namespace" })
		},
	},
	{
		why: "kustomize puts a hash of the content into names, so that a change rolls the pods",
		apply: func(overlay, _ objects) {
			for id, object := range overlay {
				each(object, func(m map[string]any) {
					if text, ok := m["name"].(string); ok {
						m["name"] = hashed.ReplaceAllString(text, "$1")
					}
				})
				delete(overlay, id)
				kind, rest, _ := strings.Cut(id, "/")
				overlay[kind+"/"+hashed.ReplaceAllString(rest, "$1")] = object
			}
		},
	},
	{
		why: "the chart has an annotation with a checksum for that",
		apply: func(_, chart objects) {
			for _, object := range chart {
				annotations := at(object, "spec", "template", "metadata", "annotations")
				delete(annotations, "checksum/configuration")
				delete(annotations, "checksum/sidecar")
				if annotations != nil && len(annotations) == 0 {
					delete(at(object, "spec", "template", "metadata"), "annotations")
				}
			}
		},
	},
	{
		why: "Helm's conventions ask for labels that say what release an object is of, on every object",
		apply: func(overlay, chart objects) {
			for id, object := range chart {
				labels := at(object, "metadata", "labels")
				for _, label := range []string{"helm.sh/chart", "app.kubernetes.io/managed-by", "app.kubernetes.io/instance", "app.kubernetes.io/version"} {
					delete(labels, label)
				}
				for _, label := range []string{"app.kubernetes.io/name", "app.kubernetes.io/component"} {
					if _, both := at(overlay[id], "metadata", "labels")[label]; !both {
						delete(labels, label)
					}
				}
				if labels != nil && len(labels) == 0 {
					delete(at(object, "metadata"), "labels")
				}
			}
		},
	},
	{
		why: "two releases may be in one namespace, so selectors name the release",
		apply: func(_, chart objects) {
			for _, object := range chart {
				delete(at(object, "spec", "template", "metadata", "labels"), "app.kubernetes.io/instance")
				delete(at(object, "spec", "selector"), "app.kubernetes.io/instance")
				each(object["spec"], func(m map[string]any) { delete(at(m, "matchLabels"), "app.kubernetes.io/instance") })
			}
		},
	},
	{
		why: "some settings are there only for kustomize to copy them into manifests",
		apply: func(overlay, _ objects) {
			for id, object := range overlay {
				if !strings.HasSuffix(id, "-settings") {
					continue
				}
				data := at(object, "data")
				delete(data, "MONITORING_NAMESPACE")
				delete(data, "PICKER_NAMESPACE")
				if _, reads := data["VLLM_SELECTOR"]; !reads {
					delete(data, "VLLM_PORT")
				}
			}
		},
	},
	{
		why:   "the chart has the dashboards without indentation",
		apply: parsed(".json"),
	},
	{
		why: "the order of containers, variables, volumes and rules of a NetworkPolicy has no meaning",
		apply: func(overlay, chart objects) {
			for _, side := range []objects{overlay, chart} {
				for _, object := range side {
					each(object, func(m map[string]any) {
						for _, list := range []string{"env", "volumes", "volumeMounts", "containers", "egress"} {
							if entries, ok := m[list].([]any); ok {
								slices.SortFunc(entries, func(a, b any) int { return strings.Compare(asJSON(a), asJSON(b)) })
							}
						}
					})
				}
			}
		},
	},
}

// parsed compares what the files with an ending say, not how they are written.
func parsed(ending string) func(overlay, chart objects) {
	return func(overlay, chart objects) {
		for _, side := range []objects{overlay, chart} {
			for _, object := range side {
				data := at(object, "data")
				for name, text := range data {
					var value any
					if strings.HasSuffix(name, ending) && yaml.Unmarshal([]byte(text.(string)), &value) == nil {
						data[name] = value
					}
				}
			}
		}
	}
}

func asJSON(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// compared are both sides of an overlay as text, without what is allowed to differ.
func compared(t *testing.T, overlay, chart []byte, allowed []allowance) (string, string) {
	t.Helper()
	left, right := plain(t, overlay), plain(t, chart)
	for _, a := range allowed {
		a.apply(left, right)
	}
	texts := [2]string{}
	for i, side := range []objects{left, right} {
		text, err := yaml.Marshal(side)
		require.NoError(t, err)
		texts[i] = string(text)
	}
	return texts[0], texts[1]
}

func TestTheChartMakesTheSameObjectsAsTheOverlays(t *testing.T) {
	race.SkipSequential(t)
	ours, theirs := overlays(t), helmed(t)
	assert.ElementsMatch(t, slices.Collect(maps.Keys(ours)), slices.Collect(maps.Keys(theirs)), "each overlay has values in examples/helm/otelcol-vllm/ci")
	needed := map[string]bool{}
	for overlay, rendered := range ours {
		want, got := compared(t, rendered, theirs[overlay], allowances)
		assert.Equal(t, want, got, overlay)
		// An allowance that makes no difference would hide one that comes later.
		for i, a := range allowances {
			if needed[a.why] {
				continue
			}
			want, got := compared(t, rendered, theirs[overlay], slices.Delete(slices.Clone(allowances), i, i+1))
			needed[a.why] = want != got
		}
	}
	for _, a := range allowances {
		assert.True(t, needed[a.why], "nothing differs in this way: %s", a.why)
	}
}

// Objectives are a component of the overlays and a value of the chart, which writes the file without comments.
func TestObjectivesAreTheSameInBothForms(t *testing.T) {
	race.SkipSequential(t)
	text, err := os.ReadFile(folder + "/components/objectives/objectives.yaml")
	require.NoError(t, err)
	var file struct {
		Processors struct {
			VLLM struct {
				Objectives   []any  `json:"objectives"`
				BudgetWindow string `json:"budget_window"`
			} `json:"vllm"`
		} `json:"processors"`
	}
	require.NoError(t, yaml.Unmarshal(text, &file))
	require.NotEmpty(t, file.Processors.VLLM.Objectives)
	change, err := yaml.Marshal(map[string]any{"objectives": file.Processors.VLLM.Objectives, "budgetWindow": file.Processors.VLLM.BudgetWindow})
	require.NoError(t, err)
	allowed := append(slices.Clone(allowances), allowance{"without the comments of the example", parsed("objectives.yaml")})
	want, got := compared(t, renderedAbove(t, copied(t), "pool", "objectives"), thin(t, "pool", string(change)), allowed)
	assert.Equal(t, want, got)
	assert.Contains(t, got, "2.5s")
}

// The comparison can fail, also for what an allowance looks at.
func TestTheComparisonNoticesADifference(t *testing.T) {
	race.SkipSequential(t)
	overlay, chart := overlays(t)["pool"], string(thin(t, "pool"))
	for _, row := range []struct{ old, new string }{
		{"readOnlyRootFilesystem: true", "readOnlyRootFilesystem: false"},
		{"port: 6443", "port: 6444"},
		{"app.kubernetes.io/component: rules", "app.kubernetes.io/component: others"},
		{"VLLM_NAMESPACE: \"vllm\"", "VLLM_NAMESPACE: \"models\""},
		{"name: otelcol-vllm-pool-settings", "name: otelcol-vllm-pool-set"},
		{"inferencepools", "inferencemodels"},
		{"value: 800MiB", "value: 801MiB"},
	} {
		require.Contains(t, chart, row.old)
		want, got := compared(t, overlay, []byte(strings.ReplaceAll(chart, row.old, row.new)), allowances)
		assert.NotEqual(t, want, got, row.old)
	}
}

// mergedConfig merges configurations as the collector does.
func mergedConfig(t *testing.T, texts []string) map[string]any {
	t.Helper()
	all := map[string]any{}
	for _, text := range texts {
		var next map[string]any
		require.NoError(t, yaml.Unmarshal([]byte(text), &next))
		merge(all, next)
	}
	return all
}
