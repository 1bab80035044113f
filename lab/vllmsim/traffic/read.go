package traffic

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
)

// What a file may cost. A small gzip file can unpack to any size, so the bound is on what
// comes out of it; the longest line is a prompt of a million tokens whose blocks are all
// known from elsewhere.
const (
	maxUnpacked = 512 << 20
	maxLine     = 1 << 20
	// maxKept bounds what the requests take in memory: ten million without blocks.
	maxKept = 512 << 20
)

// The memory of one request and of one run of blocks, and about that of a conversation.
const (
	arrivalBytes      = 48
	turnBytes         = 40
	runBytes          = 8
	conversationBytes = 96
)

// limits are the bounds above; tests have smaller ones.
type limits struct{ unpacked, line, kept int }

var usual = limits{maxUnpacked, maxLine, maxKept}

// Read reads a trace. The result is shared by all who use it and must not be changed.
func Read(path string) (*engine.Traffic, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("trace: %w", err)
	}
	defer file.Close()
	if info, err := file.Stat(); err == nil && info.IsDir() {
		return nil, fmt.Errorf("trace: %s is a folder: want a CSV file, gzip or plain", path)
	}
	name := strings.TrimSuffix(strings.TrimSuffix(filepath.Base(path), ".gz"), ".csv")
	return read(file, path, name, usual)
}

// read reads a trace from any source; path is for errors.
func read(from io.Reader, path, name string, most limits) (*engine.Traffic, error) {
	packed := bufio.NewReader(from)
	var plain io.Reader = packed
	if magic, _ := packed.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		unpacked, err := gzip.NewReader(packed)
		if err != nil {
			return nil, fmt.Errorf("trace: %s: not a whole gzip file: %w", path, err)
		}
		plain = unpacked
	}
	lines := &lineReader{from: bufio.NewReaderSize(plain, most.line), path: path, most: most}
	header, err := lines.next()
	if err != nil {
		return nil, err
	}
	if header == nil {
		return nil, fmt.Errorf("trace: %s is empty: want a header line with arrival_s, prompt_tokens and output_tokens", path)
	}
	header = bytes.TrimPrefix(header, []byte("\ufeff"))
	names, err := fields(header, nil)
	if err != nil {
		return nil, lines.wrong("", "%v", err)
	}
	form, err := newForm(names)
	if err != nil {
		return nil, lines.wrong("", "%v", err)
	}
	b := &builder{form: form, lines: lines, traffic: &engine.Traffic{Name: name}}
	if err := b.all(); err != nil {
		return nil, err
	}
	return b.finish()
}

// lineReader gives the lines of a file one by one, within bounds.
type lineReader struct {
	from *bufio.Reader
	path string
	most limits
	// number is that of the last line, size all that was read.
	number, size int
}

// next returns the next line that is not blank, valid until the next call, and nil at the end.
func (r *lineReader) next() ([]byte, error) {
	for {
		line, err := r.from.ReadSlice('\n')
		r.number++
		r.size += len(line)
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			return nil, r.wrong("", "the line is longer than %d bytes: want one request in each line", r.most.line)
		case r.size > r.most.unpacked:
			return nil, r.wrong("", "the file has more than %d MB unpacked: cut it into shorter windows", r.most.unpacked>>20)
		case err != nil && !errors.Is(err, io.EOF):
			return nil, fmt.Errorf("trace: %s: cannot be read to its end, it stops after line %d: %w", r.path, r.number-1, err)
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			return line, nil
		}
		if err != nil {
			return nil, nil
		}
	}
}

// wrong returns an error about the last line, and about one of its columns unless that is "".
func (r *lineReader) wrong(column, format string, args ...any) error {
	place := fmt.Sprintf("trace: %s: line %d", r.path, r.number)
	if column != "" {
		place += ", column " + column
	}
	return fmt.Errorf("%s: %s", place, fmt.Sprintf(format, args...))
}
