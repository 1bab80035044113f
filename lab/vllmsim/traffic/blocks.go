package traffic

import "math"

// blockSize finds the number of tokens of a block from prompts and their numbers of blocks.
// Files differ in whether the last, partly filled block has a number: a prompt of 100 tokens
// in blocks of 64 has two blocks or one. One way must fit all rows.
type blockSize struct {
	// ceil are the sizes that fit if the last block counts, floor those if it does not.
	ceil, floor sizes
	// rows is the number of prompts with blocks.
	rows int
}

// sizes are all from least to most.
type sizes struct{ least, most int }

func newBlockSize() blockSize {
	all := sizes{1, math.MaxInt}
	return blockSize{ceil: all, floor: all}
}

// add takes one prompt and reports whether a size is left.
func (b *blockSize) add(prompt, blocks int) bool {
	// ceil(prompt/size) = blocks, which no size does for 0.
	if blocks == 0 {
		b.ceil.most = 0
	} else {
		b.ceil.least = max(b.ceil.least, (prompt+blocks-1)/blocks)
		if blocks > 1 {
			b.ceil.most = min(b.ceil.most, (prompt-1)/(blocks-1))
		}
	}
	// floor(prompt/size) = blocks.
	b.floor.least = max(b.floor.least, prompt/(blocks+1)+1)
	if blocks > 0 {
		b.floor.most = min(b.floor.most, prompt/blocks)
		b.rows++
	}
	return b.ceil.any() || b.floor.any()
}

func (s sizes) any() bool { return s.least <= s.most }

// result returns the size, 0 if no prompt had blocks. Where several fit, it is the power of
// two among them if there is one: that is how engines choose it.
func (b *blockSize) result() int {
	if b.rows == 0 {
		return 0
	}
	left := b.ceil
	if !left.any() {
		left = b.floor
	}
	for size := 1; size > 0 && size <= left.most; size *= 2 {
		if size >= left.least {
			return size
		}
	}
	return left.least
}
