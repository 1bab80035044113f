package rulefile_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// What the definition of the resource (monitoring.coreos.com/v1 of the operator 0.82) accepts: the API
// server drops or refuses everything else.
func TestTheAPIServerAcceptsThePrometheusRule(t *testing.T) {
	duration := regexp.MustCompile(`^(0|(([0-9]+)y)?(([0-9]+)w)?(([0-9]+)d)?(([0-9]+)h)?(([0-9]+)m)?(([0-9]+)s)?(([0-9]+)ms)?)$`)
	name := regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`)
	for path, data := range files(t) {
		if !strings.HasSuffix(path, "-rules.yaml") {
			continue
		}
		var resource struct {
			Metadata struct{ Name string }
			Spec     map[string][]map[string]any
		}
		require.NoError(t, yaml.Unmarshal(data, &resource), path)
		assert.Regexp(t, name, resource.Metadata.Name)
		require.Len(t, resource.Spec, 1)
		// The groups are a map by name, so no name may be there twice.
		seen := map[string]bool{}
		for _, group := range resource.Spec["groups"] {
			text, is := group["name"].(string)
			require.True(t, is && text != "" && !seen[text], "%s: %v", path, group["name"])
			seen[text] = true
			for key, v := range group {
				assert.Contains(t, []string{"name", "interval", "rules"}, key)
				if key == "interval" {
					assert.Regexp(t, duration, v)
				}
			}
			for _, rule := range group["rules"].([]any) {
				for key, v := range rule.(map[string]any) {
					switch key {
					case "alert", "record", "expr":
						assert.NotEmpty(t, v)
						assert.IsType(t, "", v)
					case "for", "keep_firing_for":
						assert.NotEmpty(t, v)
						assert.Regexp(t, duration, v)
					case "labels", "annotations":
						for _, each := range v.(map[string]any) {
							assert.IsType(t, "", each, "%s: labels and annotations are strings", path)
						}
					default:
						assert.Fail(t, "a field that the resource does not have", key)
					}
				}
			}
		}
	}
	assert.NotRegexp(t, duration, "1.5h")
}
