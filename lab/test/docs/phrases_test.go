package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// hard are the phrases at which readers stopped, each with a sentence that has it, one that may stay, and what to
// write instead.
var hard = []struct {
	phrase       *regexp.Regexp
	has, without string
	instead      string
}{
	{regexp.MustCompile(`(?i)\banew\b`), "it starts anew", "it is new", "again"},
	{regexp.MustCompile(`(?i)\bmeanwhile\b`), "what came meanwhile", "the mean while it lasts", "in that time"},
	{regexp.MustCompile(`(?i)\bin the mean\b`), "twice in the mean", "the change in the means", "on average"},
	{regexp.MustCompile(`(?i)\bfor good\b`), "refused for good", "for goodness", "permanently"},
	{regexp.MustCompile(`(?i)\b(the|its|their|whose|a) begin\b`), "before its begin", "they begin", "the start"},
	{regexp.MustCompile(`\b(is|are) of (?:[^kt]|the |t[^y])`), "the row is of a server", "it is of kind gauge", "belongs to, or has"},
	{regexp.MustCompile(`(?i)(?:\b(?:[^t\W]\w*|t[^h\W]\w*|th[^e\W]\w*|the[^r\W]\w*)|[^\w\s]) is no [^lm\s]`), "a gauge is no counter", "there is no counter, and it is no longer one", "is not a"},
	{regexp.MustCompile(`(?i)\bends? of (?:a|the|all|each|every|removed|its) (?:removed )?(?:series|targets?)\b`), "the ends of all series", "the end of the list", "staleness markers"},
	{regexp.MustCompile(`(?i)\btimes of (?:a |the |one )?(?:points?|samples?|batch|readings?|servers?)\b|\bpoints?'s? own times?\b`), "times of points", "the times of ten requests", "timestamps"},
	{regexp.MustCompile(`(?i)\bowed\b`), "what is owed to the backend", "allowed", "what is still to be sent"},
}

// Docs, log lines, errors, help and the catalogue's sentences have none of the phrases that need a second reading.
func TestNoPhraseNeedsASecondReading(t *testing.T) {
	texts := 0
	for _, path := range files(t, ".md", ".yaml", ".go") {
		content := read(t, path)
		if filepath.Ext(path) == ".go" {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			content = literals(t, path, content)
		}
		texts++
		for i, line := range strings.Split(content, "\n") {
			for _, h := range hard {
				if found := h.phrase.FindString(line); found != "" {
					t.Errorf("%s:%d: %q: write: %s\n\t%.160s", path, i+1, found, h.instead, line)
				}
			}
		}
	}
	assert.Greater(t, texts, 700)
}

func TestHardPhrasesAreFound(t *testing.T) {
	for _, h := range hard {
		assert.Regexp(t, h.phrase, h.has)
		assert.NotRegexp(t, h.phrase, h.without)
	}
	assert.Equal(t, "\n\nthat were refused for good", literals(t, "a.go", "package a\n// for good\nvar x = \"that were refused \"+\n\t\"for good\""))
}

// literals are the texts of a Go file, each on its line, with those that are added up in one line.
func literals(t *testing.T, path, source string) string {
	t.Helper()
	positions := token.NewFileSet()
	file, err := parser.ParseFile(positions, path, source, 0)
	require.NoError(t, err)
	lines := make([]string, positions.File(file.Pos()).LineCount())
	var text func(e ast.Expr) string
	text = func(e ast.Expr) string {
		switch e := e.(type) {
		case *ast.BinaryExpr:
			return text(e.X) + text(e.Y)
		case *ast.BasicLit:
			if s, err := strconv.Unquote(e.Value); err == nil && e.Kind == token.STRING {
				return strings.ReplaceAll(s, "\n", " ")
			}
		}
		return ""
	}
	ast.Inspect(file, func(n ast.Node) bool {
		e, ok := n.(ast.Expr)
		if !ok {
			return true
		}
		s := text(e)
		lines[positions.Position(e.Pos()).Line-1] += s
		_, added := e.(*ast.BinaryExpr)
		return !added || s == ""
	})
	return strings.TrimRight(strings.Join(lines, "\n"), "\n")
}
