package release

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Programs are the main packages below one go.mod.
type Programs struct {
	Dir      string
	Packages []string
}

// Platforms are what a release is built for.
var Platforms = []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64"}

// Modules lists the modules of others whose packages the programs link on any platform.
func Modules(all []Programs) ([]Module, error) {
	modules := map[string]*Module{}
	for _, programs := range all {
		for _, platform := range Platforms {
			if err := list(programs, platform, modules); err != nil {
				return nil, err
			}
		}
	}
	var sorted []Module
	for _, key := range slices.Sorted(maps.Keys(modules)) {
		sorted = append(sorted, *modules[key])
	}
	return sorted, nil
}

func list(programs Programs, platform string, into map[string]*Module) error {
	goos, goarch, _ := strings.Cut(platform, "/")
	command := exec.Command("go", append([]string{"list", "-deps", "-json=Dir,Standard,Module"}, programs.Packages...)...) //nolint:gosec // the Makefile names the packages
	command.Dir = programs.Dir
	command.Env = append(os.Environ(), "GOOS="+goos, "GOARCH="+goarch, "CGO_ENABLED=0")
	var stderr bytes.Buffer
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		return fmt.Errorf("go list in %s: %w\n%s", programs.Dir, err, stderr.String())
	}
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			Dir      string
			Standard bool
			Module   *struct {
				Path, Version, Dir string
				Main               bool
				Replace            *struct{ Path, Version string }
			}
		}
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("go list in %s: %w", programs.Dir, err)
		}
		if p.Standard || p.Module == nil || p.Module.Main || p.Module.Path == Own {
			continue
		}
		m := Module{Path: p.Module.Path, Version: p.Module.Version, Dir: p.Module.Dir}
		if r := p.Module.Replace; r != nil {
			m.Path, m.Version = r.Path, r.Version
		}
		known := into[m.Key()]
		if known == nil {
			known = &m
			into[m.Key()] = known
		}
		if !slices.Contains(known.Packages, p.Dir) {
			known.Packages = append(known.Packages, p.Dir)
		}
	}
}

// StandardLibrary is Go itself, which every program links.
func StandardLibrary() (Module, error) {
	out, err := exec.Command("go", "env", "GOROOT", "GOVERSION").Output()
	if err != nil {
		return Module{}, fmt.Errorf("go env: %w", err)
	}
	root, version, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	return Module{Path: "std", Version: version, Dir: root}, nil
}

// Identify runs identify_license, the program of the classifier that go-licenses uses, on the
// texts, and returns the identifiers by checksum. Equal texts are looked at once: go-licenses
// itself looks at the text again for each package, which takes it a minute. Only where there is
// no text of a licence, a header counts: one module has nothing but Apache's.
func Identify(tool string, texts []Text) (map[[sha256.Size]byte][]string, error) {
	dir, err := os.MkdirTemp("", "licences")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	sums := map[string][sha256.Size]byte{}
	var files []string
	for _, text := range texts {
		sum := sha256.Sum256(text.Content)
		file := filepath.Join(dir, hex.EncodeToString(sum[:]))
		if _, done := sums[file]; done || !text.Licence {
			continue
		}
		sums[file] = sum
		files = append(files, file)
		if err := os.WriteFile(file, text.Content, 0o600); err != nil {
			return nil, err
		}
	}
	identified := map[[sha256.Size]byte][]string{}
	if err := identify(tool, nil, files, sums, identified); err != nil {
		return nil, err
	}
	files = slices.DeleteFunc(files, func(file string) bool { return identified[sums[file]] != nil })
	if len(files) == 0 {
		return identified, nil
	}
	// The program fails if it knows none of them, which Judge reports better.
	if err := identify(tool, []string{"-headers"}, files, sums, identified); err != nil && len(identified) == 0 {
		return nil, err
	}
	return identified, nil
}

func identify(tool string, flags, files []string, sums map[string][sha256.Size]byte, into map[[sha256.Size]byte][]string) error {
	command := exec.Command(tool, append(flags, files...)...) //nolint:gosec // the Makefile names the program
	var stderr bytes.Buffer
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		// Before its message it writes two lines for each text.
		messages := strings.Split(strings.TrimSpace(stderr.String()), "\n")
		return fmt.Errorf("%s: %w: %s", tool, err, messages[len(messages)-1])
	}
	for line := range strings.Lines(string(out)) {
		file, rest, _ := strings.Cut(line, ": ")
		name, _, ok := strings.Cut(rest, " (confidence: ")
		sum, known := sums[file]
		if !ok || !known {
			return fmt.Errorf("%s printed %q, which is not a file and a licence", tool, strings.TrimSpace(line))
		}
		if !slices.Contains(into[sum], name) {
			into[sum] = append(into[sum], name)
		}
	}
	return nil
}

// WriteLicences writes the texts of all modules and an index into a folder that it empties
// before, and returns an error for every module that may not be distributed.
func WriteLicences(dir, tool string, modules []Module) error {
	var all []Text
	texts := map[string][]Text{}
	for _, m := range modules {
		of, err := Texts(m)
		if err != nil {
			return err
		}
		texts[m.Key()] = of
		all = append(all, of...)
	}
	identified, err := Identify(tool, all)
	if err != nil {
		return err
	}
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	var refused []error
	var index strings.Builder
	index.WriteString(indexHead)
	for _, m := range modules {
		names, err := Judge(m, texts[m.Key()], identified)
		if err != nil {
			refused = append(refused, err)
			continue
		}
		var listed []string
		for _, text := range texts[m.Key()] {
			listed = append(listed, text.File)
			file := filepath.Join(dir, filepath.FromSlash(m.Key()), filepath.FromSlash(text.File))
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				return err
			}
			if err := os.WriteFile(file, text.Content, 0o644); err != nil {
				return err
			}
		}
		fmt.Fprintf(&index, "| %s | %s | %s | %s |\n", m.Path, m.Version, strings.Join(names, " AND "), strings.Join(listed, ", "))
	}
	if len(refused) > 0 {
		return errors.Join(refused...)
	}
	return os.WriteFile(filepath.Join(dir, "INDEX.md"), []byte(index.String()), 0o644)
}

// indexHead also meets section 3.2 (a) of the MPL.
const indexHead = `# Licences of others

The programs contain these Go modules, unchanged. Each has a folder here, named by its path and
version, with its licence and, where there are any, its notices. "std" is Go's standard library.
The list is for all operating systems of a release; a program does not contain all of them.

The sources of each module, also of those under MPL-2.0, are at
https://proxy.golang.org/MODULE/@v/VERSION.zip ("!" and a small letter stand for a capital letter
in MODULE), free of charge, and where its path leads, for example https://github.com/....

| Module | Version | SPDX | Files |
|---|---|---|---|
`
