package history

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/bits"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/prometheus/prometheus/model/labels"

	"github.com/otelcol-vllm/otelcol-vllm/internal/vllmctl/backtest/promapi"
)

// Cache keeps parts of a history in a folder. Its methods are safe for concurrent use, and
// several programs may use one folder: a file appears when it is complete. It never fails:
// a part that cannot be read is read from the server again, and one that cannot be written
// is not kept. A nil Cache keeps nothing.
type Cache struct {
	dir   string
	limit int64

	mu      sync.Mutex
	size    int64
	problem error
	stored  int
}

// DefaultCacheLimit is the size of the folder in bytes from which on nothing is added.
const DefaultCacheLimit = 8 << 30

// cacheVersion changes when the form of the files changes.
const cacheVersion = "v1"

// maxPart is the largest part that is decoded, in bytes.
const maxPart = 1 << 30

// OpenCache returns the cache in a folder, for a server and a selection. Those of others are
// beside it; all count against the limit.
func OpenCache(folder string, limit int64) (*Cache, error) {
	dir := filepath.Join(folder, "vllmctl-backtest-"+cacheVersion)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("the folder of --resume cannot be used: %w", err)
	}
	c := &Cache{dir: dir, limit: limit}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return nil //nolint:nilerr // Another run may have removed it.
		}
		info, err := entry.Info()
		if err != nil {
			return nil //nolint:nilerr // As above.
		}
		if strings.HasSuffix(path, temporary) && time.Since(info.ModTime()) > time.Hour {
			_ = os.Remove(path) //nolint:gosec // A run was killed while it wrote. The folder is of this user alone.
			return nil
		}
		c.size += info.Size()
		return nil
	})
	return c, err
}

// Problem is why parts could not be kept; nil if all were. stored is how many were.
func (c *Cache) Problem() (stored int, problem error) {
	if c == nil {
		return 0, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stored, c.problem
}

const temporary = ".part"

// path is the file of a part. The key has all that the answer depends on.
func (c *Cache) path(key string, from, to int64) string {
	sum := sha256.Sum256([]byte(key))
	return filepath.Join(c.dir, hex.EncodeToString(sum[:10]), fmt.Sprintf("%d-%d.zst", from, to))
}

// Get returns a part, and whether it is there and sound.
func (c *Cache) Get(key string, from, to int64) ([]promapi.Series, bool) {
	if c == nil {
		return nil, false
	}
	file, err := os.Open(c.path(key, from, to))
	if err != nil {
		return nil, false
	}
	defer file.Close()
	decoder, err := zstd.NewReader(file, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxPart))
	if err != nil {
		return nil, false
	}
	defer decoder.Close()
	var data bytes.Buffer
	if _, err := decoder.WriteTo(&data); err != nil {
		return nil, false
	}
	series, err := decode(data.Bytes())
	return series, err == nil
}

// Put keeps a part.
func (c *Cache) Put(key string, from, to int64, series []promapi.Series) {
	if c == nil {
		return
	}
	c.mu.Lock()
	full, broken := c.size >= c.limit, c.problem != nil
	if full && !broken {
		c.problem = fmt.Errorf("the folder %s has its full size of %d MiB; remove it, or parts of it", c.dir, c.limit>>20)
	}
	c.mu.Unlock()
	if full || broken {
		return
	}
	size, err := c.write(c.path(key, from, to), series)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.size += size
	if err != nil && c.problem == nil {
		c.problem = err
	} else if err == nil {
		c.stored++
	}
}

func (c *Cache) write(path string, series []promapi.Series) (int64, error) {
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(true))
	if err != nil {
		return 0, err
	}
	data := encoder.EncodeAll(encode(series), nil)
	_ = encoder.Close()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return 0, err
	}
	file, err := os.CreateTemp(filepath.Dir(path), "*"+temporary)
	if err != nil {
		return 0, err
	}
	_, err = file.Write(data)
	if err = errors.Join(err, file.Close()); err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		_ = os.Remove(file.Name())
		return 0, err
	}
	return int64(len(data)), nil
}

// encode writes series in a compact form: the times once for all series that share them, as
// differences, and each value as its difference from the one before in bits.
func encode(series []promapi.Series) []byte {
	out := make([]byte, 0, 1<<16)
	out = binary.AppendUvarint(out, uint64(len(series)))
	var last []int64
	for i := range series {
		s := &series[i]
		n := 0
		s.Labels.Range(func(labels.Label) { n++ })
		out = binary.AppendUvarint(out, uint64(n))
		s.Labels.Range(func(l labels.Label) {
			out = appendText(appendText(out, l.Name), l.Value)
		})
		if i > 0 && slices.Equal(last, s.Times) {
			out = append(out, 1)
		} else {
			out = append(out, 0)
			out = binary.AppendUvarint(out, uint64(len(s.Times)))
			before := int64(0)
			for _, t := range s.Times {
				out = binary.AppendVarint(out, t-before)
				before = t
			}
			last = s.Times
		}
		before := uint64(0)
		for _, v := range s.Values {
			b := math.Float64bits(v)
			out = binary.AppendUvarint(out, bits.ReverseBytes64(b^before))
			before = b
		}
	}
	return out
}

func appendText(out []byte, text string) []byte {
	return append(binary.AppendUvarint(out, uint64(len(text))), text...)
}

var errCorrupt = errors.New("the file is not complete")

// decode is the opposite of encode. It bounds what it allocates by the size of its input.
func decode(in []byte) ([]promapi.Series, error) {
	d := decoder{in: in}
	count := d.count(4)
	out := make([]promapi.Series, 0, count)
	builder := labels.NewScratchBuilder(16)
	var times []int64
	for range count {
		builder.Reset()
		for range d.count(2) {
			name := d.text()
			builder.Add(name, d.text())
		}
		builder.Sort()
		shared := d.byte() == 1
		if !shared {
			times = make([]int64, d.count(1))
			before := int64(0)
			for i := range times {
				before += d.varint()
				times[i] = before
			}
		}
		if d.broken || len(times) > len(d.in) {
			return nil, errCorrupt
		}
		values := make([]float64, len(times))
		before := uint64(0)
		for i := range values {
			before ^= bits.ReverseBytes64(d.uvarint())
			values[i] = math.Float64frombits(before)
		}
		out = append(out, promapi.Series{Labels: builder.Labels(), Times: times, Values: values})
	}
	if d.broken || len(d.in) > 0 {
		return nil, errCorrupt
	}
	return out, nil
}

type decoder struct {
	in     []byte
	broken bool
}

func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.in)
	if n <= 0 {
		d.in, d.broken = nil, true
		return 0
	}
	d.in = d.in[n:]
	return v
}

func (d *decoder) varint() int64 {
	v, n := binary.Varint(d.in)
	if n <= 0 {
		d.in, d.broken = nil, true
		return 0
	}
	d.in = d.in[n:]
	return v
}

// count reads a number of things of at least so many bytes each.
func (d *decoder) count(least int) int {
	n := d.uvarint()
	if n > uint64(len(d.in)/least) {
		d.in, d.broken = nil, true
		return 0
	}
	return int(n)
}

func (d *decoder) byte() byte {
	if len(d.in) == 0 {
		d.broken = true
		return 0
	}
	b := d.in[0]
	d.in = d.in[1:]
	return b
}

func (d *decoder) text() string {
	n := d.count(1)
	text := string(d.in[:n])
	d.in = d.in[n:]
	return text
}
