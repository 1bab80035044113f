package engine

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// Point is a measured time at X, and at Y where there are two arguments.
type Point struct{ X, Y, Seconds float64 }

// Parts are measured times of the parts of a step. X is the number of tokens of the step for
// Products and AllReduce, and the number of sampled tokens for Head; Decode has the number
// of sequences and their mean context, Prefill the new tokens of a chunk and those before
// it. Points of equal arguments are averaged. AllReduce is empty on one GPU.
type Parts struct{ Products, Head, AllReduce, Decode, Prefill []Point }

// Tables are measured times of the parts of a step:
//
//	products(T) + head(S) + decode(D, c) + sum of prefill(n, p) over chunks + allreduce(T)
//
// Between neighbours it is linear in each argument, across gaps of more than a factor of two
// linear in the logarithms. Below the first point it is constant. Beyond the last one it
// grows in proportion: to the tokens, to the tokens in the cache of all sequences, and for
// prompts to the pairs of tokens that attention computes.
//
// Clock and bandwidth act like this:
//
//   - Products read the weights and compute, and the longer of the two counts. The time of
//     one token divided by the least time per token anywhere in the table is the number of
//     tokens from which on computing is longer. Up to there the time in the table is that of
//     reading, and computing takes its share of it; from there on the time in the table is
//     that of computing, and reading stays what it was. So the table is exact where both
//     factors are 1, and a step is never faster because a factor is smaller.
//   - The head and the attention of generating sequences read memory: bandwidth.
//   - The attention of prompts computes: clock.
//   - All-reduce depends on neither; only Shape.Exchange makes it longer.
type Tables struct {
	products, head, allReduce line
	decode, prefill           plane
	// turn is the number of tokens from which on products compute for longer than they read,
	// atTurn their time there.
	turn, atTurn float64
}

// NewTables returns an error that names the part that is missing or impossible.
func NewTables(p Parts) (*Tables, error) {
	t := &Tables{}
	var err error
	for _, l := range []struct {
		name   string
		into   *line
		points []Point
	}{{"gemm", &t.products, p.Products}, {"lm_head", &t.head, p.Head}, {"allreduce", &t.allReduce, p.AllReduce}} {
		if l.name == "allreduce" && len(l.points) == 0 {
			continue
		}
		if *l.into, err = newLine(l.points); err != nil {
			return nil, fmt.Errorf("%s: %w", l.name, err)
		}
	}
	decoding := func(d, c float64) float64 { return d * c }
	if t.decode, err = newPlane(p.Decode, decoding); err != nil {
		return nil, fmt.Errorf("decode_attention: %w", err)
	}
	if t.prefill, err = newPlane(p.Prefill, prefillWork); err != nil {
		return nil, fmt.Errorf("prefill_attention: %w", err)
	}
	least := math.Inf(1)
	for i, x := range t.products.x.at {
		least = min(least, t.products.v[i]/x)
	}
	t.turn = t.products.v[0] / least
	t.atTurn = t.products.value(t.turn)
	return t, nil
}

// prefillWork is proportional to the pairs of tokens that attention over a chunk computes.
func prefillWork(n, p float64) float64 { return n * (p + n/2) }

// seconds is the length of the step's measured parts.
func (t *Tables) seconds(b *Batch, s Shape) float64 {
	tokens := float64(b.Tokens)
	sum := t.head.value(float64(b.sampled())) / s.Bandwidth
	products := t.products.value(tokens)
	if s.Clock == 1 && s.Bandwidth == 1 {
		sum += products
	} else {
		sum += max(min(products, t.atTurn)/s.Bandwidth, products*min(1, tokens/t.turn)/s.Clock)
	}
	if b.Decodes > 0 {
		sum += t.decode.value(float64(b.Decodes), float64(b.DecodeKV)/float64(b.Decodes)) / s.Bandwidth
	}
	for _, c := range b.Chunks {
		sum += t.prefill.value(float64(c.Tokens), float64(c.Before)) / s.Clock
	}
	if len(t.allReduce.v) > 0 {
		sum += t.allReduce.value(tokens) * (1 + s.Exchange)
	}
	return sum
}

