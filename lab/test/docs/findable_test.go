package docs

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// What is shipped besides programs is at most two links away from the README.
func TestContentIsTwoLinksFromTheReadme(t *testing.T) {
	reached := map[string]bool{"README.md": true}
	for range 2 {
		next := map[string]bool{}
		for path := range reached {
			if filepath.Ext(path) == "" {
				path = filepath.Join(path, "README.md") // the page that a folder shows
			}
			page, exists := onDisk(path)
			if !exists || filepath.Ext(path) != ".md" {
				continue
			}
			for _, match := range link.FindAllStringSubmatch(prose(page), -1) {
				if !remote.MatchString(match[1]) {
					next[filepath.Join(filepath.Dir(path), strings.Split(match[1], "#")[0])] = true
				}
			}
		}
		for path := range next {
			reached[path] = true
		}
	}
	for _, want := range []string{
		"docs/alerts.md", "docs/start/dashboards.md", "docs/reference/dashboards.md", "docs/runbooks/README.md", "docs/runbooks/symptoms.md",
		"docs/reference/backends.md", "docs/development.md",
		"content/rules/suffixed/vllm.yaml", "content/kubernetes/vllm-rules.yaml", "content/mixin/mixin.libsonnet",
		"docs/reference/vllmctl.md", "content/alertmanager/inhibition.yaml", "content/grafana", "content/perses", "content/datadog/README.md",
	} {
		assert.True(t, reached[want], want)
	}
}
