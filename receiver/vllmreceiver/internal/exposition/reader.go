package exposition

import (
	"bytes"
	"slices"
)

const (
	// maxBadLines is how many lines of one body may be bad before the rest is dropped.
	maxBadLines = 10_000
	// maxLines is how many lines of a body are read. A body within the default limit of 8
	// MiB exceeds it only if its lines have less than 64 bytes on average. Real lines are
	// twice as long.
	maxLines = 1 << 17
)

// Reader reads the bodies of one target. It is not safe for concurrent use.
type Reader struct {
	memory *Memory
	// recent are the last layouts, the newest first. They keep alive what the shared memory
	// holds only weakly. There are several, for a load balancer whose bodies alternate:
	// with the newest alone, a scrape of two bodies in turns takes 6 times the processor time.
	recent [3]*assembled
	// held is the hash of the current layout if it is a large one, of which the
	// memory has a bounded number.
	held  uint64
	holds bool
	// refused is true if there was no room for the last body.
	refused bool
	// work is the memory of the current body; nil between two bodies.
	*work
}

// work is the memory that one body needs while it is read and used. The targets of a receiver
// share a few, because they are scraped one after the other: with a work of its own, one of
// 200 replicas keeps 24 kB instead of 5 kB, and its scrapes are not faster.
type work struct {
	// pieces are the blocks of the current body in order, blocks the same once all
	// are known, and parsing what could not be replayed, or nil.
	pieces  []piece
	blocks  []*block
	parsing *parsing
	// values are the current body's numbers, and matched those that replay found.
	values, matched []float64
	snapshot        Snapshot
}

// piece is one block of the current body.
type piece struct {
	// block is nil as long as the piece waits for the parser.
	block      *block
	begin, end int
	// from and to are the piece's numbers among the matched ones, or its lines
	// among the parsed ones.
	from, to int
	parsed   bool
}

// NewReader returns a Reader that remembers layouts in m, which any number of
// readers share.
func NewReader(m *Memory) *Reader { return &Reader{memory: m} }

// Read reads one body. It never fails: lines that cannot be read are reported as problems,
// and all others are returned. The Snapshot and its slices are valid until Done or the next
// Read; its Layout is immutable and may be kept. The result does not refer to body.
func (r *Reader) Read(body []byte, d Dialect) *Snapshot {
	if r.work == nil {
		r.work = r.memory.borrow()
	}
	s := &r.snapshot
	*s = Snapshot{Problems: s.Problems[:0], Exemplars: s.Exemplars[:0]}
	readable := limitLines(body)
	if cost := estimate(readable); cost > smallCost && !r.memory.pool.fits(cost, r.refused) {
		return r.refuse()
	}
	r.walk(readable, d)
	complete := true
	if r.parsing == nil {
		// Every block was known, so all numbers are there, in order.
		r.values, r.matched = r.matched, r.values
		r.blocks = r.blocks[:0]
		for i := range r.pieces {
			r.blocks = append(r.blocks, r.pieces[i].block)
		}
	} else {
		complete = r.merge(readable, d)
	}
	current := r.layout(d)
	if current == nil {
		r.freeScratch()
		return r.refuse()
	}
	r.refused = false
	s.Layout, s.Values = &current.layout, r.values
	s.Duplicates = current.duplicates
	s.Samples = len(r.values) - len(current.misfits)
	if len(current.misfits) > 0 {
		r.reportMisfits(current.misfits)
	}
	switch {
	case !complete:
	case len(readable) < len(body):
		s.Problems = append(s.Problems, Problem{Line: maxLines + 1, Reason: ReasonTooManyLines})
	case d == DialectOpenMetrics && !endsWithEOF(body):
		s.Problems = append(s.Problems, Problem{Line: max(1, countLines(body)), Reason: ReasonMissingEOF})
	}
	r.freeScratch()
	return s
}

// Done returns the memory of the last Snapshot, which must not be used any more.
func (r *Reader) Done() {
	if r.work != nil {
		r.memory.giveBack(r.work)
		r.work = nil
	}
}

// limitLines returns the first maxLines lines of a body.
func limitLines(body []byte) []byte {
	if len(body) <= maxLines {
		return body
	}
	end := 0
	for range maxLines {
		i := bytes.IndexByte(body[end:], '\n')
		if i < 0 {
			return body
		}
		end += i + 1
	}
	return body[:end]
}

func countLines(body []byte) int {
	n := bytes.Count(body, []byte{'\n'})
	if len(body) > 0 && body[len(body)-1] != '\n' {
		n++
	}
	return n
}

