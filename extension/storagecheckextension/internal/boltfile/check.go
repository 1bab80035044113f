// Package boltfile checks whether a file of bbolt can be opened. contrib's file_storage
// stores its data in such files.
//
// bbolt maps a file into memory and follows the numbers in it. In a damaged file it
// panics, partly in its own goroutines, or reads beyond the end of the file, which is a
// fault. The caller that opens the file can handle neither. So this package reads the
// file with ordinary reads, and trusts no number in it.
package boltfile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
)

// Damage is the error of a file that bbolt cannot use. What describes the damage.
type Damage struct{ What string }

func (d *Damage) Error() string { return d.What }

func damaged(format string, args ...any) error {
	return &Damage{fmt.Sprintf(format, args...)}
}

// The limits of bbolt's files. A page has the size of a memory page of the machine that
// wrote the file.
const (
	minPageSize = 4 << 10
	maxPageSize = 64 << 10
	maxKeySize  = 32 << 10
	// maxPages bounds the pages of a file: 8 TiB and more.
	maxPages = 1 << 31
	// maxHeight bounds the height of a tree, and maxNesting that of buckets in buckets.
	// A tree of maxPages pages with two branches each would be half as high.
	maxHeight  = 64
	maxNesting = 16
	// maxTx is far beyond the number of any real transaction.
	maxTx = 1 << 62
)

// Check reads the structure of a file of the given size: the two meta pages, the list of
// free pages, and of each page of the trees its header, its table of elements and their
// keys. bbolt reads the same when it opens the file. Check does not read the values,
// which bbolt returns unchanged.
//
// The error is a *Damage, or that of the context if the time is over. An empty file is
// sound: bbolt initializes it.
func Check(ctx context.Context, file io.ReaderAt, size int64) error {
	if size == 0 {
		return nil
	}
	c := &checker{ctx: ctx, file: file, size: size, seen: pageSet{}}
	m, err := c.meta()
	if err != nil {
		return err
	}
	c.pageSize, c.pages = uint64(m.pageSize), m.pages
	if _, err := c.tree(m.root, place{}); err != nil {
		return err
	}
	return c.freelist(m.freelist)
}

type checker struct {
	ctx      context.Context
	file     io.ReaderAt
	size     int64
	pageSize uint64
	// pages is the number of pages in use; the rest of the file is not read.
	pages uint64
	// seen are the pages that were read: each has one place in the file's trees.
	seen pageSet
	read int
}

// bytes reads n bytes from an offset in the file.
func (c *checker) bytes(offset, n uint64) ([]byte, error) {
	c.read++
	if c.read%64 == 0 && c.ctx.Err() != nil {
		return nil, c.ctx.Err()
	}
	if offset+n < offset || offset+n > uint64(c.size) {
		return nil, damaged("it ends after %d bytes, before its last page", c.size)
	}
	buffer := make([]byte, n)
	if read, err := c.file.ReadAt(buffer, int64(offset)); uint64(read) < n {
		if errors.Is(err, io.EOF) {
			return nil, damaged("it ends after %d bytes, before its last page", offset+uint64(read))
		}
		return nil, damaged("it cannot be read: %v", err)
	}
	return buffer, nil
}

// meta is the content of a meta page. The page has a checksum.
type meta struct {
	pageSize                    uint32
	root, freelist, pages, txid uint64
}

const (
	magic    = 0xED0CDAED
	version  = 2
	metaSize = 64
	// noFreelist in place of a page means that the file has no list of free pages.
	noFreelist = 1<<64 - 1
)

// metaAt reads the meta page at a place in the file.
func (c *checker) metaAt(offset uint64) (meta, bool) {
	b, err := c.bytes(offset+headerSize, metaSize)
	if err != nil {
		return meta{}, false
	}
	sum := fnv.New64a()
	_, _ = sum.Write(b[:metaSize-8])
	if order.Uint32(b) != magic || order.Uint32(b[4:]) != version || order.Uint64(b[56:]) != sum.Sum64() {
		return meta{}, false
	}
	return meta{
		pageSize: order.Uint32(b[8:]), root: order.Uint64(b[16:]),
		freelist: order.Uint64(b[32:]), pages: order.Uint64(b[40:]), txid: order.Uint64(b[48:]),
	}, true
}

