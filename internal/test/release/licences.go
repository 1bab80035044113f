package release

import (
	"crypto/sha256"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Own is the module of this project. Its packages, and those that ocb generates for it, are
// under LICENSE at the root.
const Own = "github.com/otelcol-vllm/otelcol-vllm"

// allowed are the licences, by their SPDX identifier, under which a linked module may be. All
// of them permit the distribution of programs under Apache-2.0 together with their texts.
// MPL-2.0 does as long as users learn where the sources of these modules are: the index says it.
var allowed = []string{"0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "BlueOak-1.0.0", "CC0-1.0", "ISC", "MIT", "MPL-2.0", "Unlicense", "Zlib"}

// A Module is a linked module of others.
type Module struct {
	Path, Version string
	// Dir is where its files are.
	Dir string
	// Packages are the folders of its linked packages, below Dir.
	Packages []string
}

// Key is the module as go.sum and the index name it.
func (m Module) Key() string { return m.Path + "@" + m.Version }

// A Text is a file about rights that is copied for a module.
type Text struct {
	// File is its path below the module's folder.
	File string
	// Content is the file.
	Content []byte
	// Licence says that it should be a licence, and not a notice or a grant of patents.
	Licence bool
}

var (
	licenceFile = regexp.MustCompile(`(?i)^(un)?(licen[cs]e|copying)([._-].*)?$`)
	noticeFile  = regexp.MustCompile(`(?i)^(notice|patents|copyright)([._-].*)?$`)
	program     = regexp.MustCompile(`(?i)\.(go|py|sh|js|c|h|s|yaml|yml|json)$`)
)

// Texts reads the licences and notices of a module: those in each folder from its root down to
// a linked package. A file in a package's folder can be about code that was copied into it.
func Texts(m Module) ([]Text, error) {
	folders := map[string]bool{".": true}
	for _, dir := range m.Packages {
		rel, err := filepath.Rel(m.Dir, dir)
		if err != nil || strings.HasPrefix(rel, "..") {
			return nil, fmt.Errorf("the package in %s is not below its module %s in %s", dir, m.Key(), m.Dir)
		}
		for rel = filepath.ToSlash(rel); rel != "."; rel = path.Dir(rel) {
			folders[rel] = true
		}
	}
	var texts []Text
	for _, folder := range slices.Sorted(maps.Keys(folders)) {
		entries, err := os.ReadDir(filepath.Join(m.Dir, folder))
		if err != nil {
			return nil, err
		}
		for _, entry := range entries {
			licence := licenceFile.MatchString(entry.Name())
			if entry.IsDir() || program.MatchString(entry.Name()) || !licence && !noticeFile.MatchString(entry.Name()) {
				continue
			}
			content, err := os.ReadFile(filepath.Join(m.Dir, folder, entry.Name()))
			if err != nil {
				return nil, err
			}
			texts = append(texts, Text{File: path.Join(folder, entry.Name()), Content: content, Licence: licence})
		}
	}
	return texts, nil
}

// Judge returns the SPDX identifiers of a module's licences, in order, and an error that names
// the module if it has no text, or one that is not known or not allowed. identified has the
// identifiers by the checksum of a text.
func Judge(m Module, texts []Text, identified map[[sha256.Size]byte][]string) ([]string, error) {
	var found []string
	for _, text := range texts {
		if !text.Licence {
			continue
		}
		names := identified[sha256.Sum256(text.Content)]
		if len(names) == 0 {
			return nil, fmt.Errorf("%s: the licence in %s is not one that identify_license knows; read it, and decide whether the module may be linked", m.Key(), text.File)
		}
		for _, name := range names {
			if !slices.Contains(allowed, name) {
				return nil, fmt.Errorf("%s: %s is %s, which is not among the licences that may be linked (internal/test/release/licences.go)", m.Key(), text.File, name)
			}
			if !slices.Contains(found, name) {
				found = append(found, name)
			}
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%s has no licence text, so it may not be distributed", m.Key())
	}
	slices.Sort(found)
	return found, nil
}

// Linked returns the modules of others in a program, as the linker wrote them into it: the
// same that "go version -m" prints. A replaced module counts as its replacement.
func Linked(file string) ([]string, error) {
	info, err := buildinfo.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	keys := []string{}
	for _, dep := range info.Deps {
		if dep.Path == Own || strings.HasPrefix(dep.Path, Own+"/") {
			continue
		}
		if dep.Replace != nil {
			dep = dep.Replace
		}
		keys = append(keys, dep.Path+"@"+dep.Version)
	}
	return keys, nil
}

// Covered returns an error that names each module of the programs that has no folder with a
// licence below dir.
func Covered(dir string, programs ...string) error {
	var missing []error
	for _, program := range programs {
		linked, err := Linked(program)
		if err != nil {
			return err
		}
		for _, key := range linked {
			if !hasLicence(filepath.Join(dir, filepath.FromSlash(key))) {
				missing = append(missing, fmt.Errorf("%s is linked into %s and has no licence text in %s", key, filepath.Base(program), dir))
			}
		}
	}
	return errors.Join(missing...)
}

func hasLicence(dir string) bool {
	found := false
	err := filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		found = found || err == nil && !entry.IsDir() && licenceFile.MatchString(entry.Name())
		return err
	})
	return err == nil && found
}

// builtFor returns an error unless the program is for the platform.
func builtFor(file, platform string) error {
	info, err := buildinfo.ReadFile(file)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	if got := settings["GOOS"] + "/" + settings["GOARCH"]; got != platform {
		return fmt.Errorf("%s is built for %s", filepath.Base(file), got)
	}
	return nil
}
