package boltfile

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"
)

// use does the same with a file as file_storage: it opens it, creates the bucket,
// reads all values, writes, deletes, and repeats that after opening it again. Errors
// are allowed, because file_storage returns them. A panic or a fault is not.
func use(path string, times int) error {
	for range times {
		db, err := bbolt.Open(path, 0o600, asFileStorage)
		if err != nil {
			return err
		}
		err = errors.Join(
			db.Update(func(tx *bbolt.Tx) error {
				_, err := tx.CreateBucketIfNotExists(bucket)
				return err
			}),
			db.Update(func(tx *bbolt.Tx) error {
				b := tx.Bucket(bucket)
				if b == nil {
					return nil
				}
				var keys [][]byte
				sum := 0
				for c, k, v := cursor(b); k != nil; k, v = c.Next() {
					keys = append(keys, bytes.Clone(k))
					for _, part := range v {
						sum += int(part)
					}
				}
				for i, key := range keys {
					if i%3 != 0 {
						_ = b.Delete(key) // a bucket cannot be deleted like this
					}
				}
				return b.Put([]byte("sum"), fmt.Append(nil, sum))
			}),
			db.Update(func(tx *bbolt.Tx) error {
				b := tx.Bucket(bucket)
				if b == nil {
					return nil
				}
				for i := range 50 {
					if err := b.Put(fmt.Append(nil, i), make([]byte, 100*i)); err != nil {
						return err
					}
				}
				return nil
			}))
		if err := errors.Join(err, db.Close()); err != nil {
			return err
		}
	}
	return nil
}

func cursor(b *bbolt.Bucket) (c *bbolt.Cursor, k, v []byte) {
	c = b.Cursor()
	k, v = c.First()
	return c, k, v
}

