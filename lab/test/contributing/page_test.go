package contributing

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const root = "../../.."

// example is a worked example of the page.
type example struct {
	name string
	// blocks are what a reader pastes into a shell.
	blocks []block
	// rows are the names in the first column of its table, which are tests.
	rows []string
}

// block is one block of shell: a patch, a copy of a file, or commands.
type block string

// edits reports whether a block changes files by itself.
func (b block) edits() bool {
	return strings.HasPrefix(string(b), "git apply ") || strings.HasPrefix(string(b), "cp ")
}

var (
	marks  = regexp.MustCompile(`(?s)<!-- example: (\w+) -->\n(.*?)<!-- example: end -->`)
	blocks = regexp.MustCompile("(?ms)^```(\\w*)\n(.*?)^```$") //nolint:gocritic // with (?m), ^ is the start of a line
	rows   = regexp.MustCompile("(?m)^\\| `(\\w+)` \\|")
)

// examples reads those of a page.
func examples(page string) (all []example) {
	for _, found := range marks.FindAllStringSubmatch(page, -1) {
		e := example{name: found[1]}
		for _, fenced := range blocks.FindAllStringSubmatch(found[2], -1) {
			e.blocks = append(e.blocks, block(fenced[2]))
		}
		for _, row := range rows.FindAllStringSubmatch(found[2], -1) {
			e.rows = append(e.rows, row[1])
		}
		all = append(all, e)
	}
	return all
}

func page(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "CONTRIBUTING.md"))
	require.NoError(t, err)
	return string(text)
}

func named(t *testing.T, name string) example {
	t.Helper()
	for _, e := range examples(page(t)) {
		if e.name == name {
			return e
		}
	}
	require.Fail(t, "the page has no example "+name)
	return example{}
}

// Without this, a mark with a typing error would take an example out of all tests.
func TestEachBlockOfThePageBelongsToAnExample(t *testing.T) {
	text := page(t)
	var names []string
	for _, e := range examples(text) {
		names = append(names, e.name)
		require.NotEmpty(t, e.blocks, e.name)
	}
	assert.Equal(t, []string{"metric", "detail", "backend"}, names)
	for _, fenced := range blocks.FindAllStringSubmatch(marks.ReplaceAllString(text, ""), -1) {
		assert.False(t, block(fenced[2]).edits(), "a patch that no test applies: %s", fenced[2])
	}
}

// A test whose name has changed would be looked for in vain.
func TestTheTestsOfThePageExist(t *testing.T) {
	text := page(t)
	known := definedTests(t)
	for _, patch := range regexp.MustCompile(`(?m)^\+func (Test\w+)\(`).FindAllStringSubmatch(text, -1) {
		known[patch[1]] = true
	}
	found := 0
	for _, name := range regexp.MustCompile(`\bTest[A-Z]\w+`).FindAllString(text, -1) {
		starts := false
		for test := range known {
			starts = starts || strings.HasPrefix(test, name)
		}
		assert.True(t, starts, "CONTRIBUTING.md names %s, and no test starts with that", name)
		found++
	}
	assert.Greater(t, found, 7)
}

// definedTests are the names of the tests of the tree.
func definedTests(t *testing.T) map[string]bool {
	t.Helper()
	known := map[string]bool{}
	definition := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	for _, file := range tracked(t) {
		if !strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, file))
		require.NoError(t, err)
		for _, match := range definition.FindAllStringSubmatch(string(text), -1) {
			known[match[1]] = true
		}
	}
	require.Greater(t, len(known), 1000)
	return known
}

func TestExamplesAreRead(t *testing.T) {
	text := "text\n```sh\nls\n```\n<!-- example: one -->\n```sh\ngit apply <<'EOF'\n+x\nEOF\n```\n| Test | x |\n|---|---|\n| `TestA` | y |\n\n```sh\nmake generate\n```\n<!-- example: end -->\n"
	assert.Equal(t, []example{{"one", []block{"git apply <<'EOF'\n+x\nEOF\n", "make generate\n"}, []string{"TestA"}}}, examples(text))
	assert.Equal(t, "[true false]", fmt.Sprint([]bool{block("cp a b").edits(), block("make x").edits()}))
}
