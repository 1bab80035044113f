package boltfile

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"
)

// asFileStorage are the options that contrib's file_storage opens its files with.
var asFileStorage = &bbolt.Options{Timeout: time.Second, NoSync: true, NoFreelistSync: true, FreelistType: bbolt.FreelistMapType}

var bucket = []byte("default")

// fastFolder is in memory if the machine has such a folder, because bbolt waits for the
// disk whenever a file grows.
func fastFolder(tb testing.TB) string {
	tb.Helper()
	if folder, err := os.MkdirTemp("/dev/shm", "boltfile"); err == nil { //nolint:usetesting // not where TempDir would be
		tb.Cleanup(func() { _ = os.RemoveAll(folder) })
		return folder
	}
	return tb.TempDir()
}

// queue writes a file as a queue on disk would: small keys, values of any size, of
// which most are deleted again.
func queue(tb testing.TB, random *rand.Rand, options *bbolt.Options, transactions, valueSize int) []byte {
	tb.Helper()
	path := filepath.Join(fastFolder(tb), "file")
	db, err := bbolt.Open(path, 0o600, options)
	require.NoError(tb, err)
	for range transactions {
		require.NoError(tb, db.Update(func(tx *bbolt.Tx) error {
			b, err := tx.CreateBucketIfNotExists(bucket)
			if err != nil {
				return err
			}
			for range random.IntN(20) {
				key := fmt.Appendf(nil, "%0*d", 1+random.IntN(30), random.IntN(1000))
				if random.IntN(3) == 0 {
					err = b.Delete(key)
				} else {
					err = b.Put(key, bytes.Repeat([]byte{byte(random.IntN(256))}, random.IntN(valueSize)))
				}
				if err != nil {
					return err
				}
			}
			if random.IntN(10) == 0 {
				// Other users of bbolt have buckets in buckets.
				inner, err := b.CreateBucketIfNotExists([]byte{byte(random.IntN(5))})
				if err != nil {
					return err
				}
				return inner.Put([]byte("key"), make([]byte, random.IntN(3000)))
			}
			return nil
		}))
	}
	require.NoError(tb, db.Close())
	content, err := os.ReadFile(path)
	require.NoError(tb, err)
	return content
}

func check(content []byte) error {
	return Check(context.Background(), bytes.NewReader(content), int64(len(content)))
}

// A file that is reported as damaged is moved aside, so all files of bbolt itself must
// be sound, after any sequence of operations.
func TestEveryFileOfBboltIsSound(t *testing.T) {
	for name, options := range map[string]*bbolt.Options{
		"as file_storage": asFileStorage,
		"with freelist":   {Timeout: time.Second, NoSync: true},
		"pages of 64 KiB": {Timeout: time.Second, NoSync: true, NoFreelistSync: true, PageSize: 64 << 10},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(20) {
				random := rand.New(rand.NewPCG(seed, 1))
				content := queue(t, random, options, 1+random.IntN(60), 1+random.IntN(20000))
				require.NoError(t, check(content), "seed %d", seed)
			}
		})
	}
}

func TestANewFileACompactedOneAndAnEmptyOneAreSound(t *testing.T) {
	require.NoError(t, check(nil))
	require.NoError(t, check(queue(t, nil, asFileStorage, 0, 0)), "without any transaction")

	folder := t.TempDir()
	from := filepath.Join(folder, "from")
	require.NoError(t, os.WriteFile(from, queue(t, rand.New(rand.NewPCG(1, 1)), asFileStorage, 200, 9000), 0o600))
	source, err := bbolt.Open(from, 0o600, asFileStorage)
	require.NoError(t, err)
	target, err := bbolt.Open(filepath.Join(folder, "to"), 0o600, asFileStorage)
	require.NoError(t, err)
	require.NoError(t, bbolt.Compact(target, source, 100))
	require.NoError(t, errors.Join(source.Close(), target.Close()))
	content, err := os.ReadFile(filepath.Join(folder, "to"))
	require.NoError(t, err)
	require.NoError(t, check(content))
}

