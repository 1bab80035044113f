package exposition

import (
	"hash/maphash"
	"slices"
)

// This file is the fast path: a body that looks like the last one costs a comparison and a
// number per line. All of it is an optimisation. Replay accepts only lines that the parsers
// would read in the same way, and passes all others to them.

// lookAhead is how many blocks after the expected one are searched for a block that
// was found by its content.
const lookAhead = 256

// walk cuts a body into pieces: blocks that replay knows, with their numbers in
// r.matched, and blocks for the parsers, whose lines are in r.parsing.
func (r *Reader) walk(body []byte, d Dialect) {
	r.matched = r.matched[:0]
	var expected []*block
	if last := r.recent[0]; last != nil && last.dialect == d {
		expected = last.blocks
	}
	// missed is how much was hashed in vain: without a bound a large block would be hashed again at each
	// of many small ones. Then blocks are found by their content.
	next, missed := 0, 0
	for pos := 0; pos < len(body); {
		if next < len(expected) && missed <= len(body) {
			begin := len(r.matched)
			if end := r.match(expected[next], body, pos); end >= 0 {
				r.pieces = append(r.pieces, piece{block: expected[next], begin: pos, end: end, from: begin, to: len(r.matched)})
				next, pos = next+1, end
				continue
			}
			missed += expected[next].size
		}
		known, end := r.parse(body, pos, d)
		pos = end
		if known == nil {
			if r.parsing.tooBad() {
				return
			}
			continue
		}
		// Blocks before it vanished, or changed. The ones after it are expected now.
		if i := slices.Index(expected[next:min(next+lookAhead, len(expected))], known); i >= 0 {
			next += i + 1
		}
	}
}

// parse reads the block at pos, which was not the expected one, and appends its
// piece. A block that the memory has, from this target or another, is replayed and
// returned with its end. The lines of any other go to the parsers.
func (r *Reader) parse(body []byte, pos int, d Dialect) (*block, int) {
	if r.parsing == nil {
		r.parsing = parsingPool.Get().(*parsing)
	}
	p := r.parsing
	from, end := len(p.raws), 0
	p.raws, end = scanBlock(p.raws, body, pos, d)
	if replayable(p.raws[from:]) {
		begin := len(r.matched)
		for _, known := range r.memory.find(sumOf(r.memory.seed, p.raws[from:], body, pos, end, d)) {
			if known.dialect == d && r.match(known, body, pos) == end {
				p.raws = p.raws[:from]
				r.pieces = append(r.pieces, piece{block: known, begin: pos, end: end, from: begin, to: len(r.matched)})
				return known, end
			}
			r.matched = r.matched[:begin]
		}
	}
	p.lex(body, from, d)
	r.pieces = append(r.pieces, piece{begin: pos, end: end, from: from, to: len(p.raws), parsed: true})
	return nil, end
}

// match compares the body at pos with a block. Where they agree it adds the
// numbers to r.matched and returns the block's end in the body, else -1.
func (r *Reader) match(b *block, body []byte, pos int) int {
	values, seed := r.matched, r.memory.seed
	for i, c := range b.constants {
		at := pos + c.size
		if at > len(body) || maphash.Bytes(seed, body[pos:at]) != c.hash {
			if i == 0 {
				return -1
			}
			if at = afterTimestamp(seed, body, pos, c, b.dialect); at < 0 {
				return -1
			}
		}
		pos = at
		if i == len(b.constants)-1 {
			break
		}
		value, n := number(body[at:])
		if n == 0 {
			return -1
		}
		values = append(values, value)
		pos += n
	}
	// A block from a body that was cut short ends within a line.
	if pos < len(body) && (pos == 0 || body[pos-1] != '\n') {
		return -1
	}
	r.matched = values
	return pos
}

// maxTimestampDigits is how many digits always fit an int64.
const maxTimestampDigits = 18

// afterTimestamp skips a timestamp at pos and compares what follows with the
// constant. It returns the end of the constant in the body, or -1. It knows only
// the usual form of timestamps; blocks with others go to the parsers.
func afterTimestamp(seed maphash.Seed, body []byte, pos int, c constant, d Dialect) int {
	if pos == len(body) || body[pos] != ' ' {
		return -1
	}
	pos++
	first := pos
	for pos < len(body) && body[pos]-'0' <= 9 {
		pos++
	}
	if pos == first || pos-first > maxTimestampDigits {
		return -1
	}
	if d == DialectOpenMetrics && pos < len(body) && body[pos] == '.' {
		pos++
		for pos < len(body) && body[pos]-'0' <= 9 {
			pos++
		}
	}
	end := pos + c.size
	if end > len(body) || maphash.Bytes(seed, body[pos:end]) != c.hash {
		return -1
	}
	return end
}
