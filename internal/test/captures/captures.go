// Package captures finds the /metrics bodies that tests read. There are two sets.
// The project's own bodies are in testdata and always present. Recorded bodies of
// real servers are not part of this repository: they are in the folder
// shared/captures next to its checkout, where that folder exists.
package captures

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Body is one /metrics body.
type Body struct {
	// Name is the path of the file below testdata or below the captures folder, with
	// slashes. Recorded ones begin with "captures/".
	Name        string
	Text        []byte
	ContentType string
}

// OpenMetrics reports whether the body is OpenMetrics and not the text format.
func (b *Body) OpenMetrics() bool {
	return strings.HasPrefix(b.ContentType, "application/openmetrics-text")
}

const (
	text        = "text/plain; version=0.0.4; charset=utf-8"
	openMetrics = "application/openmetrics-text; version=1.0.0; charset=utf-8"
)

// Bodies returns the bodies of model servers: the project's own, and the recorded
// ones where the captures folder exists. It never skips the test.
func Bodies(tb testing.TB) []Body {
	tb.Helper()
	return append(Own(tb), Recorded(tb, serverBodies...)...)
}

// serverBodies are the patterns of the model servers' recorded bodies. Gateways and
// series over time are in folders of their own.
var serverBodies = []string{"*.txt", "generated/*.txt"}

// Own returns the project's own bodies of model servers, one of each dialect and
// version.
func Own(tb testing.TB) []Body {
	tb.Helper()
	return own(tb, "*/metrics.txt", func(file string) string {
		return filepath.Join(filepath.Dir(file), "content-type")
	})
}

// Odd returns the project's own bodies of testdata/odd. Each is odd in one way; some
// are not an exposition.
func Odd(tb testing.TB) []Body {
	tb.Helper()
	return own(tb, "odd/*.txt", func(file string) string { return file + ".content-type" })
}

// own reads the files of testdata that match a pattern. contentType returns the
// name of the file with a body's content type, which need not exist.
func own(tb testing.TB, pattern string, contentType func(file string) string) []Body {
	tb.Helper()
	dir := filepath.Join(Root(tb), "testdata")
	files := glob(tb, dir, pattern)
	bodies := make([]Body, 0, len(files))
	for _, file := range files {
		b := Body{Name: relative(tb, dir, file), Text: read(tb, file), ContentType: text}
		if declared, err := os.ReadFile(contentType(file)); err == nil {
			b.ContentType = strings.TrimSpace(string(declared))
		}
		bodies = append(bodies, b)
	}
	return bodies
}

// Recorded returns the recorded bodies whose paths below the captures folder match
// one of the patterns, or none where that folder is absent. Their content type was
// not recorded: those that end like OpenMetrics are OpenMetrics.
func Recorded(tb testing.TB, patterns ...string) []Body {
	tb.Helper()
	dir, ok := find(tb)
	if !ok {
		return nil
	}
	files := glob(tb, dir, patterns...)
	bodies := make([]Body, 0, len(files))
	for _, file := range files {
		b := Body{Name: "captures/" + relative(tb, dir, file), Text: read(tb, file), ContentType: text}
		if strings.HasSuffix(strings.TrimSpace(string(b.Text)), "# EOF") {
			b.ContentType = openMetrics
		}
		bodies = append(bodies, b)
	}
	return bodies
}

// Dir returns the captures folder. It skips the test where there is none.
func Dir(tb testing.TB) string {
	tb.Helper()
	dir, ok := find(tb)
	if !ok {
		tb.Skip("no recorded bodies: there is no folder shared/captures next to the checkout")
	}
	return dir
}

// find returns the path of the captures folder and reports whether it exists.
func find(tb testing.TB) (string, bool) {
	tb.Helper()
	dir := filepath.Join(filepath.Dir(Root(tb)), "shared", "captures")
	info, err := os.Stat(dir)
	return dir, err == nil && info.IsDir()
}

// Files returns the paths of the model servers' recorded bodies, sorted: the
// *.txt files of the captures folder itself and of its generated/ folder. The
// gateway/ and series/ folders are left out; tests about them start at Dir. The
// test is skipped where the captures folder is absent.
func Files(tb testing.TB) []string {
	tb.Helper()
	dir := Dir(tb)
	files := glob(tb, dir, serverBodies...)
	slices.Sort(files)
	return files
}

// glob returns the files below dir that match any of the patterns. The test fails
// where a pattern matches no file.
func glob(tb testing.TB, dir string, patterns ...string) []string {
	tb.Helper()
	var files []string
	for _, pattern := range patterns {
		found, err := filepath.Glob(filepath.Join(dir, filepath.FromSlash(pattern)))
		if err != nil || len(found) == 0 {
			tb.Fatalf("no file matches %s in %s (error: %v)", pattern, dir, err)
		}
		files = append(files, found...)
	}
	return files
}

func read(tb testing.TB, file string) []byte {
	tb.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		tb.Fatalf("reading a body: %v", err)
	}
	return content
}

func relative(tb testing.TB, dir, file string) string {
	tb.Helper()
	name, err := filepath.Rel(dir, file)
	if err != nil {
		tb.Fatalf("naming a body: %v", err)
	}
	return filepath.ToSlash(name)
}

// Root walks up from the test's working directory, which "go test" sets
// to the package's own folder, to the folder that holds go.work.
func Root(tb testing.TB) string {
	tb.Helper()
	dir, err := os.Getwd()
	if err != nil {
		tb.Fatalf("finding the working directory: %v", err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.work")); err == nil {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			tb.Fatal("no go.work above the working directory")
		}
		dir = parent
	}
}