// Each case is damage that occurs in practice or makes bbolt panic, with the report of it.
func TestDamageIsFound(t *testing.T) {
	sound := queue(t, rand.New(rand.NewPCG(7, 7)), asFileStorage, 100, 6000)
	page := int(binary.NativeEndian.Uint32(sound[24:]))
	zeroed := func(from, to int) func([]byte) []byte {
		return func(b []byte) []byte { clear(b[from:to]); return b }
	}
	random := func(b []byte) []byte {
		r := rand.New(rand.NewPCG(3, 3))
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		return b
	}
	for name, c := range map[string]struct {
		damage func([]byte) []byte
		want   string
	}{
		"zeroed tail":           {zeroed(2*page, len(sound)), `page \d+ is empty`},
		"all zeros":             {zeroed(0, len(sound)), `neither of the two pages that it begins with is whole`},
		"random bytes":          {random, `neither of the two pages that it begins with is whole`},
		"half a file":           {func(b []byte) []byte { return b[:len(b)/2] }, `it has \d+ bytes, and \d+ pages of \d+ bytes belong to it`},
		"not even a page":       {func(b []byte) []byte { return b[:100] }, `it has 100 bytes; the smallest file has 16384`},
		"three pages":           {func(b []byte) []byte { return b[:3*page] }, `it has 12288 bytes; the smallest file has 16384`},
		"another program's":     {func([]byte) []byte { return bytes.Repeat([]byte("log line\n"), 5000) }, `neither of the two pages`},
		"both metas are broken": {func(b []byte) []byte { b[50]++; b[page+50]++; return b }, `neither of the two pages`},
		"a page in another's place": {func(b []byte) []byte {
			for at := 2 * page; at+2*page <= len(b); at += page {
				copy(b[at:at+page], b[at+page:])
			}
			return b
		}, `page \d+ says that it is another page`},
	} {
		t.Run(name, func(t *testing.T) {
			err := check(c.damage(bytes.Clone(sound)))
			var damage *Damage
			require.ErrorAs(t, err, &damage)
			assert.Regexp(t, c.want, err.Error())
		})
	}
}

// If the write of a meta page is cut, the previous one is complete.
func TestOneMetaPageIsEnough(t *testing.T) {
	sound := queue(t, rand.New(rand.NewPCG(7, 7)), asFileStorage, 100, 6000)
	page := int(binary.NativeEndian.Uint32(sound[24:]))
	older := 0
	if binary.NativeEndian.Uint64(sound[64:]) > binary.NativeEndian.Uint64(sound[page+64:]) {
		older = page
	}
	clear(sound[older : older+page])
	require.NoError(t, check(sound))
}

func TestTheTimeOfACheckIsBounded(t *testing.T) {
	sound := queue(t, rand.New(rand.NewPCG(7, 7)), asFileStorage, 300, 3000)
	over, cancel := context.WithCancel(context.Background())
	cancel()
	err := Check(over, bytes.NewReader(sound), int64(len(sound)))
	require.ErrorIs(t, err, context.Canceled)
}

// broken is a disk on which a part of the file is unreadable.
type broken struct {
	*bytes.Reader
	from int64
}

func (b broken) ReadAt(to []byte, at int64) (int, error) {
	if at >= b.from {
		return 0, errors.New("input/output error")
	}
	return b.Reader.ReadAt(to, at)
}

func TestAnUnreadablePartOfTheDiskIsDamage(t *testing.T) {
	sound := queue(t, rand.New(rand.NewPCG(7, 7)), asFileStorage, 100, 6000)
	err := Check(context.Background(), broken{bytes.NewReader(sound), 8192}, int64(len(sound)))
	var damage *Damage
	require.ErrorAs(t, err, &damage)
	assert.Contains(t, err.Error(), "it cannot be read: input/output error")
}

// Pages that refer to each other in a circle or a long chain must end the check. The
// bounds are 64 levels of a tree and 16 buckets in buckets.
func TestTheHeightOfATreeIsBounded(t *testing.T) {
	content := queue(t, rand.New(rand.NewPCG(1, 1)), asFileStorage, 1, 10)
	for at, sound := range map[[2]int]bool{{0, 0}: true, {64, 0}: true, {65, 0}: false, {0, 15}: true, {0, 17}: false} {
		c := &checker{ctx: t.Context(), file: bytes.NewReader(content), size: int64(len(content)), seen: pageSet{}}
		m, err := c.meta()
		require.NoError(t, err)
		c.pageSize, c.pages = uint64(m.pageSize), m.pages
		_, err = c.tree(m.root, place{height: at[0], nested: at[1]})
		if sound {
			require.NoError(t, err, at)
		} else {
			require.ErrorContains(t, err, "more pages lie above it than any file has", at)
		}
	}
}