// TestMain makes the test binary a program that uses files, if the test below
// starts it as one.
func TestMain(m *testing.M) {
	if list := os.Getenv("BOLTFILE_USE"); list != "" {
		for path := range strings.SplitSeq(list, "\n") {
			fmt.Println("using", path)
			_ = use(path, 2)
			fmt.Println("used", path)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// useInAProcess uses files in another process, which damage may crash. It returns the
// file that crashed it.
func useInAProcess(t *testing.T, paths []string) (ended, output string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	child := exec.CommandContext(ctx, os.Args[0])
	child.Env = append(os.Environ(), "BOLTFILE_USE="+strings.Join(paths, "\n"))
	said, err := child.CombinedOutput()
	if err == nil {
		return "", ""
	}
	at := strings.LastIndex(string(said), "using ")
	require.GreaterOrEqual(t, at, 0, "%v: %s", err, said)
	return strings.Fields(string(said[at:]))[1], string(said[at:])
}

// resum corrects the checksums of both meta pages, so that changes in them are
// accepted.
func resum(b []byte, pageSize int) {
	for _, at := range []int{0, pageSize} {
		if len(b) >= at+headerSize+metaSize {
			sum := fnv.New64a()
			_, _ = sum.Write(b[at+headerSize : at+headerSize+metaSize-8])
			binary.NativeEndian.PutUint64(b[at+headerSize+metaSize-8:], sum.Sum64())
		}
	}
}

// spoil changes a file in one of many ways. Most of them change the
// structure: headers, tables and keys.
func spoil(random *rand.Rand, b []byte, pageSize int) []byte {
	pages := len(b) / pageSize
	odd := []uint64{0, 1, 2, 3, 4, 16, 0x7f, 0xff, 0xffff, 1 << 31, 1<<32 - 1, 1<<63 - 1, 1<<64 - 1, uint64(pages), uint64(pages) - 1, uint64(len(b))}
	for range 1 + random.IntN(3) {
		p := random.IntN(pages) * pageSize
		number := odd[random.IntN(len(odd))]
		if random.IntN(2) == 0 {
			number = uint64(random.IntN(2 * pages))
		}
		switch random.IntN(9) {
		case 0: // of a header
			b[p+random.IntN(headerSize)] = byte(number)
		case 1: // of a meta page
			at := random.IntN(2)*pageSize + headerSize + 8*random.IntN(metaSize/8-1)
			binary.NativeEndian.PutUint64(b[at:], number)
			resum(b, pageSize)
		case 2: // of a table of elements
			at := p + headerSize + 4*random.IntN(200)
			binary.NativeEndian.PutUint32(b[at:], uint32(number))
		case 3: // anywhere in the part that is used
			b[p+random.IntN(pageSize)] ^= 1 << random.IntN(8)
		case 4: // one page in the place of another
			copy(b[p:p+pageSize], b[random.IntN(pages)*pageSize:])
		case 5: // the same, which says that it belongs there
			copy(b[p:p+pageSize], b[random.IntN(pages)*pageSize:])
			if p >= 2*pageSize {
				binary.NativeEndian.PutUint64(b[p:], uint64(p/pageSize))
			}
		case 6: // zeros
			from := p + random.IntN(pageSize)
			clear(b[from:min(len(b), from+random.IntN(3*pageSize))])
		case 7: // a cut
			if random.IntN(4) == 0 && pages > 5 {
				b = b[:len(b)-random.IntN(pageSize)-1]
				pages = len(b) / pageSize
			}
		case 8: // another number of elements, or kind, or size
			binary.NativeEndian.PutUint16(b[p+8+2*random.IntN(4):], uint16(number))
		}
	}
	return b
}

// A file that is reported as sound must not crash the process that opens, reads and writes it.
func TestASoundFileDoesNotEndTheProcess(t *testing.T) {
	rounds := 3
	if testing.Short() {
		rounds = 1
	}
	folder := fastFolder(t)
	for round := range rounds {
		random := rand.New(rand.NewPCG(uint64(round), 9))
		options := asFileStorage
		if round%3 == 2 {
			options = &bbolt.Options{Timeout: time.Second, NoSync: true}
		}
		origin := queue(t, random, options, 1+random.IntN(40), 1+random.IntN(5000))
		pageSize := int(binary.NativeEndian.Uint32(origin[24:]))
		var sound []string
		for n := range 600 {
			spoiled := spoil(random, bytes.Clone(origin), pageSize)
			if check(spoiled) != nil {
				continue
			}
			path := filepath.Join(folder, fmt.Sprintf("%d-%d", round, n))
			require.NoError(t, os.WriteFile(path, spoiled, 0o600))
			sound = append(sound, path)
		}
		require.NotEmpty(t, sound, "then nothing was tried")
		t.Logf("round %d: %d of 600 are called sound", round, len(sound))
		if ended, output := useInAProcess(t, sound); ended != "" {
			t.Fatalf("%s was called sound and ended the process: %.3000s", ended, output)
		}
		for _, path := range sound {
			require.NoError(t, os.Remove(path))
		}
	}
}

// Without the check, the same damage crashes the process. Otherwise the test above
// would prove nothing.
func TestDamageEndsTheProcess(t *testing.T) {
	content := queue(t, rand.New(rand.NewPCG(7, 7)), asFileStorage, 100, 6000)
	clear(content[8192:])
	path := filepath.Join(fastFolder(t), "file")
	require.NoError(t, os.WriteFile(path, content, 0o600))
	ended, output := useInAProcess(t, []string{path})
	require.Equal(t, path, ended)
	require.Contains(t, output, "panic: assertion failed")
}

// FuzzCheck changes a file as the input says: a place, a length and bytes, again and
// again. If the result is reported as sound, bbolt uses it in this process: a panic or
// a fault fails the test.
func FuzzCheck(f *testing.F) {
	origin := queue(f, rand.New(rand.NewPCG(5, 5)), asFileStorage, 15, 900)
	pageSize := int(binary.NativeEndian.Uint32(origin[24:]))
	f.Add([]byte{})
	f.Add([]byte{0, 0x10, 0x10, 1, 5})
	f.Add([]byte{0, 0x20, 0x08, 2, 2, 0})
	f.Add([]byte{0, 0, 0x20, 8, 3, 0, 0, 0, 0, 0, 0, 0})
	path := filepath.Join(fastFolder(f), "file")
	f.Fuzz(func(t *testing.T, changes []byte) {
		content := bytes.Clone(origin)
		for len(changes) >= 4 {
			at := (int(changes[0])<<16 | int(changes[1])<<8 | int(changes[2])) % len(content)
			n := min(int(changes[3]%16), len(changes)-4)
			copy(content[at:], changes[4:4+n])
			changes = changes[4+n:]
		}
		resum(content, pageSize)
		if check(content) != nil {
			return
		}
		require.NoError(t, os.WriteFile(path, content, 0o600))
		_ = use(path, 1)
	})
}
