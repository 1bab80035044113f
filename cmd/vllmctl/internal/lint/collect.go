package lint

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/lint/document"
)

// The bounds of one run.
const (
	maxFiles  = 10_000
	maxFolder = 32
	maxTotal  = 512 << 20
)

// Input is a file with its content.
type Input struct {
	// Name is the path as it was given, or below a folder that was given.
	Name string
	// Content is nil if Err is set.
	Content []byte
	Err     error
	// Listed reports whether the file itself was named, and not only its folder.
	Listed bool
}

// Collect reads the files that are named, and the YAML and JSON files below folders. "-"
// stands for stdin. Links to folders are not followed, so that no folder is read twice.
func Collect(ctx context.Context, paths []string, stdin io.Reader) []Input {
	c := &collector{seen: map[string]bool{}}
	for _, path := range paths {
		if ctx.Err() != nil {
			break
		}
		switch info, err := os.Stat(path); {
		case path == "-":
			content, err := readBounded(ctx, stdin)
			c.add(Input{Name: "-", Content: content, Err: err, Listed: true})
		case err != nil:
			c.add(Input{Name: path, Err: reason(err), Listed: true})
		case info.IsDir():
			c.folder(ctx, path)
		default:
			c.file(ctx, path, info, true)
		}
	}
	return c.all
}

type collector struct {
	all   []Input
	seen  map[string]bool
	total int
}

func (c *collector) add(in Input) { c.all = append(c.all, in) }

// file reads a file, once however it is named.
func (c *collector) file(ctx context.Context, path string, info fs.FileInfo, listed bool) {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		if target, err = filepath.Abs(target); err == nil {
			if c.seen[target] {
				return
			}
			c.seen[target] = true
		}
	}
	in := Input{Name: path, Listed: listed}
	switch pipe := info.Mode()&(fs.ModeNamedPipe|fs.ModeCharDevice) != 0; {
	case len(c.all) >= maxFiles:
		in.Err = fmt.Errorf("there are more than %d files", maxFiles)
	case !info.Mode().IsRegular() && !(pipe && listed):
		in.Err = errors.New("it is not a regular file")
	case info.Size() > document.MaxBytes:
		in.Err = errSize
	default:
		in.Content, in.Err = readBounded(ctx, &opened{path: path})
		c.total += len(in.Content)
		if c.total > maxTotal {
			in.Content, in.Err = nil, fmt.Errorf("all files together are larger than %d MiB; check fewer at a time", maxTotal>>20)
		}
	}
	c.add(in)
}

var errSize = fmt.Errorf("it is larger than %d MiB", document.MaxBytes>>20)

// opened opens a file when it is read: opening a pipe waits for a writer.
type opened struct {
	path string
	file *os.File
}

func (o *opened) Read(p []byte) (int, error) {
	if o.file == nil {
		f, err := os.Open(o.path)
		if err != nil {
			return 0, err
		}
		o.file = f
	}
	n, err := o.file.Read(p)
	if err != nil {
		_ = o.file.Close()
	}
	return n, err
}

// readBounded reads all of a text of bounded size. A pipe that ends never is left when the
// context ends.
func readBounded(ctx context.Context, from io.Reader) ([]byte, error) {
	type result struct {
		content []byte
		err     error
	}
	done := make(chan result, 1)
	go func() {
		content, err := io.ReadAll(io.LimitReader(from, document.MaxBytes+1))
		done <- result{content, err}
	}()
	select {
	case r := <-done:
		switch {
		case r.err != nil:
			return nil, reason(r.err)
		case len(r.content) > document.MaxBytes:
			return nil, errSize
		}
		return r.content, nil
	case <-ctx.Done():
		return nil, errors.New("the check was interrupted before the file was read")
	}
}

// reason returns an error without the path that it is about.
func reason(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return fmt.Errorf("it cannot be read: %w", path.Err)
	}
	return fmt.Errorf("it cannot be read: %w", err)
}

// extensions are those of the files that are read below a folder.
var extensions = []string{".yaml", ".yml", ".json", ".rules"}

func (c *collector) folder(ctx context.Context, root string) {
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return fs.SkipAll
		case err != nil:
			c.add(Input{Name: path, Err: reason(err)})
			if entry != nil && entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		case entry.IsDir():
			depth := strings.Count(strings.TrimPrefix(path, root), string(filepath.Separator))
			if path != root && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "node_modules") || depth > maxFolder {
				return fs.SkipDir
			}
			return nil
		case !slices.Contains(extensions, strings.ToLower(filepath.Ext(path))):
			return nil
		}
		// A link to a file is followed: Kubernetes mounts ConfigMaps as links.
		info, err := os.Stat(path)
		if err != nil {
			c.add(Input{Name: path, Err: reason(err)})
			return nil
		}
		if !info.IsDir() && len(c.all) <= maxFiles {
			c.file(ctx, path, info, false)
		}
		return nil
	})
	if err != nil {
		c.add(Input{Name: root, Err: reason(err), Listed: true})
	}
}
