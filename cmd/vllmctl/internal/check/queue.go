package check

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/dustin/go-humanize"
	"go.opentelemetry.io/collector/confmap"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/configfile"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/probe"
)

// Disk is a directory as the file system shows it.
type Disk struct {
	// Missing is true where it does not exist. Then the others are about the nearest parent
	// that does.
	Missing bool
	// File is the file that is there, or that is a part of the path, in place of a directory; empty for none.
	File string
	// Writable reports whether this process may create files there.
	Writable bool
	// Free is the free space in bytes; negative if it is not known.
	Free int64
}

// directory is a directory on disk that the collector writes to.
type directory struct {
	// extension and path say which one, and creates whether the extension makes it.
	extension, path string
	creates         bool
	// need is the size in bytes of all queues in it; 0 if it is not known.
	need int64
	// about is true where need is an estimate.
	about bool
}

// defaultDirectory is that of file_storage.
const defaultDirectory = "/var/lib/otelcol/file_storage"

// storageSettings are those of file_storage that matter here.
type storageSettings struct {
	Directory string `mapstructure:"directory"`
	Create    bool   `mapstructure:"create_directory"`

	_ struct{}
}

// queueSettings are those of sending_queue.
type queueSettings struct {
	Enabled *bool  `mapstructure:"enabled"`
	Storage string `mapstructure:"storage"`
	Size    int64  `mapstructure:"queue_size"`
	Sizer   string `mapstructure:"sizer"`

	_ struct{}
}

// queued are the kinds of exporters with a sending queue that is on by default.
var queued = []string{"otlp", "otlp_grpc", "otlphttp", "otlp_http"}

// remoteWrite are those with a queue of their own, which a write-ahead log can keep.
var remoteWrite = []string{"prometheusremotewrite", "prometheus_remote_write"}

// queuesOf returns the directories that the configuration writes to. It reports queues in
// memory, and storage that does not exist.
func queuesOf(f *findings, file *configfile.File, seen []Seen) []*directory {
	found := map[string]*directory{}
	use := func(who, extension string) *directory {
		d, what := storageOf(file, extension)
		if what != "" {
			f.add(CodeQueueStorage, fmt.Sprintf("%s names the storage %q, %s.", who, extension, what))
			return nil
		}
		if d == nil {
			return nil
		}
		if found[d.path] == nil {
			found[d.path] = d
		}
		return found[d.path]
	}
	for _, name := range usedExporters(file) {
		section := file.Exporters[name]
		kind, _, _ := strings.Cut(name, "/")
		who := "exporters::" + name
		switch {
		case slices.Contains(remoteWrite, kind):
			if wal, is := section["wal"].(map[string]any); is {
				path, _ := wal["directory"].(string)
				found[path] = &directory{extension: who + "::wal", path: path, creates: true}
				continue
			}
			if queue, is := section["remote_write_queue"].(map[string]any); is && queue["enabled"] == false {
				f.pass(Queue, "%s has no queue", name)
				continue
			}
			f.add(CodeQueueMemory, who+" keeps its queue in memory.")
		case slices.Contains(queued, kind) || section["sending_queue"] != nil:
			queue, err := queueOf(section)
			switch {
			case err != nil:
				f.add(CodeExporterSettings, fmt.Sprintf("%s: sending_queue cannot be used: %s.", who, probe.Printable(strings.Join(mistakes(err.Error()), "; "))))
			case queue.Enabled != nil && !*queue.Enabled:
				f.pass(Queue, "%s has no queue", name)
			case queue.Storage == "":
				f.add(CodeQueueMemory, who+" keeps its queue in memory.")
			default:
				if d := use(who, queue.Storage); d != nil {
					bytes, about := queue.bytes(seen)
					d.need += bytes
					d.about = d.about || about
				}
			}
		}
	}
	for i := range file.Processors {
		if storage := file.Processors[i].Config.Storage; storage != nil {
			use("processors::"+file.Processors[i].Name, storage.String())
		}
	}
	out := slices.Collect(maps.Values(found))
	slices.SortFunc(out, func(a, b *directory) int { return cmp.Compare(a.path, b.path) })
	return out
}

// usedExporters are the exporters that a pipeline has, in order.
func usedExporters(file *configfile.File) []string {
	var names []string
	for _, p := range file.Pipelines {
		names = append(names, p.Exporters...)
	}
	slices.Sort(names)
	return slices.DeleteFunc(slices.Compact(names), func(name string) bool {
		_, has := file.Exporters[name]
		return !has
	})
}

