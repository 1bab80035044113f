package hosted

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// owned returns the paths of CODEOWNERS that are not there, and the lines without a team of
// this project.
func owned(text string) (missing, odd []string) {
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		bad := func(owner string) bool { return !regexp.MustCompile(`^@otelcol-vllm/[a-z-]+$`).MatchString(owner) }
		if len(fields) < 2 || slices.ContainsFunc(fields[1:], bad) {
			odd = append(odd, line)
		}
		path, isFolder := strings.CutSuffix(fields[0], "/")
		if path == "*" {
			continue
		}
		info, err := os.Stat(filepath.Join(root, path))
		if err != nil || info.IsDir() != isFolder || !strings.HasPrefix(path, "/") {
			missing = append(missing, fields[0])
		}
	}
	return missing, odd
}

func TestEachPathThatHasOwnersIsThere(t *testing.T) {
	t.Parallel()
	text := read(t, filepath.Join(root, ".github", "CODEOWNERS"))
	missing, odd := owned(text)
	assert.Empty(t, missing)
	assert.Empty(t, odd)
	assert.Regexp(t, `(?m)^\* +@otelcol-vllm/maintainers$`, text, "what no other line names has owners")

	missing, odd = owned("/no/such/folder/ @otelcol-vllm/maintainers\n/Makefile/ @otelcol-vllm/maintainers\ninternal @otelcol-vllm/a\n/Makefile somebody\n/go.mod\n")
	assert.Equal(t, []string{"/no/such/folder/", "/Makefile/", "internal"}, missing)
	assert.Len(t, odd, 2)
}

func TestUpdatesLookAtFoldersThatHaveSomethingToUpdate(t *testing.T) {
	t.Parallel()
	var config struct {
		Version int
		Updates []struct {
			Ecosystem string `yaml:"package-ecosystem"`
			Directory string
			Schedule  struct{ Interval string }
			Groups    map[string]struct {
				Patterns []string
				Exclude  []string `yaml:"exclude-patterns"`
			}
		}
	}
	require.NoError(t, yaml.Unmarshal([]byte(read(t, filepath.Join(root, ".github", "dependabot.yml"))), &config))
	assert.Equal(t, 2, config.Version)
	files := map[string]string{"gomod": "go.mod", "github-actions": ".github/workflows/ci.yml", "docker": "Dockerfile", "npm": "package-lock.json"}
	seen := map[string]bool{}
	for _, u := range config.Updates {
		seen[u.Ecosystem] = true
		require.Contains(t, files, u.Ecosystem)
		assert.FileExists(t, filepath.Join(root, u.Directory, files[u.Ecosystem]))
		assert.NotEmpty(t, u.Schedule.Interval, u.Ecosystem)
		if u.Ecosystem != "gomod" {
			continue
		}
		// Modules of the Collector that moved in two pull requests would fit in neither.
		matches := func(patterns []string, module string) bool {
			return slices.ContainsFunc(patterns, func(pattern string) bool {
				prefix, open := strings.CutSuffix(pattern, "*")
				return module == pattern || open && strings.HasPrefix(module, prefix)
			})
		}
		collector := regexp.MustCompile(`(?m)^\s(go\.opentelemetry\.io/collector\S*|github\.com/open-telemetry/opentelemetry-collector-contrib/\S+) `)
		modules := collector.FindAllStringSubmatch(read(t, filepath.Join(root, "go.mod")), -1)
		assert.Greater(t, len(modules), 20)
		for _, m := range modules {
			for name, group := range u.Groups {
				in := matches(group.Patterns, m[1]) && !matches(group.Exclude, m[1])
				assert.Equal(t, name == "collector", in, "%s in the group %s", m[1], name)
			}
		}
	}
	assert.Len(t, seen, len(files), "each kind of dependency is looked at")
}

// A form that GitHub cannot read is not offered, and nothing says why.
func TestTheFormsOfIssuesAreComplete(t *testing.T) {
	t.Parallel()
	type form struct {
		Name, Description string
		Body              []struct {
			Type, ID   string
			Attributes struct{ Label, Value string }
		}
	}
	types := []string{"markdown", "textarea", "input", "dropdown", "checkboxes"}
	files, err := filepath.Glob(filepath.Join(root, ".github", "ISSUE_TEMPLATE", "*.yml"))
	require.NoError(t, err)
	assert.Len(t, files, 4)
	for _, file := range files {
		if filepath.Base(file) == "config.yml" {
			continue
		}
		var f form
		require.NoError(t, yaml.Unmarshal([]byte(read(t, file)), &f), file)
		assert.NotEmpty(t, f.Name, file)
		assert.NotEmpty(t, f.Description, file)
		ids := map[string]bool{}
		for _, part := range f.Body {
			assert.Contains(t, types, part.Type, file)
			if part.Type == "markdown" {
				assert.NotEmpty(t, part.Attributes.Value, file)
				continue
			}
			assert.NotEmpty(t, part.Attributes.Label, file)
			assert.False(t, ids[part.ID], "%s: %s is there twice", file, part.ID)
			ids[part.ID] = true
		}
		if filepath.Base(file) == "bug.yml" {
			for _, id := range []string{"check", "versions", "configuration", "metrics"} {
				assert.True(t, ids[id], "a bug cannot be worked on without %s", id)
			}
		}
	}

	var config struct {
		Blank bool                   `yaml:"blank_issues_enabled"`
		Links []struct{ URL string } `yaml:"contact_links"`
	}
	require.NoError(t, yaml.Unmarshal([]byte(read(t, filepath.Join(root, ".github", "ISSUE_TEMPLATE", "config.yml"))), &config))
	require.Len(t, config.Links, 1)
	assert.Equal(t, "https://github.com/otelcol-vllm/otelcol-vllm/blob/main/SECURITY.md", config.Links[0].URL)
	assert.FileExists(t, filepath.Join(root, "SECURITY.md"), "the forms send those who found a vulnerability there")
}
