package storagecheckextension

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"go.uber.org/zap"
)

// A file that is set aside gets its time and a suffix, as file_storage itself does it
// where it notices damage. So both kinds are bounded together.
const (
	asideTime   = "20060102T150405.000Z0700"
	asideSuffix = ".backup"
)

var (
	// storageName is the name of a file of file_storage: the kind, type and name of its
	// component, or a hash of these where they are too long.
	storageName = regexp.MustCompile(`^((receiver|processor|exporter|extension|connector|other)_.*|[0-9a-f]{64})$`)
	asideName   = regexp.MustCompile(`^(.+)\.(\d{8}T\d{6}\.\d{3}Z)\.backup$`)
)

func (d *directory) join(name string) string { return filepath.Join(d.path, name) }

// files are the names of the files that file_storage may open. What else is in the
// directory is left alone: temporary files of a compaction, and what is not its own.
func (d *directory) files() ([]string, error) {
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, entry := range entries {
		name := entry.Name()
		if !storageName.MatchString(name) || asideName.MatchString(name) {
			continue
		}
		// A link is followed, as bbolt does. Opening a pipe would wait for its other end.
		if info, err := os.Stat(d.join(name)); err == nil && info.Mode().IsRegular() {
			names = append(names, name)
		}
	}
	return names, nil
}

// aside is a file that was set aside.
type aside struct {
	name, time string
	size       int64
}

// asides are those of a directory, the newest first.
func (d *directory) asides() []aside {
	entries, _ := os.ReadDir(d.path)
	var found []aside
	for _, entry := range entries {
		parts := asideName.FindStringSubmatch(entry.Name())
		if len(parts) == 0 || !storageName.MatchString(parts[1]) {
			continue
		}
		if info, err := entry.Info(); err == nil && info.Mode().IsRegular() {
			found = append(found, aside{entry.Name(), parts[2], info.Size()})
		}
	}
	slices.SortFunc(found, func(a, b aside) int {
		if by := strings.Compare(b.time, a.time); by != 0 {
			return by
		}
		return strings.Compare(a.name, b.name)
	})
	return found
}

// oldestFirst turns the order round.
func oldestFirst(asides []aside) []aside {
	slices.Reverse(asides)
	return asides
}

// tidy deletes files that were set aside and are beyond the limits.
func (s *storageCheck) tidy(d *directory) {
	found := d.asides()
	room := s.config.SetAside.MaxSizeMiB << 20
	for i, a := range found {
		if room -= a.size; i < s.config.SetAside.MaxFiles && room >= 0 {
			continue
		}
		for _, old := range found[i:] {
			s.remove(d, old, "it is beyond set_aside::max_files or set_aside::max_size_mib")
		}
		return
	}
}

func (s *storageCheck) remove(d *directory, a aside, why string) {
	if err := os.Remove(d.join(a.name)); err != nil {
		s.logger.Warn("a damaged file that was set aside cannot be deleted; delete it by hand",
			zap.String("file", d.join(a.name)), zap.Error(err))
		return
	}
	s.logger.Info("a damaged file that was set aside is deleted: "+why, zap.String("file", d.join(a.name)), zap.Int64("bytes", a.size))
}
