package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/content"
	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/internal/wording"
)

// address is the absolute address of a runbook. Templates, which put a name in later, do
// not match.
var address = regexp.MustCompile(regexp.QuoteMeta(catalog.RunbookBase) + `([A-Za-z0-9_]+)\.md(#[a-z0-9_-]+)?`)

// wrong returns what is wrong with the addresses of runbooks in a text, and how many it has.
func wrong(text string, readFile func(string) (string, bool)) (mistakes []string, addresses int) {
	for _, match := range address.FindAllStringSubmatch(text, -1) {
		addresses++
		page, exists := readFile("docs/runbooks/" + match[1] + ".md")
		if !exists || match[2] != "" && !anchors(page)[match[2][1:]] {
			mistakes = append(mistakes, match[0])
		}
	}
	return mistakes, addresses
}

// Every address of a runbook that stands in a file of this repository leads to a page:
// in documents, rules, dashboards, examples and tests.
func TestEveryAddressOfARunbookLeadsToAPage(t *testing.T) {
	addresses := 0
	for _, path := range files(t, ".md", ".go", ".yaml", ".yml", ".json", ".jsonnet", ".libsonnet", ".txt") {
		if path == filepath.Join("lab", "test", "docs", "runbooks_test.go") {
			continue
		}
		mistakes, found := wrong(read(t, path), onDisk)
		addresses += found
		assert.Empty(t, mistakes, path)
	}
	assert.Greater(t, addresses, 50)
}

func TestAWrongAddressOfARunbookIsFound(t *testing.T) {
	known := func(path string) (string, bool) { return "# one\n\n## Two\n", path == "docs/runbooks/"+"one.md" }
	for text, want := range map[string][]string{
		"see " + catalog.RunbookBase + "one.md.":            nil,
		catalog.RunbookBase + "one.md#two":                  nil,
		catalog.RunbookBase + "two.md":                      {catalog.RunbookBase + "two.md"},
		catalog.RunbookBase + "one.md#three":                {catalog.RunbookBase + "one.md#three"},
		catalog.RunbookBase + "${__data.fields.cause}.md":   nil,
		"https://example.com/blob/main/docs/runbooks/no.md": nil,
	} {
		mistakes, _ := wrong(text, known)
		assert.Equal(t, want, mistakes, text)
	}
}

// What log lines, records, the demo and alerts link to exists for every condition, cause
// and alert.
func TestEverythingThatIsReportedHasARunbook(t *testing.T) {
	leads := func(url string) {
		name, ours := strings.CutPrefix(url, catalog.RunbookBase)
		if assert.True(t, ours, url) {
			_, err := os.Stat(filepath.Join(root, "docs", "runbooks", name))
			assert.NoError(t, err)
		}
	}
	all := func(string) bool { return true }
	for _, c := range catalog.Conditions() {
		leads(wording.Of(&wording.Diagnosis{Condition: c.Name}, all).Runbook)
	}
	for _, c := range catalog.Causes() {
		leads(wording.Of(&wording.Diagnosis{Condition: "degraded", Cause: c.Name}, all).Runbook)
		leads(wording.Of(&wording.Diagnosis{Condition: "healthy", Notices: []string{c.Name}}, all).Runbook)
		leads(catalog.RunbookURL(c.Name))
	}
	for _, g := range content.Groups() {
		for i := range g.Alerts {
			leads(g.Alerts[i].RunbookURL())
		}
	}
}

// The headings of docs/diagnosis.md that log lines of older versions linked to are gone.
// Nothing of today links there.
func TestNothingLinksToTheFormerHeadingsOfTheDiagnosis(t *testing.T) {
	former := regexp.MustCompile(`diagnosis\.md#([a-z_]+)`)
	for _, path := range files(t, ".md", ".go", ".yaml", ".yml", ".json", ".jsonnet", ".libsonnet") {
		for _, match := range former.FindAllStringSubmatch(read(t, path), -1) {
			_, condition := catalog.ConditionByName(match[1])
			_, cause := catalog.CauseByName(match[1])
			assert.False(t, condition || cause, "%s links to %s, which has become docs/runbooks/%s.md", path, match[0], match[1])
		}
	}
}
