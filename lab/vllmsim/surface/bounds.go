package surface

import "slices"

// The buckets of vLLM's histograms over the versions; +Inf is added on writing.
var (
	longLatency  = []float64{0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680}
	midLatency   = longLatency[:15]
	firstLatency = []float64{1, 2.5, 5, 10, 15, 20, 30, 40, 50, 60}
	firstToken   = []float64{
		0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10,
		20, 40, 80, 160, 640, 2560,
	}
	tokenTime   = []float64{0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80}
	batchTokens = []float64{1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384}
	sequences   = []float64{1, 2, 5, 10, 20}
	preemptions = []float64{1, 2, 3, 4, 5, 10, 20}
	tokenCounts = []float64{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000, 100000}
	residency   = []float64{0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800}
	highr       = []float64{0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5, 7.5, 10, 30, 60}
	byHandler   = []float64{0.1, 0.5, 1}
)

func latencyBounds(s *Server) []float64 {
	switch {
	case s.Version.before("0.6.4"):
		return firstLatency
	case s.Version.before("0.8.4"):
		return midLatency
	default:
		return longLatency
	}
}

func firstTokenBounds(s *Server) []float64 {
	if s.Version.before("0.8.4") {
		return firstToken[:16]
	}
	return firstToken
}

func tokenTimeBounds(s *Server) []float64 {
	if s.Version.before("0.8.4") {
		return tokenTime[:13]
	}
	return tokenTime
}

func iterationBounds(s *Server) []float64 {
	if !s.Version.before("0.8.5") {
		return batchTokens
	}
	// The sizes for which CUDA graphs are captured.
	bounds := []float64{1, 2, 4}
	for size := 8; size <= 256; size += 8 {
		bounds = append(bounds, float64(size))
	}
	return bounds
}

func tokenBounds(s *Server) []float64 {
	if s.Dialect == Rust {
		// The Rust front end does not ask for the model's length.
		return append(slices.Clone(tokenCounts), 131072)
	}
	n := 0
	for n < len(tokenCounts) && tokenCounts[n] <= float64(s.MaxModelLen) {
		n++
	}
	return tokenCounts[:n]
}

func sequenceBounds(*Server) []float64   { return sequences }
func residencyBounds(*Server) []float64  { return residency }
func preemptionBounds(*Server) []float64 { return preemptions }
