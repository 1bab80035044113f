package discover

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/discovery"
	"github.com/prometheus/prometheus/discovery/file"
	"github.com/prometheus/prometheus/discovery/targetgroup"
)

// fileList is Prometheus's file_sd_configs with a bounded reader.
type fileList struct{ *file.SDConfig }

// NewDiscoverer returns a discoverer that reads the files.
func (c *fileList) NewDiscoverer(options discovery.DiscovererOptions) (discovery.Discoverer, error) {
	return &fileDiscoverer{
		patterns: c.Files, interval: time.Duration(c.RefreshInterval), logger: options.Logger, files: map[string]*listedFile{},
	}, nil
}

// lookAtFiles is the time between two checks whether a file has changed. A check does not
// read the file. It also works on file systems without notifications.
const lookAtFiles = time.Second

type fileDiscoverer struct {
	patterns []string
	interval time.Duration
	logger   *slog.Logger
	files    map[string]*listedFile
}

// listedFile is the state of a file when it was last read.
type listedFile struct {
	info fs.FileInfo
	read time.Time
	// groups is the number of its groups in use.
	groups int
	// failed is why it could not be read; empty if it was read.
	failed string
}

// Run reads the files when they change, and at least once in each interval, until ctx
// ends. While a file cannot be read, the targets of its last content stay.
func (d *fileDiscoverer) Run(ctx context.Context, up chan<- []*targetgroup.Group) {
	poll(ctx, lookAtFiles, up, func(context.Context) ([]*targetgroup.Group, bool) {
		groups := d.look(time.Now())
		return groups, len(groups) > 0
	})
}

// look returns the groups of the files that have changed or are gone.
func (d *fileDiscoverer) look(now time.Time) []*targetgroup.Group {
	var out []*targetgroup.Group
	present := map[string]bool{}
	for _, pattern := range d.patterns {
		// Only a malformed pattern is an error, and it was refused before.
		names, _ := filepath.Glob(pattern)
		for _, name := range names {
			info, err := os.Stat(name)
			if err != nil || present[name] {
				continue
			}
			present[name] = true
			known := d.files[name]
			if known == nil {
				known = &listedFile{}
				d.files[name] = known
			}
			if known.info != nil && same(known.info, info) && now.Sub(known.read) < d.interval {
				continue
			}
			known.info, known.read = info, now
			out = append(out, d.update(name, known)...)
		}
	}
	for name, known := range d.files {
		if !present[name] {
			out = append(out, withoutFormer(nil, name, known.groups)...)
			delete(d.files, name)
		}
	}
	return out
}

func same(a, b fs.FileInfo) bool {
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}

func (d *fileDiscoverer) update(name string, known *listedFile) []*targetgroup.Group {
	groups, err := readList(name)
	if err != nil {
		if known.failed != err.Error() {
			known.failed = err.Error()
			d.logger.Error("the targets of a file of file_sd_configs stay as they are, because it could not be read", "file", name, "err", known.failed)
		}
		return nil
	}
	known.failed = ""
	former := known.groups
	known.groups = len(groups)
	return withoutFormer(groups, name, former)
}

// fileLabel is the label with the path of a target's file.
const fileLabel = model.MetaLabelPrefix + "filepath"

func readList(name string) ([]*targetgroup.Group, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		// Opening a pipe would block until another process writes to it.
		return nil, errors.New("it is not a regular file")
	}
	from, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = from.Close() }()
	content, err := readAtMost(from)
	if err != nil {
		return nil, err
	}
	decode := decodeYAML
	if strings.EqualFold(filepath.Ext(name), ".json") {
		decode = decodeJSON
	}
	found, err := decode(content)
	if err != nil {
		return nil, err
	}
	return found.named(name, fileLabel), nil
}
