package engine

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// measured is a small table with round numbers.
func measured() Parts {
	return Parts{
		Products:  []Point{{1, 0, 5e-3}, {128, 0, 6e-3}, {256, 0, 7e-3}, {512, 0, 10e-3}, {1024, 0, 20e-3}, {8192, 0, 160e-3}},
		Head:      []Point{{1, 0, 0.4e-3}, {256, 0, 0.5e-3}, {512, 0, 0.7e-3}},
		AllReduce: []Point{{1, 0, 1e-3}, {8192, 0, 100e-3}},
		Decode:    []Point{{1, 100, 0.4e-3}, {1, 200, 0.6e-3}, {2, 100, 0.8e-3}, {2, 200, 1.0e-3}, {4, 100, 1.6e-3}},
		Prefill:   []Point{{100, 0, 0.5e-3}, {200, 0, 1e-3}, {100, 1000, 1.5e-3}, {200, 1000, 3e-3}, {400, 0, 3e-3}},
	}
}

func tables(t *testing.T, p Parts) *Tables {
	t.Helper()
	out, err := NewTables(p)
	require.NoError(t, err)
	return out
}

func TestAStepIsTheSumOfItsMeasuredParts(t *testing.T) {
	m := Model{Tables: tables(t, measured()), StepSeconds: 0.8e-3, KVTokenSeconds: 1e-6}
	var b Batch
	b.AddDecode(1, 150)
	b.AddDecode(1, 150)
	b.AddChunk(100, 500)
	b.AddChunk(154, 0)
	// 256 tokens, 4 of which are sampled; two sequences of 150 tokens; chunks half way
	// between 0 and 1000 tokens before, and between 100 and 200 new ones.
	want := 7e-3 + (0.4e-3 + 0.1e-3*3/255) + 0.9e-3 + 1.0e-3 + 0.77e-3 + 0.8e-3 + 300*1e-6
	// All-reduce from 1 to 8192 tokens is a wide gap: 1 ms x 100^(log 256 / log 8192).
	want += 1e-3 * math.Pow(100, math.Log(256)/math.Log(8192))
	assert.InEpsilon(t, want, m.StepTime(b, Nominal()), 0.005)
}

func TestTablesBetweenAndBeyondTheirPoints(t *testing.T) {
	x := tables(t, measured())
	for _, c := range []struct {
		name      string
		got, want float64
	}{
		{"at a point", x.products.value(256), 7e-3},
		{"between neighbours", x.products.value(192), 6.5e-3},
		{"below the first", x.decode.value(1, 10), 0.4e-3},
		{"beyond the last: in proportion to tokens", x.products.value(16384), 320e-3},
		{"across a wide gap in logarithms", x.products.value(2896.309), 56.57e-3},
		{"both arguments between neighbours", x.decode.value(1.5, 150), 0.7e-3},
		{"more context than measured", x.decode.value(2, 400), 2e-3},
		{"more sequences than measured", x.decode.value(8, 100), 3.2e-3},
		// 4 sequences were measured at 100 tokens only: 200 take twice as long.
		{"a row that ends earlier", x.decode.value(4, 200), 3.2e-3},
		{"a row that ends earlier, half way to it", x.decode.value(3, 200), 2.1e-3},
		// 100 x (2000 + 50) against 100 x (1000 + 50) pairs.
		{"a longer prompt before the chunk", x.prefill.value(100, 2000), 1.5e-3 * 2050 / 1050},
		// 400 x (1000 + 200) against 400 x 200 pairs.
		{"a chunk measured without a prompt before it", x.prefill.value(400, 1000), 3e-3 * 6},
	} {
		assert.InEpsilon(t, c.want, c.got, 1e-3, c.name)
	}
}

// Up to the number of tokens that the time of one token would compute, here 256 = 5 ms
// over 10 s / 512, products wait for memory, and beyond for the processors.
func TestClockAndBandwidthActOnWhatDependsOnThem(t *testing.T) {
	x := tables(t, measured())
	ratio := func(b Batch, s Shape) float64 { return x.seconds(&b, s) / x.seconds(&b, Nominal()) }
	products := func(tokens int) Batch { return Batch{Tokens: tokens} }
	p := measured()
	p.AllReduce = nil
	for i := range p.Head {
		p.Head[i].Seconds = 1e-12
	}
	x = tables(t, p)
	assert.InDelta(t, 256, x.turn, 1e-9)
	slowMemory, slowClock := Shape{Clock: 1, Bandwidth: 0.5}, Shape{Clock: 0.5, Bandwidth: 1}
	assert.InEpsilon(t, 2, ratio(products(32), slowMemory), 1e-6)
	assert.InEpsilon(t, 1, ratio(products(32), slowClock), 1e-6, "computing 32 tokens takes an eighth of reading the weights")
	assert.InEpsilon(t, 1, ratio(products(4096), slowMemory), 1e-6)
	assert.InEpsilon(t, 2, ratio(products(4096), slowClock), 1e-6)
	var decode, prefill Batch
	decode.AddDecode(1, 100)
	prefill.AddChunk(100, 0)
	attention := func(b Batch, s Shape) float64 { return x.seconds(&b, s) - x.seconds(&Batch{Tokens: b.Tokens}, s) }
	assert.InEpsilon(t, 0.8e-3, attention(decode, slowMemory), 1e-3)
	assert.InEpsilon(t, 0.4e-3, attention(decode, slowClock), 1e-3)
	assert.InEpsilon(t, 0.5e-3, attention(prefill, slowMemory), 1e-3)
	assert.InEpsilon(t, 1e-3, attention(prefill, slowClock), 1e-3)
	p.AllReduce = []Point{{1, 0, 1}}
	with := tables(t, p)
	for _, s := range []Shape{slowMemory, slowClock} {
		assert.InDelta(t, 1, with.seconds(&Batch{Tokens: 1}, s)-x.seconds(&Batch{Tokens: 1}, s), 1e-9, "all-reduce")
	}
}