// meta returns the page size and the newer of the complete meta pages, as bbolt does.
// Transactions write them in turn, so one is complete if the write of the other was cut.
func (c *checker) meta() (meta, error) {
	const noMeta = "neither of the two pages that it begins with is whole"
	if c.size < 4*minPageSize {
		return meta{}, damaged("it has %d bytes; the smallest file has %d", c.size, 4*minPageSize)
	}
	first, whole := c.metaAt(0)
	pageSize := uint64(first.pageSize)
	for at := uint64(1 << 10); !whole && at <= 16<<20 && int64(at) < c.size-1024; at *= 2 {
		// The first complete one counts.
		if second, found := c.metaAt(at); found {
			if pageSize = uint64(second.pageSize); pageSize != at {
				return meta{}, damaged("its second page is at %d and says that pages have %d bytes", at, pageSize)
			}
			break
		}
	}
	switch {
	case pageSize == 0:
		return meta{}, damaged(noMeta)
	case pageSize < minPageSize || pageSize > maxPageSize || pageSize&(pageSize-1) != 0:
		return meta{}, damaged("it says that pages have %d bytes", pageSize)
	}
	newest := first
	if second, ok := c.metaAt(pageSize); ok {
		if uint64(second.pageSize) != pageSize {
			return meta{}, damaged("its two first pages differ in the size of a page")
		}
		if !whole || second.txid > first.txid {
			newest = second
		}
	}
	switch {
	case newest.pages > uint64(c.size)/pageSize:
		return meta{}, damaged("it has %d bytes, and %d pages of %d bytes belong to it", c.size, newest.pages, pageSize)
	case newest.pages > maxPages || newest.txid >= maxTx:
		return meta{}, damaged("its first pages have numbers that are impossible")
	}
	return newest, nil
}

// place is the position of a tree: its first key must be first, and all keys must be less
// than below; nil means no condition. It also has the depth.
type place struct {
	first, below   []byte
	height, nested int
}

// tree reads a tree from its topmost page on and returns its height.
func (c *checker) tree(id uint64, at place) (height int, err error) {
	if at.height > maxHeight || at.nested > maxNesting {
		return 0, damaged("page %d: more pages lie above it than any file has", id)
	}
	p, err := c.page(id)
	if err != nil {
		return 0, err
	}
	elements, err := c.elements(p)
	if err != nil {
		return 0, err
	}
	inTree := at.height > 0
	if len(elements) == 0 && (inTree || p.flags == branchPage) {
		return 0, damaged("page %d is empty", id)
	}
	for i := range elements {
		key := elements[i].key
		switch {
		case i == 0 && at.first != nil && !bytes.Equal(key, at.first):
			return 0, damaged("page %d begins with another key than the page above it says", id)
		case i > 0 && bytes.Compare(elements[i-1].key, key) >= 0, at.below != nil && bytes.Compare(key, at.below) >= 0:
			return 0, damaged("the keys of page %d are not in order", id)
		}
	}
	if p.flags == leafPage {
		return 1, c.leaf(p, elements, at.nested)
	}
	for i := range elements {
		below := place{first: elements[i].key, below: at.below, height: at.height + 1, nested: at.nested}
		if i+1 < len(elements) {
			below.below = elements[i+1].key
		}
		h, err := c.tree(elements[i].child, below)
		if err != nil {
			return 0, err
		}
		if i > 0 && h != height {
			return 0, damaged("the pages under page %d are not at the same height", id)
		}
		height = h
	}
	return height + 1, nil
}

// leaf checks the buckets among the elements of a page. The topmost tree has only
// buckets.
func (c *checker) leaf(p page, elements []element, nested int) error {
	for i := range elements {
		e := &elements[i]
		switch {
		case e.flags == 0 && nested == 0:
			return damaged("page %d has a value where only buckets belong", p.id)
		case e.flags > bucketElement:
			return damaged("page %d has an element of an unknown kind", p.id)
		case e.flags == bucketElement:
			if err := c.bucket(p, e, nested); err != nil {
				return err
			}
		}
	}
	return nil
}

// bucket checks a bucket: its header, and its tree, or the page after the header of a
// small bucket.
func (c *checker) bucket(p page, e *element, nested int) error {
	if e.valueSize < bucketHeader {
		return damaged("page %d has a bucket without a header", p.id)
	}
	header, err := c.bytes(e.valueAt, bucketHeader)
	if err != nil {
		return err
	}
	if root := order.Uint64(header); root != 0 {
		_, err := c.tree(root, place{nested: nested + 1})
		return err
	}
	size := e.valueSize - bucketHeader
	if size < headerSize || size > c.pageSize {
		return damaged("page %d has a bucket of %d bytes in it", p.id, size)
	}
	body, err := c.bytes(e.valueAt+bucketHeader, size)
	if err != nil {
		return err
	}
	small := headerOf(body)
	if small.id != 0 || small.flags != leafPage || small.overflow != 0 {
		return damaged("page %d has a bucket in it whose own page has an unknown form", p.id)
	}
	small.at, small.extent, small.head = e.valueAt+bucketHeader, size, body
	elements, err := c.elements(small)
	if err != nil {
		return damaged("page %d has a bucket in it that is damaged: %v", p.id, err)
	}
	for i := range elements {
		if elements[i].flags != 0 || i > 0 && bytes.Compare(elements[i-1].key, elements[i].key) >= 0 {
			return damaged("page %d has a bucket in it whose elements are not in order", p.id)
		}
	}
	return nil
}
