//go:build e2e && linux

package examples

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/lab/test/collector"
)

// The files that examples/otlp-vendor.yaml has on disk: the queue, and the baselines.
var onDisk = []string{"exporter_otlp_http__metrics", "processor_vllm__baselines"}

const setAside = "a storage file is damaged and was set aside; the collector starts with a new one"

// aDay is one of examples/otlp-vendor.yaml: a server, a backend, and a queue on disk.
type aDay struct {
	vllm   *vllmServer
	env    map[string]string
	folder string
	vendor *leaving
}

func newDay(t *testing.T, folder string) *aDay {
	t.Helper()
	d := &aDay{vllm: &vllmServer{path: "/metrics"}, folder: folder, vendor: &leaving{}}
	d.vendor.come(t)
	t.Cleanup(func() { d.vendor.leave() })
	d.env = map[string]string{
		"VLLM_ENDPOINT": d.vllm.serve(t), "OTLP_ENDPOINT": "http://" + d.vendor.addr, "QUEUE_DIR": folder,
	}
	return d
}

func (d *aDay) start(t *testing.T, settings ...string) *collector.Process {
	t.Helper()
	return startExample(t, example("otlp-vendor.yaml"), d.env, append([]string{
		"receivers::vllm::collection_interval: 300ms", "receivers::vllm::initial_delay: 0s", "receivers::vllm::timeout: 300ms", soon,
		"exporters::otlp_http::retry_on_failure::initial_interval: 100ms", "exporters::otlp_http::retry_on_failure::max_interval: 200ms",
	}, settings...)...)
}

// fill runs a collector while the backend is away, so that the queue has something.
func (d *aDay) fill(t *testing.T) {
	t.Helper()
	d.vendor.leave()
	c := d.start(t)
	until := d.vllm.scrapes.Load() + 5
	c.WaitFor(t, "scrapes", func() bool { return d.vllm.scrapes.Load() >= until })
	c.Stop(t)
	d.vendor.come(t)
	for _, name := range onDisk {
		require.FileExists(t, filepath.Join(d.folder, name))
	}
}

// damages are what can happen to a file, each with a word of what is reported.
var damages = map[string]struct {
	how  func([]byte) []byte
	want string
}{
	"zeroed tail": {func(b []byte) []byte { clear(b[8192:]); return b }, "is empty"},
	"random bytes": {func(b []byte) []byte {
		r := rand.New(rand.NewPCG(1, 1))
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		return b
	}, "neither of the two pages that it begins with is whole"},
	// A file of a busy day can have more room than its pages need, so that its half is whole.
	"cut off":     {func(b []byte) []byte { return b[:4*4096] }, "belong to it"},
	"zero length": {func([]byte) []byte { return nil }, ""},
}

func (d *aDay) damage(t *testing.T, how func([]byte) []byte) {
	t.Helper()
	for _, name := range onDisk {
		path := filepath.Join(d.folder, name)
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path, how(bytes.Clone(content)), 0o600))
	}
}

func TestTheCollectorStartsWithDamagedFiles(t *testing.T) {
	for name, c := range damages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDay(t, t.TempDir())
			d.fill(t)
			d.damage(t, c.how)
			collector := d.start(t)
			before := len(d.vendor.scrapeTimes())
			collector.WaitFor(t, "new points", func() bool { return len(d.vendor.scrapeTimes()) > before+2 })
			collector.Stop(t)
			asides, err := filepath.Glob(filepath.Join(d.folder, "*.backup"))
			require.NoError(t, err)
			if c.want == "" {
				assert.Empty(t, asides)
				assert.NotContains(t, collector.Log(), setAside)
				return
			}
			assert.Len(t, asides, len(onDisk))
			var said []string
			for line := range strings.Lines(collector.Log()) {
				if strings.Contains(line, setAside) {
					said = append(said, line)
				}
			}
			require.Len(t, said, len(onDisk), "one sentence for each file")
			for i, file := range onDisk {
				assert.Contains(t, said[i], filepath.Join(d.folder, file))
				assert.Contains(t, said[i], c.want)
			}
			assert.Empty(t, collector.Complaints(setAside, "failed to scrape", "Dropping data", "diagnosis: "))

			again := d.start(t)
			before = len(d.vendor.scrapeTimes())
			again.WaitFor(t, "new points", func() bool { return len(d.vendor.scrapeTimes()) > before+1 })
			again.Stop(t)
			assert.NotContains(t, again.Log(), setAside, "the new files are sound")
		})
	}
}

// Without storage_check the collector does not start, although recreate is true. So the
// test above is not empty.
func TestFileStorageAloneEndsTheCollector(t *testing.T) {
	t.Parallel()
	d := newDay(t, t.TempDir())
	d.fill(t)
	d.damage(t, damages["zeroed tail"].how)
	collector := d.start(t, "service::extensions: [file_storage]")
	collector.WaitForFailure(t)
	assert.Contains(t, collector.Log(), "panic: assertion failed")
}

func TestASecondCollectorOnOneDirectoryEndsWithASentence(t *testing.T) {
	t.Parallel()
	d := newDay(t, t.TempDir())
	first := d.start(t)
	first.WaitFor(t, "points", func() bool { return len(d.vendor.scrapeTimes()) > 1 })
	second := d.start(t)
	second.WaitForFailure(t)
	for _, name := range onDisk {
		assert.Contains(t, second.Log(), filepath.Join(d.folder, name)+" is in use by another process: it has been locked for 5s; "+
			"end that collector, or give each one a directory of its own (extensions::file_storage::directory)")
	}
	before := len(d.vendor.scrapeTimes())
	first.WaitFor(t, "more points", func() bool { return len(d.vendor.scrapeTimes()) > before+1 })
	first.Stop(t)
}

// A full disk loses only what cannot be stored: the collector keeps running, reports
// it, and stores again when there is room.
func TestAFullDiskDoesNotEndTheCollector(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	if err := syscall.Mount("tmpfs", folder, "tmpfs", 0, "size=2m"); err != nil {
		t.Skipf("needs root, to make a small file system: %v", err)
	}
	t.Cleanup(func() { assert.NoError(t, syscall.Unmount(folder, 0)) })
	d := newDay(t, folder)
	d.vendor.leave()
	// The server's pages are too small to fill a disk soon, so another file fills it.
	running := d.start(t)
	running.WaitFor(t, "the start", running.Ready)
	rest := filepath.Join(folder, "rest")
	_ = os.WriteFile(rest, make([]byte, 2<<20), 0o600)
	running.Stop(t)

	// The queue itself may lose a batch with a debug line only.
	full := d.start(t)
	full.WaitFor(t, "a sentence", func() bool { return strings.Contains(full.Log(), "the disk of file_storage is full") })
	full.Kill(t)
	require.NoError(t, os.Remove(rest))

	d.vendor.come(t)
	after := d.start(t)
	after.WaitFor(t, "points", func() bool { return len(d.vendor.scrapeTimes()) > 1 })
	after.Stop(t)
	assert.NotContains(t, running.Log()+full.Log()+after.Log(), "panic:")
}