// work is what a step does at full speed, in seconds of one GPU: how long it computes, reads
// memory, and exchanges data with other GPUs.
func (t *Tables) work(b *Batch) stepWork {
	tokens := float64(b.Tokens)
	products := t.products.value(tokens)
	w := stepWork{computing: products * min(1, tokens/t.turn), reading: min(products, t.atTurn) + t.head.value(float64(b.sampled()))}
	if b.Decodes > 0 {
		w.reading += t.decode.value(float64(b.Decodes), float64(b.DecodeKV)/float64(b.Decodes))
	}
	for _, c := range b.Chunks {
		w.computing += t.prefill.value(float64(c.Tokens), float64(c.Before))
	}
	if len(t.allReduce.v) > 0 {
		w.exchanging = t.allReduce.value(tokens)
	}
	return w
}

// axis is a list of arguments in ascending order, with an index by powers of two.
type axis struct {
	at []float64
	// from is, by power of two, the last argument that is not greater.
	from []int32
}

func newAxis(at []float64) axis {
	a := axis{at: at}
	i := int32(0)
	for power := 1.0; power <= at[len(at)-1]; power *= 2 {
		for int(i)+1 < len(at) && at[i+1] <= power {
			i++
		}
		a.from = append(a.from, i)
	}
	return a
}

// find returns the last argument that is not greater than x, and how far x is from it to the
// next one, 0 to 1. x is not below the first argument; from the last one on the share is 0.
func (a *axis) find(x float64) (i int, share float64) {
	last := len(a.at) - 1
	if x >= a.at[last] {
		return last, 0
	}
	if x <= a.at[0] {
		return 0, 0
	}
	if power := int(math.Float64bits(x)>>52) - 1023; power >= 0 {
		i = int(a.from[power])
	}
	for a.at[i+1] <= x {
		i++
	}
	return i, (x - a.at[i]) / (a.at[i+1] - a.at[i])
}

// line is a function of one argument.
type line struct {
	x axis
	v []float64
}

func newLine(points []Point) (line, error) {
	points, err := checked(points)
	if err != nil {
		return line{}, err
	}
	var x, v []float64
	for _, p := range points {
		if n := len(x); n > 0 && p.X == x[n-1] {
			return line{}, fmt.Errorf("a second argument, %v, where there is only one", p.Y)
		}
		x, v = append(x, p.X), append(v, p.Seconds)
	}
	x, v = closeGaps(x, v)
	return line{newAxis(x), v}, nil
}

func (l *line) value(x float64) float64 {
	i, share := l.x.find(x)
	if share == 0 {
		if last := l.x.at[i]; x > last {
			return l.v[i] * x / last
		}
		return l.v[i]
	}
	return l.v[i] + share*(l.v[i+1]-l.v[i])
}

// plane is a function of two arguments.
type plane struct {
	x, y axis
	v    []float64 // Row by row.
	work func(x, y float64) float64
}

// mostCells bounds the memory of a plane.
const mostCells = 1 << 20

func newPlane(points []Point, work func(x, y float64) float64) (plane, error) {
	points, err := checked(points)
	if err != nil {
		return plane{}, err
	}
	var xs, ys []float64
	for _, p := range points {
		ys = append(ys, p.Y)
		if n := len(xs); n == 0 || p.X != xs[n-1] {
			xs = append(xs, p.X)
		}
	}
	slices.Sort(ys)
	ys, _ = closeGaps(slices.Compact(ys), nil)
	wide, _ := closeGaps(xs, nil)
	if cells := len(wide) * len(ys); cells > mostCells {
		return plane{}, fmt.Errorf("a grid of %d by %d arguments is too large: at most %d cells", len(wide), len(ys), mostCells)
	}
	// Each row at all columns, then each column at all rows.
	rows := make([][]float64, 0, len(xs))
	for len(points) > 0 {
		n := 1
		for n < len(points) && points[n].X == points[0].X {
			n++
		}
		rows = append(rows, wholeRow(points[:n], ys, work))
		points = points[n:]
	}
	p := plane{x: newAxis(wide), y: newAxis(ys), work: work, v: make([]float64, len(wide)*len(ys))}
	column := make([]float64, len(xs))
	for j := range ys {
		for i := range rows {
			column[i] = rows[i][j]
		}
		_, filled := closeGaps(xs, column)
		for i, v := range filled {
			p.v[i*len(ys)+j] = v
		}
	}
	return p, nil
}

