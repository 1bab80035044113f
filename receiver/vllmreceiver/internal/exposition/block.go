package exposition

import (
	"bytes"
	"hash/maphash"
	"slices"
)

// block is a run of lines, mostly one family's comments and samples, without its
// numbers and timestamps. It never changes once it is made and is shared by all
// readers of one Memory.
//
// It has the hashes of its text and not the text itself, which would be half of the memory of a
// target whose layout no other has. The seed is secret, so two different texts have the same hash only by
// accident, with a probability of 2^-64.
type block struct {
	dialect Dialect
	// constants is everything but the numbers: the texts before, between and after them.
	constants []constant
	// size is their length together.
	size int
	hash uint64

	metas []meta
	// samples are the lines with numbers. Each is of one of the series, which are in the order of the lines.
	samples []member
	series  []identity
	// lines is the number of lines.
	lines int
}

// member is a sample of a block, without what it shares with its neighbours.
type member struct {
	le string
	// series and line are less than maxBlockLines.
	series, line int16
}

// identity is what samples that follow each other have in common.
type identity struct {
	name, quantile string
	labels         []Label
}

// add adds a sample.
func (b *block) add(s *sample, line int) {
	last := len(b.series) - 1
	if last < 0 || b.series[last].name != s.name || b.series[last].quantile != s.quantile || !slices.Equal(b.series[last].labels, s.labels) {
		b.series = append(b.series, identity{s.name, s.quantile, s.labels})
		last++
	}
	b.samples = append(b.samples, member{s.le, int16(last), int16(line)})
}

// sample returns the n-th sample.
func (b *block) sample(n int) sample {
	of := &b.series[b.samples[n].series]
	return sample{name: of.name, labels: of.labels, le: b.samples[n].le, quantile: of.quantile}
}

// constant is a text between two numbers of a block.
type constant struct {
	hash uint64
	size int
}

func (b *block) equal(o *block) bool {
	return b == o || b.hash == o.hash && b.dialect == o.dialect && slices.Equal(b.constants, o.constants)
}

func constantOf(seed maphash.Seed, text []byte) constant {
	return constant{maphash.Bytes(seed, text), len(text)}
}

// sum hashes constants together.
func sum(seed maphash.Seed, all []constant, d Dialect) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	maphash.WriteComparable(&h, d)
	for _, c := range all {
		maphash.WriteComparable(&h, c)
	}
	return h.Sum64()
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

// newBlock makes a block of the good lines. If the block is replayable, its constants are those of the
// body from begin to end; else those of the good lines alone, so that the
// block, and with it the layout, is the same from scrape to scrape even though it has to be
// read each time.
func newBlock(seed maphash.Seed, raws []rawLine, body []byte, begin, end int, d Dialect) *block {
	b := &block{dialect: d, lines: len(raws)}
	plain := !replayable(raws)
	var text []byte // since the last number
	for i := range raws {
		raw := &raws[i]
		if raw.reason != ReasonNone {
			continue
		}
		switch raw.kind {
		case lineHelp, lineType, lineUnit:
			b.metas = append(b.metas, raw.meta)
			if plain {
				text = append(append(text, body[raw.start:raw.end]...), '\n')
			}
		case lineSample:
			if plain {
				i, begin = len(b.metas)+len(b.samples), raw.start
			}
			b.add(&raw.sample, i)
			text = append(text, body[begin:raw.number]...)
			if raw.loose {
				text = append(text, ' ')
			}
			b.constants = append(b.constants, constantOf(seed, text))
			text, begin = text[:0], raw.hole
			if plain {
				text = append(text, '\n')
			}
		}
	}
	if plain {
		b.lines = len(b.metas) + len(b.samples)
	} else {
		text = append(text, body[begin:end]...)
	}
	b.constants = append(b.constants, constantOf(seed, text))
	b.metas, b.samples, b.series, b.constants = slices.Clone(b.metas), slices.Clone(b.samples), slices.Clone(b.series), slices.Clone(b.constants)
	for _, c := range b.constants {
		b.size += c.size
	}
	b.hash = sum(seed, b.constants, d)
	return b
}

// sumOf returns the hash of a block of these lines, all of which are good, without making it.
func sumOf(seed maphash.Seed, raws []rawLine, body []byte, begin, end int, d Dialect) uint64 {
	var all []constant
	for i := range raws {
		if raw := &raws[i]; raw.kind == lineSample {
			all = append(all, constantOf(seed, body[begin:raw.number]))
			begin = raw.hole
		}
	}
	return sum(seed, append(all, constantOf(seed, body[begin:end])), d)
}