// A step is never faster because something is slower, and the factors 1 are the table.
func TestStepsAreMonotoneInClockAndBandwidth(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		noisy := measured()
		for _, points := range [][]Point{noisy.Products, noisy.Head, noisy.AllReduce, noisy.Decode, noisy.Prefill} {
			for i := range points {
				points[i].Seconds *= math.Exp(r.NormFloat64() / 4)
			}
		}
		x := tables(t, noisy)
		var b Batch
		for range r.IntN(300) {
			b.AddDecode(1, 1+r.IntN(5000))
		}
		for range r.IntN(4) {
			b.AddChunk(1+r.IntN(3000), r.IntN(5000))
		}
		b.Tokens = max(1, b.Tokens)
		last := 0.0
		for _, factor := range []float64{10, 2, 1.01, 1, 0.99, 0.5, 0.1, 0.01} {
			both := x.seconds(&b, Shape{Clock: factor, Bandwidth: factor})
			require.GreaterOrEqual(t, both, last)
			last = both
			if factor == 1 {
				want := x.products.value(float64(b.Tokens)) + x.head.value(float64(b.sampled())) + x.allReduce.value(float64(b.Tokens))
				if b.Decodes > 0 {
					want += x.decode.value(float64(b.Decodes), float64(b.DecodeKV)/float64(b.Decodes))
				}
				for _, c := range b.Chunks {
					want += x.prefill.value(float64(c.Tokens), float64(c.Before))
				}
				require.InEpsilon(t, want, both, 1e-12)
			}
		}
		for _, s := range []func(float64) Shape{
			func(f float64) Shape { return Shape{Clock: f, Bandwidth: 1} },
			func(f float64) Shape { return Shape{Clock: 1, Bandwidth: f} },
		} {
			slower := 0.0
			for f := 4.0; f > 0.01; f *= 0.8 {
				now := x.seconds(&b, s(f))
				require.GreaterOrEqual(t, now, slower*(1-1e-12))
				slower = now
			}
		}
	}
}

func TestImpossibleTablesAreRefused(t *testing.T) {
	for _, c := range []struct {
		spoil func(*Parts)
		want  string
	}{
		{func(p *Parts) { p.Products = nil }, "gemm: no measurement"},
		{func(p *Parts) { p.Decode = nil }, "decode_attention: no measurement"},
		{func(p *Parts) { p.Head[0].Seconds = math.NaN() }, "lm_head: NaN s at 1 and 0: want finite numbers above 0"},
		{func(p *Parts) { p.Prefill[0].Seconds = -1 }, "prefill_attention: -1 s at 100 and 0"},
		{func(p *Parts) { p.Products[0].X = 0 }, "gemm: 0.005 s at 0 and 0"},
		{func(p *Parts) { p.Products[0].X = math.Inf(1) }, "gemm: 0.005 s at +Inf and 0"},
		{func(p *Parts) { p.Products[0].X = 1e-310 }, "gemm: 0.005 s at 1e-310 and 0: want numbers of at least 1e-15"},
		{func(p *Parts) { p.Decode[0].Y = 1e-320 }, "decode_attention: 0.0004 s at 1 and 1e-320"},
		{func(p *Parts) { p.Head[0].Seconds = 1e-320 }, "lm_head: 1e-320 s at 1 and 0"},
		{func(p *Parts) { p.Head = append(p.Head, Point{1, 7, 1}) }, "lm_head: a second argument, 7"},
		{func(p *Parts) {
			for i := range 1200 {
				p.Decode = append(p.Decode, Point{float64(i + 10), float64(i), 1})
			}
		}, "decode_attention: a grid of 1"},
	} {
		p := measured()
		c.spoil(&p)
		_, err := NewTables(p)
		require.ErrorContains(t, err, c.want)
	}
	twice := measured()
	twice.Products = append(twice.Products, Point{256, 0, 9e-3}, Point{256, 0, 8e-3})
	assert.InEpsilon(t, 8e-3, tables(t, twice).products.value(256), 1e-9, "the mean of 7, 9 and 8 ms")
}
