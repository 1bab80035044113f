package docs

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	// named is a link whose text is a name in the file that it leads to.
	named = regexp.MustCompile("\\[`(\\w+)`\\]\\(([^)]+\\.go)\\)")
	test  = regexp.MustCompile(`\b(?:Test|Fuzz)[A-Z]\w*`)
	code  = regexp.MustCompile("`([^`\n]+)`")
)

// unproven returns what a page claims of the code and of the settings, and is not there.
// readFile returns a file by its path below the root, and settings has the table of all settings.
func unproven(page string, readFile func(string) string, settings string) (mistakes []string) {
	for _, link := range named.FindAllStringSubmatch(page, -1) {
		name, file := link[1], link[2]
		want := regexp.MustCompile(`\b` + name + `\b`)
		if test.MatchString(name) {
			want = regexp.MustCompile(`(?m)^func ` + name + `\(`)
		}
		if !want.MatchString(readFile(file)) {
			mistakes = append(mistakes, name+" is not in "+file)
		}
	}
	for _, name := range test.FindAllString(named.ReplaceAllString(page, ""), -1) {
		mistakes = append(mistakes, name+" has no link to its file")
	}
	for _, span := range code.FindAllStringSubmatch(page, -1) {
		key := span[1]
		if (strings.Contains(key, "::") && key != "::" || strings.HasPrefix(key, "max_")) && !strings.Contains(settings, "\n| `"+key+"` |") {
			mistakes = append(mistakes, key+" is no setting")
		}
	}
	return mistakes
}

func TestWhatThePageOfSecurityNamesExists(t *testing.T) {
	page := read(t, "SECURITY.md")
	assert.Empty(t, unproven(page, func(path string) string { return read(t, path) }, read(t, "docs/reference/configuration.md")))
	assert.Greater(t, len(named.FindAllString(page, -1)), 60)
	assert.Greater(t, strings.Count(page, "`limits::"), 8)
}

func TestAnUnprovenClaimIsNoticed(t *testing.T) {
	readFile := func(path string) string {
		return map[string]string{"a_test.go": "package a\n\nfunc TestA(t *testing.T) {}\n// TestB\n", "a.go": "const maxA = 1"}[path]
	}
	settings := "\n| `limits::a` | 1 |\n"
	assert.Empty(t, unproven("[`TestA`](a_test.go) [`maxA`](a.go) `limits::a` a `::`", readFile, settings))
	for page, want := range map[string]string{
		"[`TestB`](a_test.go)": "TestB is not in a_test.go", "[`maxB`](a.go)": "maxB is not in a.go", "[`TestA`](gone.go)": "TestA is not in gone.go",
		"`TestA`": "TestA has no link to its file", "`limits::b`": "limits::b is no setting", "`max_b`": "max_b is no setting",
	} {
		assert.Equal(t, []string{want}, unproven(page, readFile, settings), page)
	}
}

// The addresses that the page says the examples listen on are those of the examples.
func TestTheListenersOfThePageOfSecurityAreThoseOfTheExamples(t *testing.T) {
	_, section, found := strings.Cut(read(t, "SECURITY.md"), "\n## What listens\n")
	require.True(t, found)
	section, _, _ = strings.Cut(section, "\n## ")
	var examples strings.Builder
	for _, path := range files(t, ".yaml") {
		if strings.HasPrefix(path, "examples"+string(filepath.Separator)) {
			examples.WriteString(read(t, path))
		}
	}
	listens := regexp.MustCompile(`127\.0\.0\.1:\d+`).FindAllString(section, -1)
	assert.Len(t, listens, 3)
	for _, address := range listens {
		assert.Contains(t, examples.String(), ":-"+address+"}", "no example listens on %s by default", address)
	}
	for _, port := range []string{"13133", "13134"} {
		assert.Contains(t, section, "`"+port+"`")
		assert.Contains(t, examples.String(), `"[${env:POD_IP}]:`+port+`"`)
	}
	assert.NotContains(t, examples.String(), "zpages:", "the page says that no example has zpages")
	assert.NotContains(t, read(t, "builder-config.yaml"), "pprof")
}
