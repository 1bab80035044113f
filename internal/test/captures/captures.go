// Package captures finds the recorded /metrics bodies of real servers that
// tests read. They are not part of this repository: they lie in
// shared/captures beside its checkout, and a test that wants them skips where
// that folder is absent.
package captures

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// Dir returns the captures folder, or skips the test where there is none.
func Dir(tb testing.TB) string {
	tb.Helper()
	root := moduleRoot(tb)
	dir := filepath.Join(filepath.Dir(root), "shared", "captures")
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		tb.Skip("no recorded bodies: there is no folder shared/captures beside the checkout")
	}
	return dir
}

// Files returns the paths of the model servers' recorded bodies, sorted: the
// *.txt files of the captures folder itself and of its generated/ folder. The
// gateway/ and series/ folders are left out; tests about them start at Dir. The
// test is skipped where the captures folder is absent.
func Files(tb testing.TB) []string {
	tb.Helper()
	dir := Dir(tb)
	var files []string
	for _, pattern := range []string{"*.txt", filepath.Join("generated", "*.txt")} {
		found, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			tb.Fatalf("listing the recorded bodies: %v", err)
		}
		files = append(files, found...)
	}
	if len(files) == 0 {
		tb.Fatalf("the captures folder holds no *.txt file")
	}
	slices.Sort(files)
	return files
}

// moduleRoot walks up from the test's working directory, which "go test" sets
// to the package's own folder, to the folder that holds go.mod.
func moduleRoot(tb testing.TB) string {
	tb.Helper()
	dir, err := os.Getwd()
	if err != nil {
		tb.Fatalf("finding the working directory: %v", err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			tb.Fatal("no go.mod above the working directory")
		}
		dir = parent
	}
}
