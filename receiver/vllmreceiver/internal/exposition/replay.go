package exposition

import "bytes"

// This file is the fast path: a body that looks like the last one costs a
// comparison and a number per line. Everything here is an optimisation. Replay
// accepts only what the parsers would have read the same way, and what it does
// not accept goes to them.

const (
	// lookAhead is how many blocks that vanished from one body to the next are
	// stepped over by trying their successors.
	lookAhead = 8
	// lookFurther is how far behind the expected block one that was found by its
	// content is searched in the last sequence.
	lookFurther = 256
)

// walk cuts a body into pieces: blocks that replay knows, with their numbers in
// r.matched, and blocks for the parsers, whose lines are in r.parsing.
func (r *Reader) walk(body []byte, d Dialect) {
	r.matched = r.matched[:0]
	var expected []*block
	if last := r.recent[0]; last != nil && last.dialect == d {
		expected = last.blocks
	}
	next := 0
	for pos := 0; pos < len(body); {
		begin := len(r.matched)
		end, at := r.expect(body, pos, expected, next)
		if at >= 0 {
			r.pieces = append(r.pieces, piece{block: expected[at], begin: pos, end: end, from: begin, to: len(r.matched)})
			next, pos = at+1, end
			continue
		}
		var known *block
		known, end = r.parse(body, pos, d)
		if known != nil {
			for i := next; i < min(next+lookFurther, len(expected)); i++ {
				if expected[i] == known {
					next = i + 1
					break
				}
			}
		} else if r.parsing.tooBad() {
			return
		}
		pos = end
	}
}

// expect tries the blocks that came here in the last body. It returns the end of
// the one that matched and its index, or -1.
func (r *Reader) expect(body []byte, pos int, expected []*block, next int) (end, at int) {
	for i := next; i < min(next+lookAhead, len(expected)); i++ {
		if end := r.match(expected[i], body, pos); end >= 0 {
			return end, i
		}
	}
	return 0, -1
}

// parse takes the block at pos, which was not expected, and adds its piece:
// another target may have shown the same block, else the parsers get it. It
// returns the block in the former case, and its end.
func (r *Reader) parse(body []byte, pos int, d Dialect) (*block, int) {
	if r.parsing == nil {
		r.parsing = parsingPool.Get().(*parsing)
	}
	p := r.parsing
	from, end := len(p.raws), 0
	p.raws, end = scanBlock(p.raws, body, pos, d, r.memory.lineLimits())
	if r.memory != nil && steady(p.raws[from:]) {
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
	values, from := r.matched, 0
	for i, to := range b.cuts {
		constant := b.text[from:to]
		at := pos + len(constant)
		if at > len(body) || !bytes.Equal(body[pos:at], constant) {
			if i == 0 {
				return -1
			}
			if at = afterTimestamp(body, pos, constant, b.dialect); at < 0 {
				return -1
			}
		}
		value, n := number(body[at:])
		if n == 0 {
			return -1
		}
		values = append(values, value)
		pos, from = at+n, to
	}
	rest := b.text[from:]
	end := pos + len(rest)
	if end > len(body) || !bytes.Equal(body[pos:end], rest) {
		if len(b.cuts) == 0 {
			return -1
		}
		if end = afterTimestamp(body, pos, rest, b.dialect); end < 0 {
			return -1
		}
	}
	// A block from a body that was cut short ends within a line.
	if end < len(body) && (end == 0 || body[end-1] != '\n') {
		return -1
	}
	r.matched = values
	return end
}

// maxTimestampDigits keeps a timestamp within an int64, whatever its digits.
const maxTimestampDigits = 18

// afterTimestamp skips a timestamp at pos and compares what follows with the
// constant. It returns the end of the constant in the body, or -1. It knows the
// usual form of timestamps only; others are the parsers' business.
func afterTimestamp(body []byte, pos int, constant []byte, d Dialect) int {
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
	end := pos + len(constant)
	if end > len(body) || !bytes.Equal(body[pos:end], constant) {
		return -1
	}
	return end
}
