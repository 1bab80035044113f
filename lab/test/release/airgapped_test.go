package release

import (
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

const airgappedPage = "docs/start/air-gapped.md"

var (
	address  = regexp.MustCompile(`[a-z]+://[^\s"'\\)<>|,;]+`)
	image    = regexp.MustCompile(`(?m)^\s*(?:- )?image: "?([^"\s]+)`)
	settings = regexp.MustCompile("(?s)```yaml\n(.*?)```")
)

// airgapped are the values that the page tells, over those of a file: registry.internal is the registry,
// git.internal has the pages, and otlp.internal is the backend.
func airgapped(t *testing.T, file string) map[string]any {
	t.Helper()
	page := read(t, filepath.Join(root, airgappedPage))
	block := settings.FindStringSubmatch(page)
	require.NotNil(t, block, "the page has values")
	var values, printed map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(read(t, file)), &values))
	require.NoError(t, yaml.Unmarshal([]byte(block[1]), &printed))
	printed["backend"] = map[string]any{"endpoint": "https://otlp.internal"}
	for name, section := range printed {
		before, _ := values[name].(map[string]any)
		merged := maps.Clone(before)
		if merged == nil {
			merged = map[string]any{}
		}
		maps.Copy(merged, section.(map[string]any))
		values[name] = merged
	}
	return values
}

// ours reports whether an address is in the cluster or the network of whoever installs the chart.
func ours(text string) bool {
	parsed, err := url.Parse(text)
	if err != nil {
		return false
	}
	host := parsed.Hostname()
	return host == "localhost" || host == "127.0.0.1" || strings.HasSuffix(host, ".svc") || strings.HasSuffix(host, ".internal")
}

func TestTheChartNeedsNothingOfTheInternet(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root, "examples", "helm", "otelcol-vllm", "ci", "*-values.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	elsewhere := func(values map[string]any) (found, images []string) {
		rendered := strings.Join(slices.Collect(maps.Values(render(t, load(t, "otelcol-vllm"), values))), "\n")
		for _, a := range address.FindAllString(rendered, -1) {
			// ${env:NAME} in a configuration, and {{ $runbooks }} in an alert, are what their objects set.
			if !ours(a) && !strings.HasPrefix(a, "http://${") {
				found = append(found, a)
			}
		}
		for _, i := range image.FindAllStringSubmatch(rendered, -1) {
			images = append(images, i[1])
		}
		return found, images
	}
	for _, file := range files {
		found, images := elsewhere(airgapped(t, file))
		assert.Empty(t, found, file)
		for _, i := range images {
			assert.True(t, strings.HasPrefix(i, "registry.internal/"), "%s: %s", file, i)
		}
		assert.NotEmpty(t, images, file)
	}

	values := airgapped(t, files[0])
	rules, _ := values["rules"].(map[string]any)
	require.NotEmpty(t, rules["runbookBase"])
	delete(rules, "runbookBase")
	found, _ := elsewhere(values)
	assert.NotEmpty(t, found, "without the page's values there are addresses of the internet")
}

// Each address of a runbook or page that the chart's objects name is a file below what the page tells to serve.
func TestTheServedPagesAreThere(t *testing.T) {
	file := filepath.Join(root, "examples", "helm", "otelcol-vllm", "ci", "pool-values.yaml")
	seen := map[string]bool{}
	for _, text := range render(t, load(t, "otelcol-vllm"), airgapped(t, file)) {
		for _, a := range address.FindAllString(text, -1) {
			if _, page, ok := strings.Cut(a, "/docs/"); ok && strings.Contains(a, "git.internal") && !strings.ContainsAny(page, "{$") {
				seen["docs/"+page] = true
			}
		}
	}
	assert.True(t, seen["docs/runbooks/VLLMServerNotServing.md"], "%v", seen)
	assert.True(t, seen["docs/diagnosis.md"], "%v", seen)
	for page := range seen {
		if strings.HasSuffix(page, "/") {
			continue // The folder, to which an alert adds a name.
		}
		_, err := os.Stat(filepath.Join(root, page))
		assert.NoError(t, err)
	}
}

// An argument that the stage does not declare is not set in it: the build would ask the internet.
func TestTheImageTakesThePagesArguments(t *testing.T) {
	given := regexp.MustCompile(`--build-arg (\w+)=`).FindAllStringSubmatch(read(t, filepath.Join(root, airgappedPage)), -1)
	require.Len(t, given, 3)
	declared, _, found := strings.Cut(read(t, filepath.Join(root, "Dockerfile")), "make release-tools")
	require.True(t, found)
	for _, argument := range given {
		assert.Regexp(t, `(?m)^ARG `+argument[1]+`(=|$)`, declared)
	}
}
