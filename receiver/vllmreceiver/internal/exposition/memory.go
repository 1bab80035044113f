package exposition

import (
	"hash/maphash"
	"slices"
	"sync"
	"weak"
)

// Memory remembers the blocks and layouts of a receiver's bodies, so that targets
// whose bodies look alike share them. It holds them weakly: what no Reader uses
// any more is freed. It is safe for concurrent use.
//
// docs/why/performance.md says what it and the pools below bring; BenchmarkMemories compares its levels.
type Memory struct {
	seed maphash.Seed
	max  int
	// works is the memory of bodies that are being read.
	works sync.Pool

	pool pool

	mu       sync.Mutex
	blocks   index[block]
	layouts  index[assembled]
	overflow int
}

// NewMemory returns a Memory that holds at most maxBlocks blocks and as many layouts. A
// block or layout that does not fit is not shared, but its Reader still remembers it.
func NewMemory(maxBlocks int) *Memory {
	return &Memory{seed: maphash.MakeSeed(), max: maxBlocks}
}

// borrow returns memory for one body.
func (m *Memory) borrow() *work {
	if w, is := m.works.Get().(*work); is {
		return w
	}
	return &work{}
}

// maxKept is how many numbers a body may have had whose memory is used again.
const maxKept = 1 << 16

// giveBack takes memory back that borrow has returned.
func (m *Memory) giveBack(w *work) {
	// It must keep no layout alive.
	clear(w.snapshot.Exemplars)
	w.snapshot.Layout = nil
	if cap(w.values) <= maxKept && cap(w.matched) <= maxKept {
		m.works.Put(w)
	}
}

// SetPool limits the memory of all large layouts together, in bytes.
func (m *Memory) SetPool(size int) { m.pool.size = size }

// Stats returns how many blocks and layouts are remembered, and how often one
// could not be because the memory was full.
func (m *Memory) Stats() (blocks, layouts, overflow int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.blocks.sweep()
	m.layouts.sweep()
	return m.blocks.size, m.layouts.size, m.overflow
}

// find returns the remembered blocks with a hash.
func (m *Memory) find(hash uint64) []*block {
	m.mu.Lock()
	defer m.mu.Unlock()
	var found []*block
	for _, p := range m.blocks.byHash[hash] {
		if b := p.Value(); b != nil {
			found = append(found, b)
		}
	}
	return found
}

// share remembers a block. It returns the one to use: the equal one that is remembered
// already, if there is one.
func (m *Memory) share(b *block) *block {
	m.mu.Lock()
	defer m.mu.Unlock()
	if known := m.blocks.find(b.hash, b.equal); known != nil {
		return known
	}
	if !m.blocks.add(b.hash, b, m.max) {
		m.overflow++
	}
	return b
}

// layout returns the layout of a sequence of blocks. It assembles one if none is
// remembered.
func (m *Memory) layout(blocks []*block, d Dialect) *assembled {
	hash := m.sequence(blocks, d)
	same := func(a *assembled) bool { return a.isOf(blocks, d) }
	m.mu.Lock()
	known := m.layouts.find(hash, same)
	m.mu.Unlock()
	if known != nil {
		return known
	}
	// Assembling takes longer than others should wait for the lock.
	made := assemble(blocks, d)
	m.mu.Lock()
	defer m.mu.Unlock()
	if known := m.layouts.find(hash, same); known != nil {
		return known
	}
	if !m.layouts.add(hash, made, m.max) {
		m.overflow++
	}
	return made
}

// isOf reports whether this is the layout of these blocks.
func (a *assembled) isOf(blocks []*block, d Dialect) bool {
	return a.dialect == d && slices.EqualFunc(a.blocks, blocks, (*block).equal)
}

// sequence hashes a sequence of blocks.
func (m *Memory) sequence(blocks []*block, d Dialect) uint64 {
	var h maphash.Hash
	h.SetSeed(m.seed)
	_ = h.WriteByte(byte(d))
	for _, b := range blocks {
		maphash.WriteComparable(&h, b.hash)
	}
	return h.Sum64()
}

// index finds values by hash without keeping them alive.
type index[T any] struct {
	byHash map[uint64][]weak.Pointer[T]
	// size counts the entries. Dead ones are included until the next sweep, which runs
	// when size reaches limit.
	size, limit int
}

// find returns the value with a hash for which is is true; nil without one.
func (x *index[T]) find(hash uint64, is func(*T) bool) *T {
	for _, p := range x.byHash[hash] {
		if value := p.Value(); value != nil && is(value) {
			return value
		}
	}
	return nil
}

// add adds a value, unless the limit is reached. Dead entries are removed when their number
// may have doubled, so that adding stays cheap.
func (x *index[T]) add(hash uint64, value *T, most int) bool {
	if x.byHash == nil {
		x.byHash = map[uint64][]weak.Pointer[T]{}
	}
	if x.size >= x.limit {
		x.sweep()
		x.limit = 2*x.size + 64
	}
	if x.size >= most {
		return false
	}
	x.byHash[hash] = append(x.byHash[hash], weak.Make(value))
	x.size++
	return true
}

func (x *index[T]) sweep() {
	x.size = 0
	for hash, entries := range x.byHash {
		entries = slices.DeleteFunc(entries, func(p weak.Pointer[T]) bool { return p.Value() == nil })
		if len(entries) == 0 {
			delete(x.byHash, hash)
			continue
		}
		x.byHash[hash] = entries
		x.size += len(entries)
	}
}
