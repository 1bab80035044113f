package storagecheckextension

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/extension/storage/filestorage"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/extension"
	"go.opentelemetry.io/collector/extension/extensioncapabilities"
	"go.uber.org/zap"

	"github.com/otelcol-vllm/otelcol-vllm/extension/storagecheckextension/internal/boltfile"
	"github.com/otelcol-vllm/otelcol-vllm/extension/storagecheckextension/internal/metadata"
)

// storageCheck is the extension.
type storageCheck struct {
	config    *Config
	logger    *zap.Logger
	telemetry *metadata.TelemetryBuilder
	now       func() time.Time
	// lockTimeout is how long to wait for another process to release a file, and
	// watchInterval the time between two checks for free space on the disk.
	lockTimeout, watchInterval time.Duration

	// checked sends the directories to the goroutine that watches them; done ends it.
	checked chan []directory
	done    chan struct{}
	running sync.WaitGroup
}

var _ extensioncapabilities.ConfigSnapshotWatcher = (*storageCheck)(nil)

func newStorageCheck(config *Config, settings extension.Settings) (*storageCheck, error) {
	telemetry, err := metadata.NewTelemetryBuilder(settings.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	return &storageCheck{
		config: config, logger: settings.Logger, telemetry: telemetry, now: time.Now, lockTimeout: 5 * time.Second, watchInterval: time.Minute,
		checked: make(chan []directory, 1), done: make(chan struct{}),
	}, nil
}

// Start starts to watch the disks. The directories follow later, with the configuration.
func (s *storageCheck) Start(_ context.Context, host component.Host) error {
	s.running.Go(func() { s.watch(host) })
	return nil
}

// Shutdown stops the goroutine and the extension's own telemetry.
func (s *storageCheck) Shutdown(context.Context) error {
	close(s.done)
	s.running.Wait()
	s.telemetry.Shutdown()
	return nil
}

// NotifyConfigSnapshot checks the files of all file_storage extensions of the service.
// The service calls it before the pipelines start; an error ends the start.
func (s *storageCheck) NotifyConfigSnapshot(ctx context.Context, snapshot extensioncapabilities.ConfigSnapshot) error {
	directories, err := directoriesOf(snapshot.Effective())
	if err != nil {
		return err
	}
	if len(directories) == 0 {
		s.logger.Warn("storage_check has nothing to check: service::extensions has no file_storage; add file_storage there, or remove storage_check")
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, s.config.CheckTimeout)
	defer cancel()
	began, sound := s.now(), 0
	var errs []error
	for i := range directories {
		n, err := s.checkDirectory(ctx, &directories[i])
		sound += n
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("storage_check: %w", err)
	}
	s.checked <- directories
	s.logger.Info("the files of file_storage were checked", zap.Int("sound", sound), zap.Duration("took", s.now().Sub(began)))
	return nil
}

// directory is a directory with files of file_storage.
type directory struct {
	path string
	// extension is the name of the file_storage; of several, one without recreate.
	extension string
	// recreate is true if a damaged file may be moved aside.
	recreate bool
	// full and unwritable are the results of the last probe.
	full, unwritable bool
}

// fileStorage is the type of the extension whose files are checked.
const fileStorage = "file_storage"

// directoriesOf returns the directories of a validated configuration.
func directoriesOf(conf *confmap.Conf) ([]directory, error) {
	if conf == nil {
		return nil, nil
	}
	names, _ := conf.Get("service::extensions").([]any)
	var found []directory
	for _, name := range names {
		id := fmt.Sprint(name)
		if kind, _, _ := strings.Cut(id, "/"); kind != fileStorage {
			continue
		}
		section, err := conf.Sub("extensions::" + id)
		if err != nil {
			return nil, fmt.Errorf("storage_check: extensions::%s: %w", id, err)
		}
		config := filestorage.NewFactory().CreateDefaultConfig().(*filestorage.Config)
		if err := section.Unmarshal(config); err != nil {
			return nil, fmt.Errorf("storage_check: extensions::%s: %w", id, err)
		}
		if at := slices.IndexFunc(found, func(d directory) bool { return resolved(d.path) == resolved(config.Directory) }); at >= 0 {
			if found[at].recreate && !config.Recreate {
				found[at].extension, found[at].recreate = id, false
			}
			continue
		}
		found = append(found, directory{path: config.Directory, extension: id, recreate: config.Recreate})
	}
	return found, nil
}

// resolved returns the same path for all spellings of a directory.
func resolved(path string) string {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	if absolute, err := filepath.Abs(path); err == nil {
		path = absolute
	}
	return path
}

// checkDirectory checks the files of a directory and returns how many are sound.
func (s *storageCheck) checkDirectory(ctx context.Context, d *directory) (sound int, err error) {
	files, err := d.files()
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil // file_storage reports it if it may not create the directory
	}
	if err != nil {
		return 0, fmt.Errorf("the directory of %s cannot be read: %w; %s", d.extension, err, permit)
	}
	var errs []error
	for _, name := range files {
		switch err := s.checkFile(ctx, d, name); {
		case err == nil:
			sound++
		case errors.Is(err, errSetAside):
		default:
			errs = append(errs, err)
		}
	}
	s.tidy(d)
	s.lookForRoom(d)
	return sound, errors.Join(errs...)
}