// wholeRow returns the values of a row at all columns.
func wholeRow(points []Point, columns []float64, work func(x, y float64) float64) []float64 {
	var y, v []float64
	for _, p := range points {
		y, v = append(y, p.Y), append(v, p.Seconds)
	}
	last := points[len(points)-1]
	y, v = closeGaps(y, v)
	own := line{newAxis(y), v}
	out := make([]float64, len(columns))
	for j, at := range columns {
		if out[j] = own.value(min(at, last.Y)); at > last.Y {
			out[j] *= grown(work, last.X, last.Y, last.X, at)
		}
	}
	return out
}

// grown is by what a time grows from one pair of arguments to another beyond the table.
func grown(work func(x, y float64) float64, x, y, toX, toY float64) float64 {
	if before := work(x, y); before > 0 {
		return work(toX, toY) / before
	}
	return 1
}

func (p *plane) value(x, y float64) float64 {
	i, right := p.x.find(x)
	j, down := p.y.find(y)
	n := len(p.y.at)
	at := i*n + j
	v := p.v[at]
	if down > 0 {
		v += down * (p.v[at+1] - v)
	}
	if right > 0 {
		next := p.v[at+n]
		if down > 0 {
			next += down * (p.v[at+n+1] - next)
		}
		v += right * (next - v)
	}
	lastX, lastY := p.x.at[len(p.x.at)-1], p.y.at[n-1]
	if x > lastX || y > lastY {
		v *= grown(p.work, min(x, lastX), max(p.y.at[0], min(y, lastY)), x, max(p.y.at[0], y))
	}
	return v
}

// checked sorts points, averages equal ones, and refuses impossible ones.
func checked(points []Point) ([]Point, error) {
	if len(points) == 0 {
		return nil, errors.New("no measurement")
	}
	points = slices.Clone(points)
	for _, p := range points {
		if !(p.X > 0 && p.Y >= 0 && p.Seconds > 0) || p.X+p.Y+p.Seconds > 1e15 {
			return nil, fmt.Errorf("%v s at %v and %v: want finite numbers above 0", p.Seconds, p.X, p.Y)
		}
		// The quotient of two arguments or times must not be infinite.
		if least := 1e-15; p.X < least || p.Seconds < least || (p.Y > 0 && p.Y < least) {
			return nil, fmt.Errorf("%v s at %v and %v: want numbers of at least %v", p.Seconds, p.X, p.Y, least)
		}
	}
	slices.SortFunc(points, func(a, b Point) int {
		switch {
		case a.X < b.X, a.X == b.X && a.Y < b.Y:
			return -1
		case a.X > b.X, a.X == b.X && a.Y > b.Y:
			return 1
		}
		return 0
	})
	kept, count := points[:0], 0.0
	for _, p := range points {
		if n := len(kept); n > 0 && kept[n-1].X == p.X && kept[n-1].Y == p.Y {
			count++
			kept[n-1].Seconds += (p.Seconds - kept[n-1].Seconds) / count
			continue
		}
		kept, count = append(kept, p), 1
	}
	return kept, nil
}

const (
	// wideGap is the quotient of neighbours above which interpolation is in logarithms, and
	// fine the quotient of the points that are put between them then.
	wideGap = 2
	fine    = 1.25
)

// closeGaps puts points into wide gaps of x, so that what is linear between the points is
// nearly linear in logarithms between the former ones. v may be nil.
func closeGaps(x, v []float64) (wideX, wideV []float64) {
	for i := range x {
		if i > 0 && x[i-1] > 0 && x[i]/x[i-1] > wideGap {
			quotient := x[i] / x[i-1]
			for parts, k := math.Ceil(math.Log(quotient)/math.Log(fine)), 1.0; k < parts; k++ {
				wideX = append(wideX, x[i-1]*math.Pow(quotient, k/parts))
				if v != nil {
					wideV = append(wideV, v[i-1]*math.Pow(v[i]/v[i-1], k/parts))
				}
			}
		}
		wideX = append(wideX, x[i])
		if v != nil {
			wideV = append(wideV, v[i])
		}
	}
	return wideX, wideV
}
