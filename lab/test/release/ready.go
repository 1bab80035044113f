package release

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// A Commit is what git says of the checkout that is to be released.
type Commit struct {
	// Tags are the tags at this commit.
	Tags []string
	// Changes are the files that differ from the commit, as git status prints them.
	Changes []string
	// Extra are files that git does not know, or ignores, in folders of which the archives have
	// everything.
	Extra []string
	// Revision is the commit's hash.
	Revision string
}

// ReadCommit asks git.
func ReadCommit(root string) (Commit, error) {
	git := func(args ...string) ([]string, error) {
		command := exec.Command("git", args...) //nolint:gosec // the arguments are those below
		command.Dir = root
		out, err := command.Output()
		if err != nil {
			return nil, fmt.Errorf("git %s: %w; a release needs a git checkout", strings.Join(args, " "), err)
		}
		text := strings.TrimRight(string(out), "\n")
		if text == "" {
			return nil, nil
		}
		return strings.Split(text, "\n"), nil
	}
	revision, err := git("rev-parse", "HEAD")
	if err != nil {
		return Commit{}, err
	}
	tags, err := git("tag", "--points-at", "HEAD")
	if err != nil {
		return Commit{}, err
	}
	// The settings of a person can hide files.
	changes, err := git("status", "--porcelain", "--untracked-files=normal", "--ignore-submodules=none")
	if err != nil {
		return Commit{}, err
	}
	extra, err := git("ls-files", "--others", "--", "examples", "content")
	if err != nil {
		return Commit{}, err
	}
	return Commit{Tags: tags, Changes: changes, Extra: extra, Revision: strings.Join(revision, "")}, nil
}

// BuiltFrom returns an error unless "make release" noted in the folder of the archives that it built
// them from the commit.
func BuiltFrom(dist, revision string) error {
	noted, err := os.ReadFile(filepath.Join(dist, "commit"))
	if err != nil {
		return fmt.Errorf("%w; run make release on this commit before", err)
	}
	if got := strings.TrimSpace(string(noted)); got != revision {
		return fmt.Errorf("%s has the commit %s, and this is %s; run make release again", dist, got, revision)
	}
	return nil
}

var versionTag = regexp.MustCompile(`^v\d`)

// Ready returns every reason not to release the version from this commit, joined. To publish,
// the commit must have the tag; to build, it must not have the tag of another version.
func Ready(version string, commit Commit, changelog string, publish bool) error {
	var reasons []error
	tags := slices.DeleteFunc(slices.Clone(commit.Tags), func(tag string) bool { return !versionTag.MatchString(tag) })
	for _, tag := range tags {
		if tag != "v"+version {
			reasons = append(reasons, fmt.Errorf("the commit has the tag %s, but %s says version %s; one of them is wrong", tag, Manifest, version))
		}
	}
	for _, tag := range []string{"v" + version, "cmd/vllmctl/v" + version, "lab/v" + version} {
		if publish && !slices.Contains(commit.Tags, tag) {
			reasons = append(reasons, fmt.Errorf("the commit has no tag %s; push it first: go install needs the tag of each module", tag))
		}
	}
	if n := len(commit.Changes); n > 0 {
		reasons = append(reasons, fmt.Errorf("%d file(s) differ from the commit, so the archives would be of no commit; the first is %q", n, commit.Changes[0]))
	}
	if n := len(commit.Extra); n > 0 {
		reasons = append(reasons, fmt.Errorf("%d file(s) that git does not know or ignores would be in the archives; the first is %q; remove them", n, commit.Extra[0]))
	}
	if _, err := Notes(changelog, version); err != nil {
		reasons = append(reasons, err)
	}
	return errors.Join(reasons...)
}

var heading = regexp.MustCompile(`(?m)^## (.+)$`)

// Notes returns the first section of the changelog, without its heading. It must be
// "## VERSION - DATE".
func Notes(changelog, version string) (string, error) {
	at := heading.FindAllStringSubmatchIndex(changelog, 2)
	if len(at) == 0 {
		return "", errors.New("CHANGELOG.md has no section")
	}
	title := changelog[at[0][2]:at[0][3]]
	if !regexp.MustCompile(`^` + regexp.QuoteMeta(version) + ` - \d{4}-\d{2}-\d{2}$`).MatchString(title) {
		return "", fmt.Errorf("CHANGELOG.md begins with the section %q; the first one must be \"%s - \" and a date such as 2026-11-26", title, version)
	}
	until := len(changelog)
	if len(at) > 1 {
		until = at[1][0]
	}
	notes := strings.TrimSpace(changelog[at[0][1]:until])
	if notes == "" {
		return "", fmt.Errorf("the section %q of CHANGELOG.md is empty", title)
	}
	return notes + "\n", nil
}
