package engine

// Model is what a step costs for one model on one kind of hardware. All values
// are per GPU where the model is spread over several (tensor parallelism).
//
// With Tables the length of a step is the sum of its measured parts and of what the host
// takes. Without, it is a formula in the shape of the roofline: a step reads the weights
// once and the KV cache of all sequences, and computes so many operations per token;
// reading the weights and computing overlap, so the longer of the two counts. Its
// efficiencies are guesses.
type Model struct {
	Name string
	// WeightBytes are read in every step; FlopsPerToken are spent on every
	// computed token.
	WeightBytes, FlopsPerToken float64
	// KVBytes is the size of one token in the KV cache.
	KVBytes float64
	// Layers and Width (hidden size) make the cost of attention.
	Layers, Width float64
	// GPUs is the number of GPUs that share each layer.
	GPUs float64
	// Tables are the measured parts of a step. With them the rates and efficiencies below and
	// TokenSeconds have no effect, and the sizes above count for vLLM's estimates only.
	Tables *Tables
	// StepSeconds, SequenceSeconds and KVTokenSeconds are spent by the host per step, per
	// sequence in it, and per token that its generating sequences have in the KV cache;
	// TokenSeconds is communication between GPUs per token.
	StepSeconds, SequenceSeconds, KVTokenSeconds, TokenSeconds float64
	// Bandwidth (B/s) and Compute (FLOP/s) are peak rates of one GPU.
	Bandwidth, Compute float64
	// The shares of the peak rates that are reached: reading weights, reading
	// the KV cache, matrix products, attention.
	WeightEfficiency, KVEfficiency, ComputeEfficiency, AttentionEfficiency float64
	// Blocks is the number of KV blocks of 16 tokens that fit next to the weights
	// at vLLM's default share of the memory.
	Blocks int
	// MaxSeqs and MaxBatchedTokens are vLLM's defaults for the GPU; 0 are those of an H100.
	MaxSeqs, MaxBatchedTokens int
	// Note is a sentence about what had to be assumed.
	Note string
}

// h100Bandwidth is the maker's peak rate of an H100 SXM, in bytes per second.
const h100Bandwidth = 3.35e12

// Shape is by how much hardware and host differ from their nominal state.
type Shape struct {
	// Clock and Bandwidth multiply the rates of computing and of reading memory.
	Clock, Bandwidth float64
	// Host is added to every step, in seconds.
	Host float64
	// Exchange is by what share exchanging data between GPUs takes longer; 0 is nominal.
	Exchange float64
}

// Nominal is hardware as it should be.
func Nominal() Shape { return Shape{Clock: 1, Bandwidth: 1} }

// StepTime returns the length of a step in seconds.
func (m Model) StepTime(b Batch, s Shape) float64 {
	host := m.StepSeconds + s.Host + m.SequenceSeconds*float64(b.Seqs) + m.KVTokenSeconds*float64(b.DecodeKV)
	if m.Tables != nil {
		return host + m.Tables.seconds(&b, s)
	}
	read := m.Bandwidth * s.Bandwidth
	compute := m.Compute * s.Clock
	weights := m.WeightBytes / (m.WeightEfficiency * read)
	products := m.FlopsPerToken * float64(b.Tokens) / (m.ComputeEfficiency * compute)
	return host + max(weights, products) +
		m.KVBytes*float64(b.KVTokens)/(m.KVEfficiency*read) +
		m.attentionFlops(b)/(m.AttentionEfficiency*compute) +
		m.TokenSeconds*float64(b.Tokens)*(1+s.Exchange)
}

// work is what a step does at full speed, in seconds of one GPU.
func (m *Model) work(b *Batch) stepWork {
	if m.Tables != nil {
		return m.Tables.work(b)
	}
	return stepWork{
		computing:  m.FlopsPerToken*float64(b.Tokens)/(m.ComputeEfficiency*m.Compute) + m.attentionFlops(*b)/(m.AttentionEfficiency*m.Compute),
		reading:    m.WeightBytes/(m.WeightEfficiency*m.Bandwidth) + m.KVBytes*float64(b.KVTokens)/(m.KVEfficiency*m.Bandwidth),
		exchanging: m.TokenSeconds * float64(b.Tokens),
	}
}

// attentionFlops returns the operations of one GPU for attention over prompt chunks. For
// single tokens the time is that of reading the cache, see KVTokens.
func (m Model) attentionFlops(b Batch) float64 {
	return 4 * m.Layers * m.Width * b.Attention / m.GPUs
}

// flops, read and written are what vLLM's estimates count per step and GPU.
func (m Model) flops(b Batch) float64 {
	return m.FlopsPerToken*float64(b.Tokens) + m.attentionFlops(b)
}
func (m Model) read(b Batch) float64    { return m.WeightBytes + m.KVBytes*float64(b.KVTokens) }
func (m Model) written(b Batch) float64 { return m.KVBytes * float64(b.Tokens) }
