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
	test   = regexp.MustCompile(`^(?:Test|Fuzz)[A-Z]`)
	code   = regexp.MustCompile("`([^`\n]+)`")
	attack = regexp.MustCompile(`(?m)^\| ([^|]+) \| [^|]+ \|$`)
)

// unproven returns the attacks of a page that no test in the list of proofs shows, the proofs that are
// gone, and the keys that the table of settings lacks. readFile returns a file by its path below the root.
func unproven(page, proofs string, readFile func(string) string, settings string) (mistakes []string) {
	shown := map[string]bool{}
	for _, line := range strings.Split(strings.TrimSpace(proofs), "\n")[1:] {
		row, rest, _ := strings.Cut(line, "\t")
		name, file, _ := strings.Cut(rest, "\t")
		want := regexp.MustCompile(`\b` + name + `\b`)
		if test.MatchString(name) {
			want = regexp.MustCompile(`(?m)^func ` + name + `\(`)
			shown[row] = true
		}
		if !want.MatchString(readFile(file)) {
			mistakes = append(mistakes, name+" is not in "+file)
		}
		if !strings.Contains(page, "\n| "+row+" |") {
			mistakes = append(mistakes, "the page has no row "+row)
		}
	}
	_, table, _ := strings.Cut(page, "\n| Attack | Defence |\n|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	for _, match := range attack.FindAllStringSubmatch(table, -1) {
		if !shown[match[1]] {
			mistakes = append(mistakes, match[1]+" has no test")
		}
	}
	for _, span := range code.FindAllStringSubmatch(page, -1) {
		key := span[1]
		if (strings.Contains(key, "::") && key != "::" || strings.HasPrefix(key, "max_")) && !strings.Contains(settings, "\n| `"+key+"` |") {
			mistakes = append(mistakes, key+" is not a setting")
		}
	}
	return mistakes
}

func TestWhatThePageOfSecurityClaimsIsTested(t *testing.T) {
	page, proofs := read(t, "SECURITY.md"), read(t, "lab/test/docs/security.tsv")
	assert.Empty(t, unproven(page, proofs, func(path string) string { return read(t, path) }, read(t, "docs/reference/configuration.md")))
	assert.Greater(t, strings.Count(proofs, "\n"), 90)
}

func TestAnUnprovenClaimIsNoticed(t *testing.T) {
	readFile := func(path string) string {
		return map[string]string{"a_test.go": "package a\n\nfunc TestA(t *testing.T) {}\n// TestB\n", "a.go": "const maxA = 1"}[path]
	}
	const page, head, settings = "\n| Attack | Defence |\n|---|---|\n| A server | `limits::a` a `::` |\n\n", "attack\tname\tfile\n", "\n| `limits::a` | 1 |\n"
	const proof = head + "A server\tTestA\ta_test.go\n"
	assert.Empty(t, unproven(page, proof+"A server\tmaxA\ta.go\n", readFile, settings))
	for line, want := range map[string]string{
		"A server\tTestB\ta_test.go": "TestB is not in a_test.go", "A server\tmaxB\ta.go": "maxB is not in a.go",
		"A server\tTestA\tgone.go": "TestA is not in gone.go", "A list\tTestA\ta_test.go": "the page has no row A list",
	} {
		assert.Equal(t, []string{want}, unproven(page, proof+line, readFile, settings), line)
	}
	assert.Equal(t, []string{"A server has no test", "max_b is not a setting"}, unproven(page+"`max_b`", head+"A server\tmaxA\ta.go", readFile, settings))
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
	assert.Len(t, listens, 4)
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