const permit = "let the user that the collector runs as read and write it, in Kubernetes with fsGroup"

// errSetAside is returned for a damaged file that was renamed.
var errSetAside = errors.New("set aside")

// checkFile checks a file while no other process has it open.
func (s *storageCheck) checkFile(ctx context.Context, d *directory, name string) error {
	path := d.join(name)
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil // It was removed in the meantime.
	}
	if err != nil {
		return fmt.Errorf("a file of %s cannot be opened: %w; %s", d.extension, err, permit)
	}
	defer file.Close()
	if err := s.lock(ctx, file); err != nil {
		return fmt.Errorf("%s is in use by another process: %w; end that collector, or give each one a directory of its own (extensions::%s::directory)",
			path, err, d.extension)
	}
	info, err := file.Stat()
	if err != nil {
		return fmt.Errorf("a file of %s cannot be read: %w", d.extension, err)
	}
	err = boltfile.Check(ctx, file, info.Size())
	var damage *boltfile.Damage
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &damage):
		s.logger.Warn("a file of file_storage could not be checked completely within check_timeout and is used unchecked; "+
			"set check_timeout to a longer time, or make the queue smaller",
			zap.String("file", path), zap.Int64("bytes", info.Size()), zap.Duration("check_timeout", s.config.CheckTimeout))
		return nil
	case !d.recreate:
		return fmt.Errorf("%s is damaged: %w; the collector would panic on opening it. "+
			"Set extensions::%s::recreate to true to set such files aside, or move it away by hand", path, damage, d.extension)
	}
	aside := name + "." + s.now().UTC().Format(asideTime) + asideSuffix
	if err := os.Rename(path, d.join(aside)); err != nil {
		return fmt.Errorf("%s is damaged (%w) and cannot be set aside: %w; %s", path, damage, err, permit)
	}
	s.telemetry.ExtensionStorageCheckDamagedFiles.Add(ctx, 1)
	s.logger.Warn("a storage file is damaged and was set aside; the collector starts with a new one, without the queue or the state that was in it",
		zap.String("file", path), zap.String("damage", damage.What), zap.String("set_aside_as", aside), zap.Int64("bytes", info.Size()))
	return errSetAside
}

// lock takes the same lock as bbolt. It waits for a while, because a collector that is
// being replaced ends at about the same time as the new one starts.
func (s *storageCheck) lock(ctx context.Context, file *os.File) error {
	ctx, cancel := context.WithTimeout(ctx, s.lockTimeout)
	defer cancel()
	for {
		err := tryLock(file)
		if !errors.Is(err, errLocked) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w for %s", err, s.lockTimeout)
		case <-time.After(50 * time.Millisecond):
		}
	}
}
