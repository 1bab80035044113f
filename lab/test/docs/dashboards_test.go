package docs

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

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/content"
)

var (
	panelReference = regexp.MustCompile("`(vllm-[a-z]+) / ([^`]+)`")
	alertReference = regexp.MustCompile("`(VLLM[A-Z][A-Za-z0-9]*)`")
)

// hasPanel reports whether a board has a panel.
func hasPanel(uid, title string) bool {
	b, ok := content.BoardByUID(uid)
	return ok && slices.ContainsFunc(b.Rows, func(row content.Row) bool {
		return slices.ContainsFunc(row.Panels, func(p content.Panel) bool { return p.Title == title })
	})
}

func hasAlert(name string) bool {
	return slices.ContainsFunc(content.Groups(), func(g content.Group) bool {
		return slices.ContainsFunc(g.Alerts, func(a content.Alert) bool { return a.Name == name })
	})
}

// What the page of the dashboards promises is there: each row beside vLLM's boards names panels of
// ours or says why there is none, and each question an alert or a reason.
func TestTheDashboardsHaveWhatVLLMsOwnHave(t *testing.T) {
	page := read(t, "docs/reference/dashboards.md")
	for _, match := range panelReference.FindAllStringSubmatch(page, -1) {
		assert.True(t, hasPanel(match[1], match[2]), "%s has no panel %q", match[1], match[2])
	}
	for _, match := range alertReference.FindAllStringSubmatch(page, -1) {
		assert.True(t, hasAlert(match[1]), "there is no alert %s", match[1])
	}
	_, list, found := strings.Cut(page, "## Beside vLLM's own boards")
	require.True(t, found)
	list, _, _ = strings.Cut(list, "## Panels")
	rows, boards := map[int]int{}, 0
	for line := range strings.Lines(list) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if !strings.HasPrefix(line, "| ") || slices.Contains([]string{"vLLM's panel", "Question"}, strings.TrimSpace(cells[0])) {
			continue
		}
		rows[len(cells)]++
		if strings.HasPrefix(cells[0], " **") {
			boards++
		}
		if len(cells) == 3 {
			assert.Regexp(t, panelReference, cells[1], "%s", cells[0])
			assert.Regexp(t, "`VLLM|^ none|^ the same", cells[2], "%s", cells[0])
			continue
		}
		assert.Regexp(t, panelReference.String()+"|none: ...", cells[1], "%s", cells[0])
	}
	assert.Equal(t, 4, boards, "vLLM has four boards")
	assert.Greater(t, rows[2], 10)
	assert.Equal(t, 6, rows[3], "six questions")
}

// The page says of each example for a Prometheus whether it puts attributes on series.
func TestThePageSaysWhichExamplesPromote(t *testing.T) {
	page := read(t, "docs/start/dashboards.md")
	_, without, found := strings.Cut(page, "<!-- not promoted -->\n")
	require.True(t, found)
	without, _, _ = strings.Cut(without, "\n\n")
	root := filepath.Join("..", "..", "..")
	files, err := filepath.Glob(filepath.Join(root, "examples", "*.yaml"))
	require.NoError(t, err)
	backends, err := filepath.Glob(filepath.Join(root, "examples", "backends", "*.yaml"))
	require.NoError(t, err)
	named := 0
	for _, file := range append(files, backends...) {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		var config struct {
			Processors map[string]any
			Exporters  map[string]struct {
				Labels struct{ Included []string } `yaml:"resource_constant_labels"`
			}
		}
		require.NoError(t, yaml.Unmarshal(text, &config), file)
		promotes, prometheus := config.Processors["transform/labels"] != nil, false
		for name, exporter := range config.Exporters {
			kind, _, _ := strings.Cut(name, "/")
			prometheus = prometheus || slices.Contains([]string{"prometheus", "prometheus_remote_write", "googlemanagedprometheus"}, kind)
			promotes = promotes || slices.Contains(exporter.Labels.Included, "*")
		}
		if !prometheus {
			continue
		}
		named++
		path := strings.TrimPrefix(filepath.ToSlash(file), "../../../")
		assert.Contains(t, page, "(../../"+path+")", "the page does not say what %s does", path)
		assert.Equal(t, !promotes, strings.Contains(without, "(../../"+path+")"), "%s promotes: %t", path, promotes)
	}
	assert.Greater(t, named, 8)
}

// The attributes that the first page names, those that its configuration promotes, and
// those that the boards choose by are the same.
func TestThePageNamesTheAttributesThatBoardsNeed(t *testing.T) {
	page := read(t, "docs/start/dashboards.md")
	_, list, found := strings.Cut(page, "<!-- promoted -->\n")
	require.True(t, found)
	list, _, _ = strings.Cut(list, "\n\n")
	var named []string
	for _, part := range strings.Split(list, ",") {
		named = append(named, strings.Trim(strings.TrimSpace(part), "`"))
	}
	assert.Equal(t, content.PromotedAttributes(), named)
	for _, block := range yamlBlock.FindAllStringSubmatch(page, -1) {
		var config struct {
			OTLP struct {
				Promote []string `yaml:"promote_resource_attributes"`
			}
		}
		require.NoError(t, yaml.Unmarshal([]byte(block[1]), &config))
		if config.OTLP.Promote != nil {
			assert.Equal(t, named, config.OTLP.Promote)
			return
		}
	}
	t.Error("the page does not show how to promote them")
}
