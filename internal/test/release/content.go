package release

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/otelcol-vllm/otelcol-vllm/internal/content/shipped"
)

// whole are the folders of which an archive has every file of Whole, and no other.
var whole = []string{"examples", "content"}

// Whole lists these files in the checkout at root, and those that "make content" adds.
func Whole(root string) ([]string, error) {
	command := exec.Command("git", append([]string{"ls-files", "-z", "--"}, whole...)...) //nolint:gosec // the folders above
	command.Dir = root
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("git ls-files: %w", err)
	}
	files := strings.Split(strings.TrimRight(string(out), "\x00"), "\x00")
	added, err := shipped.In(shipped.Others...)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.AppendSeq(files, maps.Keys(added)), func(file string) bool { return file == "" }), nil
}

// CheckWhole returns an error that names each file which an archive lacks, or has besides: the patterns
// of goreleaser do not say when they match less than they seem to.
func CheckWhole(archive string, files []string) error {
	dir, err := os.MkdirTemp("", "release")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := unpack(archive, dir); err != nil {
		return err
	}
	root := filepath.Join(dir, strings.TrimSuffix(filepath.Base(archive), ".tar.gz"))
	var got []string
	for _, folder := range whole {
		err := filepath.WalkDir(filepath.Join(root, folder), func(file string, entry os.DirEntry, err error) error {
			if err == nil && !entry.IsDir() {
				got = append(got, path.Join(folder, filepath.ToSlash(strings.TrimPrefix(file, filepath.Join(root, folder)))))
			}
			return err
		})
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	var wrong []error
	for _, file := range files {
		if !slices.Contains(got, file) {
			wrong = append(wrong, fmt.Errorf("%s lacks %s; see the patterns in .goreleaser.yaml", filepath.Base(archive), file))
		}
	}
	for _, file := range got {
		if !slices.Contains(files, file) {
			wrong = append(wrong, fmt.Errorf("%s has %s, which is neither in git nor written by make content", filepath.Base(archive), file))
		}
	}
	return errors.Join(wrong...)
}

// Archives are the paths of a release's archives in dist.
func Archives(dist, version string, platforms []string) (all []string) {
	for _, platform := range platforms {
		all = append(all, filepath.Join(dist, archiveName(version, platform)))
	}
	return all
}
