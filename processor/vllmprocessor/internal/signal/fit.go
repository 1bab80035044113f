package signal

import (
	"math"
)

// fit learns how a time depends on the load: as a sum of a constant and of non-negative
// multiples of some numbers, from one observation per window. It is a ridge regression
// towards a guess, the share of each number in the time. The guess holds until observations
// differ from it; a server whose load never changes cannot refute it.
//
// The physics of a step is linear (weights are read once, the KV cache of each sequence
// once, each computed token costs the same), so the line is continued beyond the observed
// loads.
type fit struct {
	// Shares are the guess for each number. The constant has the remainder.
	Shares []float64 `json:"-"`

	// N is the number of observations, of which older ones count less. XX, XY and YY are
	// the sums of the products of (1, numbers...) and the time.
	N  float64     `json:"n"`
	XX [][]float64 `json:"xx"`
	XY []float64   `json:"xy"`
	YY float64     `json:"yy"`

	coefficients []float64
	// covariance is theirs. Both are kept until the next observation.
	covariance matrix
}

const (
	// memory is how many windows a fit remembers, roughly.
	memory = 240
	// guessNoise is the relative error of one window that the guess is weighed by.
	guessNoise = 0.05
	// guessWidth is how far a share may be from its guess, as a standard deviation.
	guessWidth = 0.2
	// unbelievable is a bound for times and numbers of tokens.
	unbelievable = 1e30
)

func newFit(shares ...float64) fit {
	k := len(shares) + 1
	f := fit{Shares: shares, XX: make([][]float64, k), XY: make([]float64, k)}
	for i := range f.XX {
		f.XX[i] = make([]float64, k)
	}
	return f
}

// sound reports whether a stored fit has the right shape.
func (f *fit) sound() bool {
	k := len(f.Shares) + 1
	if len(f.XX) != k || len(f.XY) != k || !(f.N >= 0) || !Known(f.YY) {
		return false
	}
	for i := range f.XX {
		if len(f.XX[i]) != k || !Known(f.XY[i]) {
			return false
		}
		for _, x := range f.XX[i] {
			if !Known(x) {
				return false
			}
		}
	}
	return true
}

// learn adds one observation. Unknown numbers are left out, and so are numbers whose
// squares are infinite: the sums would stay infinite or NaN for ever.
func (f *fit) learn(y float64, xs ...float64) {
	if !(y > 0 && y < unbelievable) {
		return
	}
	row := append([]float64{1}, xs...)
	for _, x := range row {
		if !(math.Abs(x) < unbelievable) {
			return
		}
	}
	const keep = 1 - 1.0/memory
	f.N = f.N*keep + 1
	f.YY = f.YY*keep + y*y
	for i := range row {
		f.XY[i] = f.XY[i]*keep + row[i]*y
		for j := range row {
			f.XX[i][j] = f.XX[i][j]*keep + row[i]*row[j]
		}
	}
	f.coefficients = nil
}

// Ready reports whether there are enough observations to expect something. Each counts a
// little less than the one after it, so that leastWindows of them are a little less.
func (f *fit) Ready() bool {
	const tooFew = leastWindows - 1
	return f.N > tooFew
}

// solved returns the coefficients, the constant first; nil before the first observation.
func (f *fit) solved() []float64 {
	if f.N == 0 {
		return nil
	}
	if f.coefficients == nil {
		f.solve()
	}
	return f.coefficients
}

// Deviation is the standard deviation of the logarithm of a time from window to window,
// about what its load explains.
func (f *fit) Deviation() float64 {
	if f.N == 0 {
		return priorDeviation
	}
	f.solved()
	residual := f.residual() / f.Mean()
	return math.Sqrt((priorDeviation*priorDeviation*deviationWindows + residual*residual*f.N) / (deviationWindows + f.N))
}

// priorDeviation is what the deviation is taken for before anything is known, and
// deviationWindows for how many windows that counts.
const (
	priorDeviation   = 0.05
	deviationWindows = 5
)

// Expect returns the expected time for the numbers; NaN before the first observation.
func (f *fit) Expect(xs ...float64) (y float64) {
	c := f.solved()
	if c == nil {
		return math.NaN()
	}
	y = c[0]
	for i, x := range xs {
		y += c[i+1] * x
	}
	return y
}

