package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const root = "../../.."

// files returns the files of the repository with one of the endings, as paths below
// root. What is built, and what tests read as input, is left out.
func files(t *testing.T, endings ...string) []string {
	t.Helper()
	var found []string
	require.NoError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		below, _ := filepath.Rel(root, path)
		if entry.IsDir() {
			switch {
			case below == "bin", below == "build", below != "." && strings.HasPrefix(entry.Name(), "."):
				return filepath.SkipDir
			}
			return nil
		}
		for _, ending := range endings {
			if strings.HasSuffix(path, ending) {
				found = append(found, below)
			}
		}
		return nil
	}))
	return found
}

func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, path))
	require.NoError(t, err)
	return string(content)
}

var (
	fence   = regexp.MustCompile("(?ms)^ *```.*?^ *```$") //nolint:gocritic // with (?m), ^ is the start of a line
	span    = regexp.MustCompile("`[^`\n]*`")
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#{1,6} +(.+)$`)
	remote  = regexp.MustCompile(`^[a-z][a-z0-9+.-]*:`)
)

// prose is a page without its code.
func prose(page string) string { return fence.ReplaceAllString(page, "") }

// anchors are the fragments that the headings of a page get on GitHub: lower case,
// spaces become dashes, other punctuation is left out, a second equal one gets -1.
func anchors(page string) map[string]bool {
	found := map[string]bool{}
	for _, match := range heading.FindAllStringSubmatch(prose(page), -1) {
		text := link.ReplaceAllString(strings.TrimSpace(match[1]), "]")
		slug := strings.Map(func(r rune) rune {
			switch {
			case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
				return unicode.ToLower(r)
			case r == ' ':
				return '-'
			}
			return -1
		}, text)
		for n, base := 1, slug; found[slug]; n++ {
			slug = base + "-" + string(rune('0'+n))
		}
		found[slug] = true
	}
	return found
}

// broken returns what is wrong with the links of a page; empty where nothing is.
func broken(path, page string, readFile func(string) (string, bool)) (mistakes []string) {
	text := span.ReplaceAllString(prose(page), "")
	for _, match := range link.FindAllStringSubmatch(text, -1) {
		target := match[1]
		if remote.MatchString(target) {
			continue
		}
		file, fragment, _ := strings.Cut(target, "#")
		to := path
		if file != "" {
			to = filepath.Join(filepath.Dir(path), file)
		}
		content, exists := readFile(to)
		switch {
		case !exists:
			mistakes = append(mistakes, target+": there is no "+to)
		case fragment != "" && !anchors(content)[fragment]:
			mistakes = append(mistakes, target+": "+to+" has no heading for #"+fragment)
		}
	}
	return mistakes
}

// onDisk returns a page; a folder and a file of another kind have no headings.
func onDisk(path string) (string, bool) {
	if strings.HasPrefix(path, "..") {
		return "", false
	}
	if _, err := os.Stat(filepath.Join(root, path)); err != nil {
		return "", false
	}
	if !strings.HasSuffix(path, ".md") {
		return "", true
	}
	content, err := os.ReadFile(filepath.Join(root, path))
	return string(content), err == nil
}

func TestEveryLinkOfEveryPageLeadsSomewhere(t *testing.T) {
	links := 0
	pages := files(t, ".md")
	require.Greater(t, len(pages), 50)
	for _, path := range pages {
		page := read(t, path)
		links += len(link.FindAllString(page, -1))
		for _, mistake := range broken(path, page, onDisk) {
			t.Errorf("%s: %s", path, mistake)
		}
	}
	assert.Greater(t, links, 300)
}

func TestABrokenLinkIsFound(t *testing.T) {
	pages := map[string]string{
		"a.md":     "# One\n\n## A `b`, c.d\n\n## Twice\n\n## Twice\n",
		"sub/b.md": "# B_b\n",
		"sub":      "",
	}
	known := func(path string) (string, bool) { page, has := pages[path]; return page, has }
	for target, want := range map[string]string{
		"b.md": "", "../a.md": "", "../a.md#one": "", "../a.md#a-b-cd": "", "../a.md#twice-1": "", "#b_b": "", "../sub": "",
		"https://example.com/x.md#y": "", "mailto:a@b": "",
		"a.md":         "there is no sub/a.md",
		"../a.md#two":  "a.md has no heading for #two",
		"#b-b":         "sub/b.md has no heading for #b-b",
		"../a.md#One":  "a.md has no heading for #One",
		"../../a.md":   "there is no ../a.md",
		"b.md#twice-1": "no heading",
	} {
		mistakes := strings.Join(broken("sub/b.md", pages["sub/b.md"]+"\n[x]("+target+")\n", known), "; ")
		if want == "" {
			assert.Empty(t, mistakes, target)
		} else {
			assert.Contains(t, mistakes, want, target)
		}
	}
	assert.Empty(t, broken("a.md", "```\n[x](gone.md)\n```\n`[x](gone.md)`\n", known), "code has no links")
	assert.Len(t, broken("a.md", "[x](gone.md)\n\n![y](gone.svg)\n", known), 2)
}

// Comments, log lines and error messages name pages, too.
func TestEveryPageThatATextNamesExists(t *testing.T) {
	name := regexp.MustCompile(`(?:^|[^/\w.-])(docs/[a-z_/-]+\.md)(#[a-z_-]+)?`)
	found := 0
	for _, path := range append(files(t, ".go", ".yaml", ".yml", ".md"), "Makefile", "Dockerfile", ".ci/run") {
		if path == "lab/cmd/cataloggen/diagnosis_test.go" {
			continue // pages of an invented catalogue
		}
		for _, match := range name.FindAllStringSubmatch(read(t, path), -1) {
			if strings.HasPrefix(match[1], "docs/gen-ai/") {
				continue // of OpenTelemetry's conventions
			}
			found++
			page, exists := onDisk(match[1])
			if !exists {
				t.Errorf("%s names %s, which does not exist", path, match[1])
			} else if match[2] != "" && !anchors(page)[match[2][1:]] {
				t.Errorf("%s names %s%s, and the page has no such heading", path, match[1], match[2])
			}
		}
	}
	assert.Greater(t, found, 50)
}
