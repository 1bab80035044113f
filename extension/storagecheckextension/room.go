package storagecheckextension

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.uber.org/zap"
)

// watch checks the disks for free space until the extension ends. On a full disk, an
// exporter's queue loses points without a line in the log: if it cannot record that it has
// begun to send a batch, it drops the batch.
func (s *storageCheck) watch(host component.Host) {
	ticker := time.NewTicker(s.watchInterval)
	defer ticker.Stop()
	var directories []directory
	full := false
	for {
		select {
		case <-s.done:
			return
		case directories = <-s.checked:
		case <-ticker.C:
			for i := range directories {
				s.lookForRoom(&directories[i])
			}
		}
		if err := fullDisks(directories); (err != nil) != full {
			full = err != nil
			event := componentstatus.NewEvent(componentstatus.StatusOK)
			if full {
				event = componentstatus.NewRecoverableErrorEvent(err)
			}
			componentstatus.ReportStatus(host, event)
		}
	}
}

// fullDisks returns an error for the directories without room.
func fullDisks(directories []directory) error {
	var errs []error
	for i := range directories {
		if directories[i].full {
			errs = append(errs, fmt.Errorf("the disk of %s is full: %s", directories[i].extension, directories[i].path))
		}
	}
	return errors.Join(errs...)
}

// lookForRoom deletes moved files if the disk is full, as many as needed. It logs when the
// disk becomes full and when it has room again.
func (s *storageCheck) lookForRoom(d *directory) {
	err := d.probe()
	if isFull(err) {
		for _, old := range oldestFirst(d.asides()) {
			s.remove(d, old, "the disk is full")
			if err = d.probe(); !isFull(err) {
				break
			}
		}
	}
	switch full := isFull(err); {
	case full && !d.full:
		s.logger.Warn("the disk of file_storage is full: queues and states cannot be stored, and points are lost; "+
			"free some space, or use a larger volume", zap.String("directory", d.path))
	case !full && d.full:
		s.logger.Info("the disk of file_storage has room again", zap.String("directory", d.path))
	case err != nil && !full && !d.unwritable:
		s.logger.Warn("no new file can be created in the directory of file_storage; "+permit, zap.String("directory", d.path), zap.Error(err))
	}
	d.full, d.unwritable = isFull(err), err != nil && !isFull(err)
}

// probe creates and removes a small file, and returns the error if that fails. A new file
// of file_storage has four pages of memory, at most 256 KiB.
func (d *directory) probe() error {
	probe, err := os.CreateTemp(d.path, "storage_check")
	if err != nil {
		return err
	}
	_, err = probe.Write(make([]byte, 256<<10))
	return errors.Join(err, probe.Close(), os.Remove(probe.Name()))
}

// isFull reports whether a disk, or the quota of its user, has no room.
func isFull(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }
