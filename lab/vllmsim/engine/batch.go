package engine

// Batch is the work of one step.
type Batch struct {
	// Seqs is the number of sequences, Tokens the number of tokens computed.
	Seqs, Tokens int
	// Decodes are the sequences that generate, and DecodeKV the tokens that these have in
	// the KV cache together.
	Decodes, DecodeKV int
	// Chunks are the pieces of prompts.
	Chunks []Chunk
	// KVTokens is how many tokens are read from the KV cache, for chunks as well.
	KVTokens int
	// Attention is the sum over prompt chunks of their length times the mean
	// number of tokens that each of theirs looks back on.
	Attention float64

	chunkTokens int
}

// Chunk is a piece of a prompt: Tokens new ones, after Before others.
type Chunk struct{ Tokens, Before int }

// AddDecode adds a sequence that generates: the tokens computed for it, which are more than
// one with speculation, and what it has in the KV cache.
func (b *Batch) AddDecode(tokens, context int) {
	b.Seqs++
	b.Tokens += tokens
	b.Decodes++
	b.DecodeKV += context
	b.KVTokens += context
}

// AddChunk adds a piece of a prompt: its tokens, and how many are in the KV cache before it.
func (b *Batch) AddChunk(tokens, before int) {
	b.Seqs++
	b.Tokens += tokens
	b.chunkTokens += tokens
	b.Chunks = append(b.Chunks, Chunk{tokens, before})
	b.KVTokens += before
	b.Attention += float64(tokens) * (float64(before) + float64(tokens)/2)
}

// sampled is the number of tokens for which the model computes what comes next.
func (b *Batch) sampled() int { return b.Tokens - b.chunkTokens + len(b.Chunks) }

// reset makes the batch empty and keeps its memory.
func (b *Batch) reset() { *b = Batch{Chunks: b.Chunks[:0]} }
