package storagecheckextension

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/component/componenttest"
)

// Opening a pipe would block.
func TestAPipeIsLeftAlone(t *testing.T) {
	f := newFixture(t, nil)
	require.NoError(t, syscall.Mkfifo(filepath.Join(f.folder, "receiver_pipe"), 0o600))
	require.NoError(t, f.start(true))
	assert.Equal(t, []string{"receiver_pipe"}, f.names())
}

// asUserWithoutRights runs one test of this binary as a user without rights.
func asUserWithoutRights(t *testing.T, folder string) (ran bool) {
	t.Helper()
	if os.Getenv("STORAGECHECK_FOLDER") != "" {
		return false
	}
	if os.Getuid() != 0 {
		return false // a user other than root has no rights either
	}
	binary := filepath.Join(folder, "test")
	content, err := os.ReadFile(os.Args[0])
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(binary, content, 0o755))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	child := exec.CommandContext(ctx, binary, "-test.run", "^"+t.Name()+"$", "-test.v")
	child.Dir = folder
	child.Env = append(os.Environ(), "STORAGECHECK_FOLDER="+folder)
	child.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	said, err := child.CombinedOutput()
	require.NoError(t, err, "%s", said)
	require.Contains(t, string(said), "--- PASS")
	return true
}

func TestAFileWithoutPermissionEndsTheStart(t *testing.T) {
	folder := os.Getenv("STORAGECHECK_FOLDER")
	if folder == "" {
		folder = t.TempDir()
		require.NoError(t, os.Chmod(folder, 0o755))
		require.NoError(t, os.Chmod(filepath.Dir(folder), 0o755))
		for name, mode := range map[string]os.FileMode{"unreadable": 0o711, "files": 0o777, "fixed": 0o755} {
			require.NoError(t, os.MkdirAll(filepath.Join(folder, name), 0o755))
			require.NoError(t, os.WriteFile(filepath.Join(folder, name, exporterFile), []byte("damaged"), 0o600))
			if name == "fixed" {
				require.NoError(t, os.Chmod(filepath.Join(folder, name, exporterFile), 0o666))
			}
			require.NoError(t, os.Chmod(filepath.Join(folder, name), mode))
		}
	}
	if asUserWithoutRights(t, folder) {
		return
	}
	if os.Getenv("STORAGECHECK_FOLDER") == "" {
		t.Skip("needs root, to make files of another user")
	}
	f := newFixture(t, nil)
	for name, want := range map[string]string{
		"unreadable": "the directory of file_storage/queue cannot be read: open ",
		"files":      "a file of file_storage/queue cannot be opened: open ",
		"fixed":      "and cannot be set aside: rename ",
	} {
		f.folder = filepath.Join(folder, name)
		err := f.start(true)
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, "permission denied; let the user that the collector runs as read and write it, in Kubernetes with fsGroup")
	}
}

// smallDisk is a file system of 1 MiB.
func smallDisk(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	if err := syscall.Mount("tmpfs", folder, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("needs root, to make a small file system: %v", err)
	}
	t.Cleanup(func() { assert.NoError(t, syscall.Unmount(folder, 0)) })
	return folder
}