func queueOf(section map[string]any) (*queueSettings, error) {
	queue := &queueSettings{Size: 1000, Sizer: "requests"}
	part, _ := section["sending_queue"].(map[string]any)
	return queue, confmap.NewFromStringMap(part).Unmarshal(queue, confmap.WithIgnoreUnused())
}

// bytes is how large the queue can become. Where it counts requests or points, the largest
// scrape that was seen is the measure.
func (q *queueSettings) bytes(seen []Seen) (size int64, about bool) {
	if q.Sizer == "bytes" {
		return q.Size, false
	}
	for i := range seen {
		each := int64(seen[i].Batch.Raw)
		if q.Sizer == "items" {
			each = int64(seen[i].Batch.Raw / max(1, seen[i].Batch.Points))
		}
		size = max(size, q.Size*each)
	}
	return size, true
}

// noStorage are kinds of extensions that store nothing for others. storage_check is easily taken for one.
var noStorage = []string{
	"storage_check", "health_check", "health_check_v2", "pprof", "zpages", "memory_limiter",
	"basicauth", "bearertokenauth", "oauth2client", "headers_setter", "oidc", "sigv4auth",
}

// storageOf returns the directory of a storage extension. It returns what is wrong with it,
// and neither for a kind of storage that has no directory.
func storageOf(file *configfile.File, extension string) (d *directory, wrong string) {
	section, configured := file.Extensions[extension]
	switch {
	case !configured:
		return nil, "which is not configured under extensions"
	case !slices.Contains(file.Started, extension):
		return nil, "which service::extensions does not list"
	}
	switch kind, _, _ := strings.Cut(extension, "/"); {
	case slices.Contains(noStorage, kind):
		return nil, "which is not a storage"
	case kind != "file_storage":
		return nil, ""
	}
	settings := storageSettings{Directory: defaultDirectory}
	if err := confmap.NewFromStringMap(section).Unmarshal(&settings, confmap.WithIgnoreUnused()); err != nil {
		return nil, "whose settings cannot be used: " + probe.Printable(err.Error())
	}
	return &directory{extension: "extensions::" + extension, path: settings.Directory, creates: settings.Create}, ""
}

// judgeQueues judges the directories. look asks the file system.
func judgeQueues(f *findings, directories []*directory, look func(path string) Disk) {
	for _, d := range directories {
		disk := look(d.path)
		where := d.path
		if whole, err := filepath.Abs(d.path); err == nil && whole != filepath.Clean(d.path) {
			// The collector may run in another directory.
			where += " (here " + whole + ")"
		}
		switch {
		case disk.File != "":
			f.add(CodeQueueDirectory, fmt.Sprintf("%s cannot be the directory of %s: %s is a file.", where, d.extension, disk.File))
			continue
		case disk.Missing && !d.creates:
			f.add(CodeQueueDirectory, fmt.Sprintf("The directory %s of %s does not exist.", where, d.extension))
			continue
		case !disk.Writable:
			f.add(CodeQueueWrite, fmt.Sprintf("The directory %s of %s cannot be written to by this user.", where, d.extension))
			continue
		}
		size := humanize.IBytes(uint64(max(0, d.need)))
		if d.about {
			size = "about " + size
		}
		if disk.Free >= 0 && disk.Free < d.need {
			f.add(CodeQueueSpace, fmt.Sprintf("The queues in %s can need %s, and %s are free.", where, size, humanize.IBytes(uint64(disk.Free))))
			continue
		}
		words := where + " can be written to"
		if d.need > 0 && disk.Free >= 0 {
			words += fmt.Sprintf("; its queues can need %s, and %s are free", size, humanize.IBytes(uint64(disk.Free)))
		}
		f.pass(Queue, "%s", words)
	}
}

// look asks the file system about a directory, without writing to it.
func look(path string) Disk {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		parent := filepath.Dir(path)
		if parent == path {
			return Disk{Missing: true, Free: -1}
		}
		above := look(parent)
		above.Missing = true
		return above
	case err != nil:
		return Disk{Free: -1}
	case !info.IsDir():
		return Disk{File: path, Free: -1}
	}
	return Disk{Writable: mayWrite(path), Free: freeSpace(path)}
}
