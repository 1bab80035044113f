package observed

// The bounds at which the model keeps its histograms. Each is a superset of
// the buckets of every vLLM version.
var (
	latencyBounds = []float64{
		0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680,
	}
	firstTokenBounds = []float64{
		0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10,
		20, 40, 80, 160, 640, 2560,
	}
	tokenTimeBounds = []float64{
		0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80,
	}
	tokenBounds = []float64{
		1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000, 100000, 131072,
	}
	residencyBounds = []float64{
		0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800,
	}
	smallBounds      = []float64{1, 2, 3, 4, 5, 10, 20}
	iterationBounds  = iterationUnion()
	httpFineBounds   = []float64{0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5, 7.5, 10, 30, 60}
	httpCoarseBounds = []float64{0.1, 0.5, 1}
)

// iterationUnion joins the CUDA graph capture sizes, which were the bounds up
// to v0.8.4, with the powers of two used since.
func iterationUnion() []float64 {
	bounds := []float64{1, 2, 4}
	for size := 8; size <= 256; size += 8 {
		bounds = append(bounds, float64(size))
	}
	for size := 512; size <= 16384; size *= 2 {
		bounds = append(bounds, float64(size))
	}
	return bounds
}