func TestAFullDiskDeletesFilesThatWereMovedAside(t *testing.T) {
	f := newFixture(t, nil)
	f.folder = smallDisk(t)
	require.NoError(t, os.WriteFile(f.file(), bytes.Repeat([]byte{7}, 300<<10), 0o600))
	require.NoError(t, f.start(true))
	assert.Len(t, f.names(), 1, "there is room")
	f.at = f.at.Add(time.Minute)
	require.NoError(t, os.WriteFile(f.file(), bytes.Repeat([]byte{7}, 700<<10), 0o600))
	require.NoError(t, f.start(true))
	assert.Equal(t, []string{exporterFile + ".20260301T120100.000Z.backup"}, f.names(), "the older one gave way")
	assert.Equal(t, 1, f.logs.FilterMessageSnippet("is deleted: the disk is full").Len())

	require.NoError(t, os.WriteFile(filepath.Join(f.folder, "other"), make([]byte, 200<<10), 0o600))
	require.NoError(t, os.Remove(filepath.Join(f.folder, f.names()[0])))
	_ = os.WriteFile(filepath.Join(f.folder, "rest"), make([]byte, 1<<20), 0o600)
	require.NoError(t, f.start(true))
	require.Equal(t, 1, f.logs.FilterMessageSnippet("the disk of file_storage is full").Len())
	assert.ElementsMatch(t, []string{"other", "rest"}, f.names(), "the probe is gone")
	// A failed start on a full disk must not prevent a start when there is room again.
	_, err := f.client()
	require.Error(t, err)
	require.NoError(t, os.Remove(filepath.Join(f.folder, "rest")))
	require.NoError(t, f.start(true))
	client, err := f.client()
	require.NoError(t, err)
	require.NoError(t, client.Close(t.Context()))
}

// statusHost records the reported status.
type statusHost struct {
	component.Host
	reported chan *componentstatus.Event
}

func (h statusHost) Report(event *componentstatus.Event) { h.reported <- event }

// A queue can lose points on a full disk without a line in the log.
func TestADiskThatBecomesFullIsReported(t *testing.T) {
	f := newFixture(t, func(s *storageCheck) { s.watchInterval = 20 * time.Millisecond })
	f.folder = smallDisk(t)
	host := statusHost{componenttest.NewNopHost(), make(chan *componentstatus.Event, 100)}
	require.NoError(t, f.Shutdown(t.Context()))
	f.done = make(chan struct{})
	require.NoError(t, f.Start(t.Context(), host))
	require.NoError(t, f.start(true))
	rest := filepath.Join(f.folder, "rest")
	for range 2 {
		full := f.logs.FilterMessageSnippet("the disk of file_storage is full").Len()
		_ = os.WriteFile(rest, make([]byte, 1<<20), 0o600)
		event := <-host.reported
		assert.Equal(t, componentstatus.StatusRecoverableError, event.Status())
		assert.EqualError(t, event.Err(), "the disk of file_storage/queue is full: "+f.folder)
		time.Sleep(5 * f.watchInterval)
		assert.Equal(t, full+1, f.logs.FilterMessageSnippet("the disk of file_storage is full").Len(), "once, not at each look")
		require.NoError(t, os.Remove(rest))
		assert.Equal(t, componentstatus.StatusOK, (<-host.reported).Status())
	}
	assert.Equal(t, 2, f.logs.FilterMessageSnippet("has room again").Len())
	assert.Empty(t, host.reported)
}

func TestADirectoryThatCannotBeWrittenIsReported(t *testing.T) {
	folder := os.Getenv("STORAGECHECK_FOLDER")
	if folder == "" {
		folder = t.TempDir()
		require.NoError(t, os.Chmod(folder, 0o755))
		require.NoError(t, os.Chmod(filepath.Dir(folder), 0o755))
		require.NoError(t, os.Mkdir(filepath.Join(folder, "fixed"), 0o755))
	}
	if asUserWithoutRights(t, folder) {
		return
	}
	if os.Getenv("STORAGECHECK_FOLDER") == "" {
		t.Skip("needs root, to make a directory of another user")
	}
	f := newFixture(t, func(s *storageCheck) { s.watchInterval = 5 * time.Millisecond })
	f.folder = filepath.Join(folder, "fixed")
	require.NoError(t, f.start(true))
	time.Sleep(50 * time.Millisecond)
	require.Len(t, f.warnings(), 1, "once, not at each look")
	assert.Equal(t, "no new file can be created in the directory of file_storage; "+
		"let the user that the collector runs as read and write it, in Kubernetes with fsGroup", f.warnings()[0].Message)
}
