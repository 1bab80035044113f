package release

import (
	"crypto/sha256"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// write makes files below dir.
func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, []byte(content), 0o644))
	}
}

func TestTheTextsOfAModuleAreThoseAboveItsLinkedPackages(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"LICENSE": "a", "NOTICE": "b", "PATENTS": "c", "README.md": "", "license.go": "", "licenses.yaml": "", "COPYING.md": "d", "License-MIT": "e",
		"linked/LICENSE.txt": "f", "linked/deep/x.go": "", "linked/deep/NOTICE.txt": "g",
		"linked/unlinked/LICENSE": "h", "tests/LICENSE": "i", "LICENSES/GPL.txt": "j",
	})
	texts, err := Texts(Module{Path: "m", Version: "v1", Dir: dir, Packages: []string{filepath.Join(dir, "linked", "deep")}})
	require.NoError(t, err)
	got := map[string]bool{}
	for _, text := range texts {
		got[text.File] = text.Licence
	}
	assert.Equal(t, map[string]bool{
		"LICENSE": true, "NOTICE": false, "PATENTS": false, "COPYING.md": true, "License-MIT": true,
		"linked/LICENSE.txt": true, "linked/deep/NOTICE.txt": false,
	}, got)
	_, err = Texts(Module{Path: "m", Version: "v1", Dir: filepath.Join(dir, "linked"), Packages: []string{dir}})
	assert.ErrorContains(t, err, "is not below its module m@v1")
}

func TestAModuleIsRefusedByName(t *testing.T) {
	m := Module{Path: "example.com/m", Version: "v1.2.3"}
	identified := map[[sha256.Size]byte][]string{
		sha256.Sum256([]byte("mit")): {"MIT"}, sha256.Sum256([]byte("both")): {"MIT", "Apache-2.0"}, sha256.Sum256([]byte("gpl")): {"GPL-3.0"},
	}
	licence := func(contents ...string) (texts []Text) {
		for _, c := range contents {
			texts = append(texts, Text{File: "LICENSE", Content: []byte(c), Licence: true})
		}
		return texts
	}
	names, err := Judge(m, licence("both", "mit"), identified)
	require.NoError(t, err)
	assert.Equal(t, []string{"Apache-2.0", "MIT"}, names)
	for reason, texts := range map[string][]Text{
		"has no licence text":                nil,
		"not one that identify_license know": licence("mit", "something of their own"),
		"is GPL-3.0, which is not among":     licence("mit", "gpl"),
	} {
		_, err := Judge(m, texts, identified)
		require.ErrorContains(t, err, "example.com/m@v1.2.3")
		assert.ErrorContains(t, err, reason)
	}
	_, err = Judge(m, []Text{{File: "NOTICE", Content: []byte("mit")}}, identified)
	assert.ErrorContains(t, err, "has no licence text", "a notice is no licence")
}

// The oracle is "go version -m".
func TestALinkedModuleWithoutALicenceIsNamed(t *testing.T) {
	program := compiled(t)
	out, err := exec.Command("go", "version", "-m", program).Output()
	require.NoError(t, err)
	dep := regexp.MustCompile(`(?m)^\tdep\t(\S+)\t(\S+)`).FindAllStringSubmatch(string(out), -1)
	require.Len(t, dep, 1, "%s", out)
	key := dep[0][1] + "@" + dep[0][2]
	got, err := Linked(program)
	require.NoError(t, err)
	assert.Equal(t, []string{key}, got)

	dir := t.TempDir()
	write(t, dir, map[string]string{key + "/LICENSE": "x"})
	require.NoError(t, Covered(dir, program))
	require.NoError(t, os.Rename(filepath.Join(dir, key, "LICENSE"), filepath.Join(dir, key, "NOTICE")))
	require.ErrorContains(t, Covered(dir, program), key+" is linked into program and has no licence text")
	assert.Error(t, Covered(dir, filepath.Join(dir, "absent")))
}

func TestWhatTheClassifierPrintsIsRead(t *testing.T) {
	tool := filepath.Join(t.TempDir(), "identify_license")
	// It knows the text "mit" at once, "header" only with -headers, and fails where it knows none.
	require.NoError(t, os.WriteFile(tool, []byte(`#!/bin/sh
headers=no; found=1
for f in "$@"; do
	[ "$f" != -headers ] || { headers=yes; continue; }
	echo "Classifying $f" >&2
	case "$(cat "$f"),$headers" in
	mit,no) echo "$f: MIT (confidence: 1, offset: 0, extent: 3)"; found=0;;
	header,yes) echo "$f: Apache-2.0 (confidence: 0.9, offset: 0, extent: 3)"; found=0;;
	strange,no) echo "what is this"; found=0;;
	esac
done
[ $found = 0 ] || echo "Couldn't classify license(s)" >&2
exit $found
`), 0o755))
	text := func(content string, licence bool) Text { return Text{Content: []byte(content), Licence: licence} }
	got, err := Identify(tool, []Text{text("mit", true), text("header", true), text("mit", true), text("unknown", true), text("notice", false)})
	require.NoError(t, err)
	assert.Equal(t, map[[sha256.Size]byte][]string{
		sha256.Sum256([]byte("mit")): {"MIT"}, sha256.Sum256([]byte("header")): {"Apache-2.0"},
	}, got)
	_, err = Identify(tool, []Text{text("unknown", true)})
	assert.ErrorContains(t, err, "Couldn't classify license(s)")
	_, err = Identify(tool, []Text{text("strange", true)})
	assert.ErrorContains(t, err, `printed "what is this"`)
	_, err = Identify(filepath.Join(t.TempDir(), "absent"), []Text{text("mit", true)})
	assert.ErrorContains(t, err, "absent")
}
