package release

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var native = runtime.GOOS + "/" + runtime.GOARCH

// A fake is a release of one archive of this platform, whose programs only print a version and
// link one module, golang.org/x/mod.
type fake struct {
	headers  []tar.Header
	contents map[string][]byte
	sbom     []string
	sums     func(name, sum string) (string, string)
}

// compiled is a program that links golang.org/x/mod, and prints its name and version 0.2.0.
func compiled(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, map[string]string{"main.go": `package main

import (
	"os"
	"path/filepath"

	"golang.org/x/mod/semver"
)

func main() { os.Stdout.WriteString(filepath.Base(os.Args[0]) + " version " + semver.Canonical("v0.2.0")[1:] + "\n") }
`})
	out := filepath.Join(dir, "program")
	// In this folder, so that it has the requirements of this module.
	message, err := exec.Command("go", "build", "-ldflags=-s -w", "-o", out, filepath.Join(dir, "main.go")).CombinedOutput()
	require.NoError(t, err, string(message))
	return out
}

func newFake(t *testing.T) *fake {
	t.Helper()
	f := &fake{contents: map[string][]byte{}}
	program, err := os.ReadFile(compiled(t))
	require.NoError(t, err)
	for _, name := range contained {
		f.contents[name] = program
	}
	for _, file := range accompanying {
		f.contents[file] = []byte("x")
	}
	f.sbom = []string{f.module(t)}
	f.contents["licences/"+f.module(t)+"/LICENSE"] = []byte("x")
	return f
}

// module is the one that the programs link.
func (f *fake) module(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "p")
	require.NoError(t, os.WriteFile(file, f.contents["vllmctl"], 0o755))
	linked, err := Linked(file)
	require.NoError(t, err)
	require.Len(t, linked, 1)
	return linked[0]
}

func (f *fake) check(t *testing.T, version string) ([]string, error) {
	t.Helper()
	dist := t.TempDir()
	name := archiveName(version, native)
	var archive bytes.Buffer
	zipped, err := gzip.NewWriterLevel(&archive, gzip.BestSpeed)
	require.NoError(t, err)
	writer := tar.NewWriter(zipped)
	for file, content := range f.contents {
		header := tar.Header{Name: strings.TrimSuffix(name, ".tar.gz") + "/" + file, Mode: 0o755, Size: int64(len(content)), Typeflag: tar.TypeReg}
		require.NoError(t, writer.WriteHeader(&header))
		_, err := writer.Write(content)
		require.NoError(t, err)
	}
	for _, header := range f.headers {
		require.NoError(t, writer.WriteHeader(&header))
	}
	require.NoError(t, writer.Close())
	require.NoError(t, zipped.Close())
	var packages []map[string]string
	for _, key := range f.sbom {
		module, version, _ := strings.Cut(key, "@")
		packages = append(packages, map[string]string{"name": module, "versionInfo": version})
	}
	sbom, err := json.Marshal(map[string]any{"spdxVersion": "SPDX-2.3", "packages": packages})
	require.NoError(t, err)
	files := map[string]string{name: archive.String(), name + ".spdx.json": string(sbom)}
	var sums strings.Builder
	for file, content := range files {
		sum := fmt.Sprintf("%x", sha256.Sum256([]byte(content)))
		if f.sums != nil {
			file, sum = f.sums(file, sum)
		}
		fmt.Fprintf(&sums, "%s  %s\n", sum, file)
	}
	files["otelcol-vllm_"+version+"_checksums.txt"] = sums.String()
	write(t, dist, files)
	return CheckDist(dist, version, []string{native})
}

func TestARightReleasePasses(t *testing.T) {
	right, err := newFake(t).check(t, "0.2.0")
	require.NoError(t, err)
	require.Len(t, right, 1)
	assert.Contains(t, right[0], ": 1 linked modules")
}

func TestWhatIsWrongInAReleaseIsFound(t *testing.T) {
	whole := newFake(t)
	module := whole.module(t)
	for reason, spoil := range map[string]func(f *fake){
		"LICENSE is missing or empty":  func(f *fake) { delete(f.contents, "LICENSE") },
		"NOTICE is missing or empty":   func(f *fake) { f.contents["NOTICE"] = nil },
		"vllmsim is missing or empty":  func(f *fake) { delete(f.contents, "vllmsim") },
		"the SBOM does not have it":    func(f *fake) { f.sbom = []string{"golang.org/x/mod@v0.0.1"} },
		module + " is linked into":     func(f *fake) { delete(f.contents, "licences/"+module+"/LICENSE") },
		"could not read Go build info": func(f *fake) { f.contents["vllmctl"] = []byte("#!/bin/sh\necho vllmctl version 0.2.0\n") },
		"is not a file below":          func(f *fake) { f.headers = []tar.Header{{Name: "x/../../escape", Typeflag: tar.TypeReg}} },
		`the entry "link" is not a file`: func(f *fake) {
			f.headers = []tar.Header{{Name: "link", Linkname: "/etc/passwd", Typeflag: tar.TypeSymlink}}
		},
		"is of owner 1000:1000 and not of root": func(f *fake) { f.headers = []tar.Header{{Name: "o", Uid: 1000, Gid: 1000, Typeflag: tar.TypeReg}} },
		"the list of checksums says":            func(f *fake) { f.sums = func(name, _ string) (string, string) { return name, strings.Repeat("0", 64) } },
		"the checksums are of":                  func(f *fake) { f.sums = func(name, sum string) (string, string) { return "an-" + name, sum } },
		"file exists": func(f *fake) {
			f.headers = []tar.Header{{Name: strings.TrimSuffix(archiveName("0.2.0", native), ".tar.gz") + "/vllmctl", Typeflag: tar.TypeReg}}
		},
	} {
		t.Run(reason, func(t *testing.T) {
			f := &fake{contents: map[string][]byte{}, sbom: whole.sbom}
			maps.Copy(f.contents, whole.contents)
			spoil(f)
			_, err := f.check(t, "0.2.0")
			require.ErrorContains(t, err, reason)
		})
	}
	_, err := whole.check(t, "0.3.0")
	require.ErrorContains(t, err, `it must print`, "the programs say another version")
}

func TestAPlatformThatIsMissingOrTooManyIsFound(t *testing.T) {
	dist := t.TempDir()
	name := archiveName("0.2.0", "linux/amd64")
	write(t, dist, map[string]string{"otelcol-vllm_0.2.0_checksums.txt": "00  " + name + "\n00  " + name + ".spdx.json\n"})
	for _, platforms := range [][]string{{"linux/amd64", "darwin/arm64"}, {"darwin/arm64"}, {}} {
		_, err := CheckDist(dist, "0.2.0", platforms)
		assert.ErrorContains(t, err, "the checksums are of ["+name+" ")
	}
	_, err := CheckDist(dist, "0.2.1", []string{"linux/amd64"})
	assert.ErrorContains(t, err, "otelcol-vllm_0.2.1_checksums.txt", "an old dist is of another version")
}
