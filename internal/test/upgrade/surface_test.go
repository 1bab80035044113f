package upgrade

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
)

var updateSurface = flag.Bool("update-surface", false, "add what is new to the list of what is promised besides metrics")

// complete is set by "make release".
var complete = flag.Bool("complete", false, "fail if the list does not have all that is promised")

const surfaceFile = "testdata/surface.txt"

// kinds are the kinds of entries of the table of deprecations for each first word of a line.
var kinds = map[string]string{
	"alert": "alert", "record": "record", "telemetry": "telemetry", "resource": "attribute", "setting": "setting", "code": "code",
}

// What docs/reference/deprecations.md promises besides the metrics, which internal/catalog holds:
// names of alerts, recording rules, settings, attributes of the resource, the collector's own
// metrics, and codes of vllmctl. A line of the list is never removed.
func TestWhatIsPromisedStays(t *testing.T) {
	now := surface(t)
	content, err := os.ReadFile(surfaceFile)
	require.NoError(t, err)
	promised := strings.Split(strings.TrimSpace(string(content)), "\n")
	require.GreaterOrEqual(t, len(promised), 457, "0.2.0 promised so many; a line is never removed")
	for _, line := range missing(promised, now, catalog.Deprecations()) {
		t.Errorf("%q was promised and is gone; bring it back, or enter it under deprecations in metadata.yaml (docs/reference/deprecations.md, The promise)", line)
	}
	if *complete {
		assert.Empty(t, missing(now, promised, nil), "a release promises them, and a later change of them would not be noticed; add them to %s: "+
			"go test ./internal/test/upgrade -run Promised -update-surface", surfaceFile)
	}
	if *updateSurface {
		all := slices.Compact(slices.Sorted(slices.Values(append(promised, now...))))
		require.NoError(t, os.WriteFile(surfaceFile, []byte(strings.Join(all, "\n")+"\n"), 0o600))
	}
}

// missing returns the promised lines that are not there now and that no entry of the table explains.
func missing(promised, now []string, table []catalog.Deprecation) (lines []string) {
	for _, line := range promised {
		words := strings.Fields(line)
		explained := slices.ContainsFunc(table, func(d catalog.Deprecation) bool {
			return d.Kind == kinds[words[0]] && d.Name == words[1] && d.Gone != "" && d.Promised
		})
		if !slices.Contains(now, line) && !explained {
			lines = append(lines, line)
		}
	}
	return lines
}

func TestNothingPromisedVanishesWithoutAnEntry(t *testing.T) {
	promised := []string{"alert VLLMServerNotServing", "setting receivers::vllm::limits::series", "code lint-syntax"}
	assert.Empty(t, missing(promised, promised, nil))
	assert.Equal(t, promised[:1], missing(promised, promised[1:], nil))
	entry := catalog.Deprecation{Kind: "alert", Name: "VLLMServerNotServing", Since: "0.3.0", Gone: "0.5.0", Promised: true}
	assert.Empty(t, missing(promised, promised[1:], []catalog.Deprecation{entry}))
	entry.Promised = false
	assert.Equal(t, promised[:1], missing(promised, promised[1:], []catalog.Deprecation{entry}), "an entry that says the promise does not count")
	entry.Promised, entry.Kind = true, "setting"
	assert.Equal(t, promised[:1], missing(promised, promised[1:], []catalog.Deprecation{entry}), "an entry about something else")
	assert.Equal(t, promised, missing(promised, nil, nil))
}

// surface lists what this tree has.
func surface(t *testing.T) (lines []string) {
	t.Helper()
	lines = slices.Concat(ruleNames(t), componentNames(t), settingNames(t))
	content := read(t, "docs", "reference", "vllmctl.md")
	for _, found := range regexp.MustCompile("(?m)^#{3,4} ([a-z]+(?:-[a-z0-9]+)+)$").FindAllStringSubmatch(content, -1) {
		lines = append(lines, "code "+found[1])
	}
	slices.Sort(lines)
	return slices.Compact(lines)
}

func read(t *testing.T, path ...string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(append([]string{root}, path...)...))
	require.NoError(t, err)
	return string(content)
}

func ruleNames(t *testing.T) (lines []string) {
	t.Helper()
	for _, folder := range []string{"suffixed", "wire"} {
		files, err := filepath.Glob(filepath.Join(root, "content", "rules", folder, "*.yaml"))
		require.NoError(t, err)
		require.NotEmpty(t, files)
		for _, file := range files {
			content, err := os.ReadFile(file)
			require.NoError(t, err)
			var rules struct {
				Groups []struct {
					Rules []struct{ Alert, Record string }
				}
			}
			require.NoError(t, yaml.Unmarshal(content, &rules))
			for _, group := range rules.Groups {
				for _, rule := range group.Rules {
					if rule.Alert != "" {
						lines = append(lines, "alert "+rule.Alert)
					} else {
						lines = append(lines, "record "+rule.Record)
					}
				}
			}
		}
	}
	return lines
}

// componentNames are the metrics of the collector about our components, and the attributes of the
// resource.
func componentNames(t *testing.T) (lines []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, "*", "*", "metadata.yaml"))
	require.NoError(t, err)
	for _, file := range files {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		var component struct {
			ResourceAttributes map[string]any `yaml:"resource_attributes"`
			Telemetry          struct {
				Metrics map[string]struct{ Unit string }
			}
		}
		require.NoError(t, yaml.Unmarshal(content, &component), file)
		for name := range component.ResourceAttributes {
			lines = append(lines, "resource "+name)
		}
		for name, m := range component.Telemetry.Metrics {
			lines = append(lines, fmt.Sprintf("telemetry otelcol_%s %q", name, m.Unit))
		}
	}
	return lines
}

// settingNames are the keys of all components, from the generated page.
func settingNames(t *testing.T) (lines []string) {
	t.Helper()
	component := ""
	heading := regexp.MustCompile("^## (Receiver|Processor|Connector|Extension) `([a-z_]+)`")
	row := regexp.MustCompile("^\\| `([^`]+)` \\|")
	for line := range strings.Lines(read(t, "docs", "reference", "configuration.md")) {
		if found := heading.FindStringSubmatch(line); found != nil {
			component = strings.ToLower(found[1]) + "s::" + found[2]
		} else if found := row.FindStringSubmatch(line); found != nil && component != "" {
			lines = append(lines, "setting "+component+"::"+found[1])
		}
	}
	return lines
}
