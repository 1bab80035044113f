package exposition

import (
	"bytes"
	"hash/maphash"
	"slices"
)

// block is a run of lines, mostly one family's comments and samples, without its
// numbers and timestamps. It never changes once it is made and is shared by all
// readers of one Memory.
type block struct {
	dialect Dialect
	// text is everything but the numbers, and cuts are the positions in it from which the
	// numbers were removed.
	text []byte
	cuts []int
	hash uint64

	metas   []meta
	samples []sample
	// lines is the number of lines.
	lines int
}

func (b *block) equal(o *block) bool {
	return b == o || b.hash == o.hash && b.dialect == o.dialect &&
		slices.Equal(b.cuts, o.cuts) && bytes.Equal(b.text, o.text)
}

// maxBlockLines bounds a block, so that a body without structure is not one block.
const maxBlockLines = 1024

// scanBlock finds the family block that begins at pos, appends its lines to raws,
// and returns them with the block's end. A block ends before the first HELP, TYPE
// or UNIT line that follows a sample or that names another metric than the
// block's, or where it becomes too long. Where blocks end never changes what a
// body means: lines are read one by one, and families are put together over the
// whole body.
func scanBlock(raws []rawLine, body []byte, pos int, d Dialect) ([]rawLine, int) {
	var metric []byte
	samples, limit := false, len(raws)+maxBlockLines
	for pos < len(body) && len(raws) < limit {
		end, next := lineAt(body, pos)
		line := body[pos:end]
		raw := rawLine{start: pos, end: end}
		raw.kind, raw.name = classify(line, d)
		switch raw.kind {
		case lineHelp, lineType, lineUnit:
			name := line[raw.name:max(raw.name, min(scanName(line, raw.name), len(line)))]
			if samples || metric != nil && !bytes.Equal(name, metric) {
				return raws, pos
			}
			metric = name
			raw.name += pos
			raw.reason = tooLong(len(name), braces{})
		case lineSample:
			samples = true
			scanSample(body, &raw, d)
		}
		raws = append(raws, raw)
		pos = next
	}
	return raws, pos
}

// replayable reports whether a block may be remembered: all its lines are good, and the
// bytes before each number determine its place.
func replayable(raws []rawLine) bool {
	for i := range raws {
		if raws[i].reason != ReasonNone || raws[i].loose || raws[i].exemplar != nil {
			return false
		}
	}
	return true
}

// newBlock makes a block of the good lines. If the block is replayable, its text is the
// body's own from begin to end; else the text is that of the good lines alone, so that the
// block, and with it the layout, is the same from scrape to scrape even though it has to be
// read each time.
func newBlock(seed maphash.Seed, raws []rawLine, body []byte, begin, end int, d Dialect) *block {
	b := &block{dialect: d, lines: len(raws)}
	metas, samples := 0, 0
	for i := range raws {
		switch raws[i].kind {
		case lineHelp, lineType, lineUnit:
			metas++
		case lineSample:
			samples++
		}
	}
	b.metas, b.samples = make([]meta, 0, metas), make([]sample, 0, samples)
	b.text, b.cuts = make([]byte, 0, end-begin), make([]int, 0, samples)
	plain := !replayable(raws)
	from := begin
	for i := range raws {
		raw := &raws[i]
		if raw.reason != ReasonNone {
			continue
		}
		switch raw.kind {
		case lineHelp, lineType, lineUnit:
			b.metas = append(b.metas, raw.meta)
			if plain {
				b.text = append(append(b.text, body[raw.start:raw.end]...), '\n')
			}
		case lineSample:
			raw.sample.line = int32(i)
			if plain {
				raw.sample.line = int32(len(b.metas) + len(b.samples))
				from = raw.start
			}
			b.samples = append(b.samples, raw.sample)
			b.text = append(b.text, body[from:raw.number]...)
			if raw.loose {
				b.text = append(b.text, ' ')
			}
			b.cuts = append(b.cuts, len(b.text))
			from = raw.hole
			if plain {
				b.text = append(b.text, '\n')
			}
		}
	}
	if plain {
		b.lines = len(b.metas) + len(b.samples)
	} else {
		b.text = append(b.text, body[from:end]...)
	}
	b.hash = b.sum(seed)
	return b
}

// sum hashes the text together with its cuts.
func (b *block) sum(seed maphash.Seed) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	_ = h.WriteByte(byte(b.dialect))
	from := 0
	for _, to := range b.cuts {
		_, _ = h.Write(b.text[from:to])
		_ = h.WriteByte(0)
		from = to
	}
	_, _ = h.Write(b.text[from:])
	return h.Sum64()
}

// sumOf returns the hash of a block of these lines, without making it.
func sumOf(seed maphash.Seed, raws []rawLine, body []byte, begin, end int, d Dialect) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	_ = h.WriteByte(byte(d))
	for i := range raws {
		if raw := &raws[i]; raw.kind == lineSample {
			_, _ = h.Write(body[begin:raw.number])
			_ = h.WriteByte(0)
			begin = raw.hole
		}
	}
	_, _ = h.Write(body[begin:end])
	return h.Sum64()
}
