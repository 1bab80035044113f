package storagecheckextension

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"go.uber.org/zap"
)

// A file that is moved aside gets the time and a suffix, like the files that file_storage
// moves aside itself. So the limits apply to both.
const (
	asideTime   = "20060102T150405.000Z0700"
	asideSuffix = ".backup"
)

var (
	// storageName matches the name of a file of file_storage: the kind, type and name of
	// its component, or a hash of these if they are too long.
	storageName = regexp.MustCompile(`^((receiver|processor|exporter|extension|connector|other)_.*|[0-9a-f]{64})$`)
	asideName   = regexp.MustCompile(`^(.+)\.(\d{8}T\d{6}\.\d{3}Z)\.backup$`)
)

func (d *directory) join(name string) string { return filepath.Join(d.path, name) }

// files returns the names of the files that file_storage may open. Other files are
// ignored: temporary files of a compaction, and files of other programs.
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
		// Links are followed, as bbolt does. Opening a pipe would block.
		if info, err := os.Stat(d.join(name)); err == nil && info.Mode().IsRegular() {
			names = append(names, name)
		}
	}
	return names, nil
}

// aside is a file that was moved aside.
type aside struct {
	name, time string
	size       int64
}

// asides returns the files of a directory that were moved aside, the newest first.
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

// oldestFirst reverses the order.
func oldestFirst(asides []aside) []aside {
	slices.Reverse(asides)
	return asides
}

// maxAside is how many damaged files are kept in each directory.
const maxAside = 10

// tidy deletes moved files that exceed the limits.
func (s *storageCheck) tidy(d *directory) {
	found := d.asides()
	room := s.config.SetAside.MaxSizeMiB << 20
	for i, a := range found {
		if room -= a.size; i < maxAside && room >= 0 {
			continue
		}
		for _, old := range found[i:] {
			s.remove(d, old, fmt.Sprintf("it is beyond %d files or set_aside::max_size_mib", maxAside))
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