// Uncertainty is the standard deviation of the logarithm of an expected time that comes from the
// coefficients: the farther the numbers are from those learned, the less is known. It is the predictive deviation of
// Bayesian linear regression (Bishop, Pattern Recognition and Machine Learning, 3.3.2).
func (f *fit) Uncertainty(xs ...float64) float64 {
	y := f.Expect(xs...)
	if !(y > 0) {
		return math.NaN()
	}
	variance := f.covariance[0][0]
	for i, x := range xs {
		variance += 2 * x * f.covariance[0][i+1]
		for j, other := range xs {
			variance += x * other * f.covariance[i+1][j+1]
		}
	}
	return math.Hypot(math.Sqrt(max(variance, 0))/y, notLinear*math.Log(y/f.Mean()))
}

// notLinear is the error of a line per distance from the learned mean.
const notLinear = 0.05

// Part returns the contribution of one number to the expected time.
func (f *fit) Part(i int, x float64) float64 {
	if f.coefficients == nil {
		f.solve()
	}
	return f.coefficients[i+1] * x
}

// Mean is the mean of the learned times.
func (f *fit) Mean() float64 { return f.XY[0] / f.N }

// row and matrix have room for the unknowns of every fit, of which there are at most four.
type (
	row    [4]float64
	matrix [4]row
)

// solve finds the coefficients: non-negative, with the least squares of the errors and of
// the distances from the guess.
func (f *fit) solve() {
	k := len(f.XY)
	f.coefficients = make([]float64, k)
	mean := f.Mean()
	rest := 1.0
	var guess, width row
	for i, share := range f.Shares {
		x := f.XX[0][i+1] / f.N
		if x > 0 {
			guess[i+1], width[i+1] = share*mean/x, guessWidth*mean/x
			rest -= share
		}
	}
	guess[0], width[0] = rest*mean, guessWidth*mean
	var free [4]bool
	for i := range k {
		free[i] = width[i] > 0
	}
	precision, _ := f.normal(&guess, &width, &free)
	for column := range k {
		// A column of the inverse of the precision.
		var unit row
		unit[column] = 1
		f.covariance[column] = eliminate(precision, unit, k)
	}
	for range k {
		a, b := f.normal(&guess, &width, &free)
		x := eliminate(a, b, k)
		copy(f.coefficients, x[:k])
		negative := 0
		for i := 1; i < k; i++ {
			if free[i] && f.coefficients[i] < 0 && (negative == 0 || f.coefficients[i]*f.XX[0][i] < f.coefficients[negative]*f.XX[0][negative]) {
				negative = i
			}
		}
		if negative == 0 {
			break
		}
		free[negative] = false
	}
	f.coefficients[0] = max(f.coefficients[0], 0)
}

// normal returns the system of the coefficients that are free; the others are 0, as exactly as if they were
// known.
func (f *fit) normal(guess, width *row, free *[4]bool) (a matrix, b row) {
	noise := guessNoise * f.Mean()
	for i := range f.XY {
		if !free[i] {
			a[i][i] = 1e12 / (noise * noise)
			continue
		}
		for j := range f.XY {
			if free[j] {
				a[i][j] = f.XX[i][j] / (noise * noise)
			}
		}
		weight := 1 / (width[i] * width[i])
		a[i][i] += weight
		b[i] = f.XY[i]/(noise*noise) + weight*guess[i]
	}
	return a, b
}

func (f *fit) residual() float64 {
	total := f.YY
	for i, c := range f.coefficients {
		total -= 2 * c * f.XY[i]
		for j, d := range f.coefficients {
			total += c * d * f.XX[i][j]
		}
	}
	return math.Sqrt(max(total, 0) / f.N)
}

// eliminate solves a symmetric positive definite system by Gauss's elimination
// with pivots. The systems have at most four unknowns, which is too few for a
// library.
func eliminate(a matrix, b row, k int) (x row) {
	for i := range k {
		pivot := i
		for j := i + 1; j < k; j++ {
			if math.Abs(a[j][i]) > math.Abs(a[pivot][i]) {
				pivot = j
			}
		}
		a[i], a[pivot], b[i], b[pivot] = a[pivot], a[i], b[pivot], b[i]
		if a[i][i] == 0 {
			continue
		}
		for j := i + 1; j < k; j++ {
			factor := a[j][i] / a[i][i]
			for n := i; n < k; n++ {
				a[j][n] -= factor * a[i][n]
			}
			b[j] -= factor * b[i]
		}
	}
	for i := k - 1; i >= 0; i-- {
		if a[i][i] == 0 {
			continue
		}
		x[i] = b[i]
		for j := i + 1; j < k; j++ {
			x[i] -= a[i][j] * x[j]
		}
		x[i] /= a[i][i]
	}
	return x
}
