package boltfile

import "encoding/binary"

// order is the byte order of the machine: bbolt writes numbers as they are in memory.
var order = binary.NativeEndian

const (
	headerSize   = 16
	elementSize  = 16
	bucketHeader = 16
)

// The kinds of a page, as its flags.
const (
	branchPage   = 0x01
	leafPage     = 0x02
	freelistPage = 0x10
)

// bucketElement are the flags of an element that is a bucket.
const bucketElement = 1

// page is the header of a page, and its position.
type page struct {
	id           uint64
	flags, count uint16
	overflow     uint32
	// at is the offset of the page in the file, and extent its size, including the
	// following pages that belong to it. head is the part that has been read.
	at, extent uint64
	head       []byte
}

func headerOf(b []byte) page {
	return page{id: order.Uint64(b), flags: order.Uint16(b[8:]), count: order.Uint16(b[10:]), overflow: order.Uint32(b[12:])}
}

// page reads a page of a tree. Each page may have only one place in the trees.
func (c *checker) page(id uint64) (page, error) {
	p, err := c.anyPage(id)
	if err == nil && p.flags != branchPage && p.flags != leafPage {
		return p, damaged("page %d is not of a kind that belongs there", id)
	}
	return p, err
}

func (c *checker) anyPage(id uint64) (page, error) {
	if id < 2 || id >= c.pages {
		return page{}, damaged("there is no page %d", id)
	}
	head, err := c.bytes(id*c.pageSize, c.pageSize)
	if err != nil {
		return page{}, err
	}
	p := headerOf(head)
	switch {
	case p.id == 0 && p.flags == 0 && p.count == 0:
		return p, damaged("page %d is empty", id)
	case p.id != id:
		return p, damaged("page %d says that it is another page", id)
	case uint64(p.overflow) >= c.pages-id:
		return p, damaged("page %d goes beyond the end of the file", id)
	}
	p.at, p.extent, p.head = id*c.pageSize, (uint64(p.overflow)+1)*c.pageSize, head
	for i := range uint64(p.overflow) + 1 {
		if !c.seen.add(id + i) {
			return p, damaged("page %d is in two places", id+i)
		}
	}
	return p, nil
}

// within reads a part of a page, at an offset from its beginning.
func (c *checker) within(p page, offset, n uint64) ([]byte, error) {
	if offset+n <= uint64(len(p.head)) {
		return p.head[offset : offset+n], nil
	}
	return c.bytes(p.at+offset, n)
}

// element is an element of a leaf, with a value, or of a branch, with a page below it.
type element struct {
	key   []byte
	flags uint32
	// valueAt is the offset of the value in the file.
	valueAt, valueSize uint64
	child              uint64
}

// elements reads the elements of a page. They are without gaps, in the order of their
// table.
func (c *checker) elements(p page) ([]element, error) {
	next := headerSize + uint64(p.count)*elementSize
	if next > p.extent {
		return nil, damaged("page %d has more elements than room", p.id)
	}
	table, err := c.within(p, headerSize, next-headerSize)
	if err != nil {
		return nil, err
	}
	elements := make([]element, p.count)
	for i := range elements {
		at := uint64(i) * elementSize
		b := table[at:]
		e := &elements[i]
		var position, keySize uint32
		if p.flags == branchPage {
			position, keySize, e.child = order.Uint32(b), order.Uint32(b[4:]), order.Uint64(b[8:])
		} else {
			e.flags, position, keySize, e.valueSize = order.Uint32(b), order.Uint32(b[4:]), order.Uint32(b[8:]), uint64(order.Uint32(b[12:]))
		}
		end := next + uint64(keySize) + e.valueSize
		if headerSize+at+uint64(position) != next || keySize == 0 || keySize > maxKeySize || end > p.extent {
			return nil, damaged("element %d of page %d is not where it belongs", i, p.id)
		}
		if e.key, err = c.within(p, next, uint64(keySize)); err != nil {
			return nil, err
		}
		e.valueAt = p.at + next + uint64(keySize)
		next = end
	}
	return elements, nil
}

// freelist checks the list of free pages, if the file has one. No tree may have a page of
// this list.
func (c *checker) freelist(id uint64) error {
	if id == noFreelist {
		return nil
	}
	p, err := c.anyPage(id)
	if err != nil {
		return err
	}
	if p.flags != freelistPage {
		return damaged("page %d should be the list of free pages and is not", id)
	}
	begin, count := uint64(headerSize), uint64(p.count)
	if p.count == 1<<16-1 {
		// The number did not fit into the header and is before the list.
		b, err := c.within(p, headerSize, 8)
		if err != nil {
			return err
		}
		begin, count = headerSize+8, order.Uint64(b)
	}
	if count > (p.extent-begin)/8 {
		return damaged("the list of free pages is longer than its room")
	}
	const chunk = 8 << 10
	for last, done := uint64(0), uint64(0); done < count; {
		n := min(chunk, count-done)
		b, err := c.bytes(p.at+begin+done*8, n*8)
		if err != nil {
			return err
		}
		for i := range n {
			free := order.Uint64(b[i*8:])
			if free <= max(last, 1) || free >= c.pages || c.seen.has(free) {
				return damaged("the list of free pages has a page %d that is not free", free)
			}
			last = free
		}
		done += n
	}
	return nil
}

// pageSet is a set of pages. It uses memory only for the parts that are used.
type pageSet map[uint64]*[512]uint64

func (s pageSet) slot(id uint64) (part, word, bit uint64) {
	return id >> 15, id >> 6 & 511, 1 << (id & 63)
}

// add returns false if the page is already in the set.
func (s pageSet) add(id uint64) bool {
	part, word, bit := s.slot(id)
	words := s[part]
	if words == nil {
		words = new([512]uint64)
		s[part] = words
	}
	if words[word]&bit != 0 {
		return false
	}
	words[word] |= bit
	return true
}

func (s pageSet) has(id uint64) bool {
	part, word, bit := s.slot(id)
	words := s[part]
	return words != nil && words[word]&bit != 0
}
