package release

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const changelog = "# Changelog\n\n## 0.2.0 - 2026-11-26\n\n### Fleets\n\n- a\n- b\n\n## 0.1.0 - 2026-10-01\n\n- first\n"

// tagged has the tag of each module.
var tagged = []string{"v0.2.0", "cmd/vllmctl/v0.2.0", "lab/v0.2.0"}

func TestACommitIsReadyOrEachReasonIsNamed(t *testing.T) {
	for name, c := range map[string]struct {
		tags, changes []string
		changelog     string
		publish       bool
		reasons       []string
	}{
		"tagged":                      {tags: tagged, changelog: changelog, publish: true},
		"before its tag":              {changelog: changelog},
		"another kind of tag":         {tags: append([]string{"nightly"}, tagged...), changelog: changelog, publish: true},
		"published without tag":       {changelog: changelog, publish: true, reasons: []string{"no tag v0.2.0", "no tag cmd/vllmctl/v0.2.0", "no tag lab/v0.2.0"}},
		"without the tag of a module": {tags: tagged[:2], changelog: changelog, publish: true, reasons: []string{"no tag lab/v0.2.0"}},
		"only a nightly tag":          {tags: []string{"nightly"}, changelog: changelog, publish: true, reasons: []string{"no tag v0.2.0", "no tag cmd/vllmctl/v0.2.0", "no tag lab/v0.2.0"}},
		"tag of another version": {
			tags: []string{"v0.3.0"}, changelog: changelog, reasons: []string{"has the tag v0.3.0, but builder-config.yaml says version 0.2.0"},
		},
		"two tags": {tags: []string{"v0.2.0", "v0.2.1"}, changelog: changelog, reasons: []string{"v0.2.1"}},
		"dirty":    {changes: []string{" M Makefile", "?? x"}, changelog: changelog, reasons: []string{`2 file(s) differ from the commit`, "Makefile"}},
		"no date":  {changelog: "## 0.2.0\n\n- a\n", reasons: []string{`begins with the section "0.2.0"`}},
		"unreleased": {
			tags: tagged, changelog: "## Unreleased\n\n- a\n\n## 0.2.0 - 2026-11-26\n\n- b\n", publish: true,
			reasons: []string{`begins with the section "Unreleased"`},
		},
		"another version":  {changelog: "## 0.2.01 - 2026-11-26\n\n- a\n", reasons: []string{"0.2.01"}},
		"no section":       {changelog: "# Changelog\n", reasons: []string{"has no section"}},
		"an empty section": {changelog: "## 0.2.0 - 2026-11-26\n\n## 0.1.0 - 2026-10-01\n\n- a\n", reasons: []string{"is empty"}},
		"everything": {
			tags: []string{"v1.0.0"}, changes: []string{" M a"}, changelog: "## Unreleased\n", publish: true,
			reasons: []string{"v1.0.0", "1 file(s)", "Unreleased"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			err := Ready("0.2.0", Commit{Tags: c.tags, Changes: c.changes}, c.changelog, c.publish)
			if len(c.reasons) == 0 {
				require.NoError(t, err)
				return
			}
			require.Error(t, err)
			for _, reason := range c.reasons {
				assert.ErrorContains(t, err, reason)
			}
		})
	}
}

func TestTheNotesAreTheFirstSection(t *testing.T) {
	notes, err := Notes(changelog, "0.2.0")
	require.NoError(t, err)
	assert.Equal(t, "### Fleets\n\n- a\n- b\n", notes)
	notes, err = Notes("## 0.2.0 - 2026-11-26\nonly one", "0.2.0")
	require.NoError(t, err)
	assert.Equal(t, "only one\n", notes)
}

// Archives have everything below examples and content, also what git ignores or is set to hide.
func TestWhatGitHidesIsNoPartOfARelease(t *testing.T) {
	dir := t.TempDir()
	git := func(args ...string) {
		command := exec.Command("git", append([]string{"-c", "user.name=a", "-c", "user.email=a@example.com"}, args...)...)
		command.Dir = dir
		out, err := command.CombinedOutput()
		require.NoError(t, err, string(out))
	}
	write := func(name, content string) {
		file := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, []byte(content), 0o600))
	}
	git("init", "-q")
	write("examples/a.yaml", "a")
	write(".gitignore", "*.out\n")
	git("add", ".")
	git("commit", "-qm", "a")
	git("config", "status.showUntrackedFiles", "no")
	commit, err := ReadCommit(dir)
	require.NoError(t, err)
	require.NoError(t, Ready("0.2.0", commit, changelog, false))

	write("examples/the token of somebody.out", "secret")
	commit, err = ReadCommit(dir)
	require.NoError(t, err)
	assert.ErrorContains(t, Ready("0.2.0", commit, changelog, false), `would be in the archives; the first is "examples/the token of somebody.out"`)

	write("cmd/more.go", "package more")
	commit, err = ReadCommit(dir)
	require.NoError(t, err)
	assert.ErrorContains(t, Ready("0.2.0", commit, changelog, false), "1 file(s) differ from the commit")
}

func TestOnlyTheArchivesOfTheCommitArePublished(t *testing.T) {
	dist := t.TempDir()
	require.ErrorContains(t, BuiltFrom(dist, "abc"), "run make release on this commit before")
	require.NoError(t, os.WriteFile(filepath.Join(dist, "commit"), []byte("abc\n"), 0o600))
	require.NoError(t, BuiltFrom(dist, "abc"))
	assert.ErrorContains(t, BuiltFrom(dist, "abcd"), "has the commit abc, and this is abcd")
}