// merge brings the numbers of known and parsed blocks into the body's order, makes the
// parsed blocks, and reports their bad lines. It returns false if there were so many that
// it dropped the rest of the body.
func (r *Reader) merge(body []byte, d Dialect) bool {
	r.parsing.text.flush(body, r.parsing.raws)
	r.values, r.blocks = r.values[:0], r.blocks[:0]
	s, line := &r.snapshot, 0
	for i := range r.pieces {
		p := &r.pieces[i]
		if !p.parsed {
			r.values = append(r.values, r.matched[p.from:p.to]...)
			r.blocks = append(r.blocks, p.block)
			line += p.block.lines
			continue
		}
		raws := r.parsing.raws[p.from:p.to]
		complete := true
		for j := range raws {
			raw := &raws[j]
			switch {
			case raw.reason != ReasonNone && len(s.Problems) == maxBadLines:
				s.Problems = append(s.Problems, Problem{Line: line + j + 1, Reason: ReasonTooManyBadLines})
				complete, p.to, p.end = false, p.from+j, raw.start
			case raw.reason != ReasonNone:
				s.Problems = append(s.Problems, Problem{Line: line + j + 1, Reason: raw.reason})
			case raw.kind == lineSample:
				if raw.exemplar != nil {
					raw.exemplar.Slot = len(r.values)
					s.Exemplars = append(s.Exemplars, *raw.exemplar)
				}
				r.values = append(r.values, raw.value)
			}
			if !complete {
				break
			}
		}
		p.block = r.memory.share(newBlock(r.memory.seed, r.parsing.raws[p.from:p.to], body, p.begin, p.end, d))
		r.blocks = append(r.blocks, p.block)
		if !complete {
			return false
		}
		line += len(raws)
	}
	return true
}

// layout returns the layout of the current blocks: the one of an earlier body where their
// sequence is the same. It returns nil if there is no room for it.
func (r *Reader) layout(d Dialect) *assembled {
	if r.holds && r.memory.pool.displaced(r.held) {
		r.Release()
	}
	for i, known := range r.recent {
		if known != nil && known.isOf(r.blocks, d) {
			copy(r.recent[1:i+1], r.recent[:i])
			r.recent[0] = known
			return known
		}
	}
	cost := costOf(r.blocks)
	if r.holds || cost > smallCost {
		// A large layout is kept alone. Drop the one before it first.
		r.Release()
	}
	if cost > smallCost {
		hash := r.memory.sequence(r.blocks, d)
		if !r.memory.pool.hold(hash, cost) {
			return nil
		}
		r.held, r.holds = hash, true
	}
	current := r.memory.layout(r.blocks, d)
	copy(r.recent[1:], r.recent[:])
	r.recent[0] = current
	return current
}

// refuse drops a body for which there is no room, and the layouts of earlier bodies.
func (r *Reader) refuse() *Snapshot {
	r.Release()
	r.refused = true
	r.snapshot = Snapshot{Layout: &Layout{}, Refused: true}
	return &r.snapshot
}

// Release frees the layouts that the reader keeps alive, for a target that is no longer
// read.
func (r *Reader) Release() {
	clear(r.recent[:])
	if r.holds {
		r.memory.pool.release(r.held)
		r.holds = false
	}
}

// reportMisfits adds the samples without a place in the layout to the problems,
// in the order of the lines.
func (r *Reader) reportMisfits(misfits []misfit) {
	s, slot, line := &r.snapshot, 0, 0
	for i, b := range r.blocks {
		p := &r.pieces[i]
		for len(misfits) > 0 && misfits[0].slot < slot+len(b.samples) {
			at := r.lineOf(p, misfits[0].slot-slot)
			s.Problems = append(s.Problems, Problem{Line: line + at + 1, Reason: misfits[0].reason})
			misfits = misfits[1:]
		}
		slot += len(b.samples)
		if p.parsed {
			line += p.to - p.from
		} else {
			line += b.lines
		}
	}
	slices.SortStableFunc(s.Problems, func(a, b Problem) int { return a.Line - b.Line })
}

// lineOf returns the line within its piece of the n-th good sample. A parsed
// piece may have bad lines, which its block does not know.
func (r *Reader) lineOf(p *piece, n int) int {
	if !p.parsed {
		return int(p.block.samples[n].line)
	}
	for i := range r.parsing.raws[p.from:p.to] {
		if raw := &r.parsing.raws[p.from+i]; raw.kind == lineSample && raw.reason == ReasonNone {
			if n == 0 {
				return i
			}
			n--
		}
	}
	return 0
}

// spare is the capacity up to which a slice is kept for the next body.
const spare = 1 << 12

// freeScratch ends the work on a body, and frees what an unusually large one needed.
func (r *Reader) freeScratch() {
	if r.parsing != nil {
		r.parsing.release()
		r.parsing = nil
	}
	clear(r.blocks)
	clear(r.pieces)
	r.blocks, r.pieces = r.blocks[:0], r.pieces[:0]
	if n := 4*len(r.values) + spare; cap(r.pieces) > n || cap(r.matched) > n {
		r.pieces, r.blocks, r.matched = nil, nil, nil
	}
}
