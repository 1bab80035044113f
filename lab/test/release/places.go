package release

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// A Place is a version in a line of a file that has to be that of the release.
type Place struct {
	// File is relative to the root, Line counts from 1.
	File    string
	Line    int
	Text    string
	Version string
	// from and until are where the version stands in Text.
	from, until int
}

func (p Place) String() string {
	return fmt.Sprintf("%s:%d: %s", p.File, p.Line, strings.TrimSpace(p.Text))
}

const number = `(\d+\.\d+\.\d+(?:-(?:alpha|beta|rc)\.?\d*)?)`

var (
	// The name of the project, its image, its module or its chart, and a version behind it.
	named = regexp.MustCompile(`otelcol-vllm[a-z/-]*(?:[:@ _-]| version )v?` + number)
	// A key of a manifest, whatever stands before it.
	keyed = regexp.MustCompile(`(?:^|\s)(?:version|tag|newTag|appVersion|app\.kubernetes\.io/version):\s*"?v?` + number)
)

// history are files that name other versions, or those of other programs: what vLLM, Go's
// modules, npm's packages, or past releases are.
var history = []string{
	"CHANGELOG.md", "RELEASING.md", "*.sum", "package-lock.json", "package.json", "metadata.yaml", "catalog_generated.go",
	"metrics.md", "documentation.md", "generated_*.go", "defects.yaml", "decisions.yaml",
	// What was renamed in which release, and how to go from one to another.
	"deprecations.md", "released_test.go", "upgrading.md", "contrib.md",
}

// others are lines of files that name the version of something else.
var others = map[string]*regexp.Regexp{
	// An example of somebody's chart; this is vLLM's version.
	"examples/helm/vllm-with-sidecar/Chart.yaml": regexp.MustCompile(`^appVersion:`),
	// The upstream chart's.
	"examples/helm/upstream-values.yaml": regexp.MustCompile(`^#`),
	// An image that is too old.
	"lab/test/hosted/image_test.go": regexp.MustCompile(`otelcol-vllm version 0\.1\.0`),
}

// readers are the folders whose YAML and pages have keys that name the version. Elsewhere,
// "version:" is the one of vLLM, or of what CI uses.
func keysCount(file string) bool {
	switch path.Ext(file) {
	case ".yaml", ".yml", ".md":
	default:
		return false
	}
	for _, folder := range []string{"builder-config", "examples/", "docs/start/", "lab/test/peers/", "lab/test/kubernetes/testdata/"} {
		if strings.HasPrefix(file, folder) {
			return true
		}
	}
	return false
}

// Places finds each version in one file that has to be that of the release, by how it is
// written and not by its value.
func Places(file, content string) []Place {
	if isHistory(file) {
		return nil
	}
	var found []Place
	for i, text := range lines(content) {
		// Most lines have no number; to see this first makes the search many times faster.
		if !strings.Contains(text, ".") || !strings.ContainsAny(text, "0123456789") {
			continue
		}
		if other := others[file]; other != nil && other.MatchString(text) {
			continue
		}
		var patterns []*regexp.Regexp
		if strings.Contains(text, "otelcol-vllm") {
			patterns = append(patterns, named)
		}
		if keysCount(file) {
			patterns = append(patterns, keyed)
		}
		for _, pattern := range patterns {
			for _, at := range pattern.FindAllStringSubmatchIndex(text, -1) {
				p := Place{File: file, Line: i + 1, Text: text, Version: text[at[2]:at[3]], from: at[2], until: at[3]}
				if !slices.ContainsFunc(found, func(q Place) bool { return q.Line == p.Line && q.from == p.from }) {
					found = append(found, p)
				}
			}
		}
	}
	return found
}

// SetVersion writes another version into every place of the checkout, and returns the files
// that it changed.
func SetVersion(root, version string) ([]string, error) {
	if !semantic.MatchString(version) {
		return nil, fmt.Errorf("%q is not a version; it must be like 0.2.0 or 0.2.0-rc.1, without a v", version)
	}
	files, err := Tracked(root)
	if err != nil {
		return nil, err
	}
	var changed []string
	for _, file := range files {
		content, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			return changed, err
		}
		next := replaced(file, string(content), version)
		if next == string(content) {
			continue
		}
		if err := os.WriteFile(filepath.Join(root, file), []byte(next), 0o644); err != nil {
			return changed, err
		}
		changed = append(changed, file)
	}
	return changed, nil
}

func replaced(file, content, version string) string {
	all := lines(content)
	places := Places(file, content)
	// From the right, so that the columns of those before stay.
	slices.SortFunc(places, func(a, b Place) int { return b.from - a.from })
	for _, p := range places {
		text := all[p.Line-1]
		all[p.Line-1] = text[:p.from] + version + text[p.until:]
	}
	return strings.Join(all, "\n")
}

// Tracked lists the text files that git knows in the checkout, without the tests of this package.
func Tracked(root string) ([]string, error) {
	command := exec.Command("git", "ls-files", "-z")
	command.Dir = root
	var stderr bytes.Buffer
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("git ls-files: %w %s", err, strings.TrimSpace(stderr.String()))
	}
	var files []string
	for name := range strings.SplitSeq(strings.TrimRight(string(out), "\x00"), "\x00") {
		info, err := os.Lstat(filepath.Join(root, name))
		if err != nil || !info.Mode().IsRegular() || info.Size() > 4<<20 || strings.HasPrefix(name, "lab/test/release/") {
			continue // A file that is deleted, a link, or data.
		}
		content, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			return nil, err
		}
		if !bytes.ContainsRune(content[:min(len(content), 8000)], 0) {
			files = append(files, name)
		}
	}
	return files, nil
}

func isHistory(file string) bool {
	return slices.ContainsFunc(history, func(pattern string) bool {
		matched, err := path.Match(pattern, path.Base(file))
		return err == nil && matched
	})
}

func lines(content string) []string { return strings.Split(content, "\n") }
