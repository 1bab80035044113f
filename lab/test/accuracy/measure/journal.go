package main

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/otelcol-vllm/otelcol-vllm/lab/test/accuracy/stories"
)

// Journal keeps records in a file, a line of JSON each, so that a run that was ended
// continues where it was. A record counts only for the story and the sources that it was
// made of.
type Journal struct {
	mu   sync.Mutex
	file journalFile
	// whole is the size of the file in whole lines.
	whole int64
	print string
	known map[string]Record
	// Stale is the number of records that other sources or other stories had made.
	Stale int
}

var errNotKept = errors.New("the result cannot be kept, so the run ends; make room and start it again")

// journalFile is the file of a journal, and in tests one that fails.
type journalFile interface {
	io.ReadWriteCloser
	Truncate(size int64) error
}

// mostLine is the length of the longest line of a journal in bytes.
const mostLine = 64 << 20

// OpenJournal reads a journal, or begins one. The fingerprint is that of the sources.
func OpenJournal(path, fingerprint string) (*Journal, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	j, err := openJournal(path, fingerprint, os.O_RDWR|os.O_CREATE|os.O_APPEND)
	if err != nil {
		return nil, err
	}
	// A run that was killed may have left half a line at the end.
	if err := j.file.Truncate(j.whole); err != nil {
		return nil, errors.Join(err, j.file.Close())
	}
	return j, nil
}

// ReadJournal reads a journal that a run may be writing to at the same time. Nothing can be
// added to it.
func ReadJournal(path, fingerprint string) (*Journal, error) {
	return openJournal(path, fingerprint, os.O_RDONLY)
}

func openJournal(path, fingerprint string, mode int) (*Journal, error) {
	file, err := os.OpenFile(path, mode, 0o600)
	if err != nil {
		return nil, err
	}
	j := &Journal{file: file, print: fingerprint, known: map[string]Record{}}
	if err := j.read(); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w; remove the file to start again", path, err), file.Close())
	}
	return j, nil
}

// read takes the whole lines that the file has.
func (j *Journal) read() error {
	in := bufio.NewReaderSize(j.file, 1<<20)
	for n := 1; ; n++ {
		line, err := in.ReadBytes('\n')
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if len(line) > mostLine {
			return fmt.Errorf("line %d has %d bytes, more than %d", n, len(line), mostLine)
		}
		var r Record
		if err := json.Unmarshal(bytes.TrimSpace(line), &r); err != nil {
			return fmt.Errorf("line %d is not a record: %w", n, err)
		}
		j.known[r.Name] = r
		j.whole += int64(len(line))
	}
}

// Get returns the record of a story if it was played as it is now.
func (j *Journal) Get(meta *stories.Meta) (Record, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	r, there := j.known[meta.Name]
	if there && r.Print != j.storyPrint(meta) {
		j.Stale++
		delete(j.known, meta.Name)
		return Record{}, false
	}
	return r, there
}

// Present returns the records of these sources, whatever their story, by name.
func (j *Journal) Present() []Record {
	return slices.DeleteFunc(j.All(), func(r Record) bool { return r.Print != j.storyPrint(&r.Meta) })
}

// All returns the records of any sources, by name.
func (j *Journal) All() []Record {
	j.mu.Lock()
	defer j.mu.Unlock()
	out := make([]Record, 0, len(j.known))
	for _, name := range slices.Sorted(maps.Keys(j.known)) {
		out = append(out, j.known[name])
	}
	return out
}

// Put adds a record.
func (j *Journal) Put(r Record) error {
	r.Print = j.storyPrint(&r.Meta)
	line, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("story %s: %w", r.Name, err)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	n, err := j.file.Write(append(line, '\n'))
	if err != nil {
		// Half a line would spoil the next one.
		err = errors.Join(err, j.file.Truncate(j.whole))
		return fmt.Errorf("story %s: %w: %w", r.Name, errNotKept, err)
	}
	j.whole += int64(n)
	j.known[r.Name] = r
	return nil
}

// Close closes the file.
func (j *Journal) Close() error { return j.file.Close() }

// alsoKept is in the fingerprint of some stories, because older journals lack most of their lines, or what was said.
var alsoKept = map[stories.Kind]string{stories.Exposition: "all lines", stories.Healthy: "said"}

// storyPrint is the fingerprint of the sources and of the description of a story.
func (j *Journal) storyPrint(meta *stories.Meta) string {
	text, err := json.Marshal(meta)
	if err != nil {
		panic(err) // A description has no value that JSON cannot hold.
	}
	sum := sha256.Sum256(slices.Concat([]byte(j.print), text, []byte(alsoKept[meta.Kind])))
	return hex.EncodeToString(sum[:8])
}

// sources are the folders whose Go files decide about what a story's result is.
var sources = []string{
	"internal/catalog", "lab/judge", "lab/vllmsim", "lab/test/accuracy/stories", "processor/vllmprocessor",
}

// Fingerprint is a hash of the sources that decide about results, below the root of the
// repository. Tests do not count, and neither does how results are scored and shown.
func Fingerprint(root string) (string, error) { return fingerprint(root, sources, nil) }

// fingerprint is that of the sources in some folders, but for some files.
func fingerprint(root string, folders, without []string) (string, error) {
	hash := sha256.New()
	files := []string{filepath.Join(root, "go.mod"), filepath.Join(root, "lab", "go.mod")}
	for _, dir := range folders {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, _ fs.DirEntry, err error) error {
			if err == nil && strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") {
				files = append(files, path)
			}
			return err
		})
		if err != nil {
			return "", err
		}
	}
	slices.Sort(files)
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			return "", err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return "", err
		}
		if !slices.Contains(without, filepath.ToSlash(name)) {
			fmt.Fprintf(hash, "%s %d\n%s", filepath.ToSlash(name), len(text), text)
		}
	}
	return hex.EncodeToString(hash.Sum(nil)[:8]), nil
}
