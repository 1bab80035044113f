package traffic

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
)

// Statistics are what generated and published traffic are compared by. What a kind of traffic
// does not have is NaN.
type Statistics struct {
	Requests int
	// Rate is in requests per second.
	Rate float64
	// IDC1 and IDC60 are the indices of dispersion of the counts in seconds and in minutes:
	// variance over mean, 1 for a Poisson process. Within is the mean of IDC60 inside each ten
	// minutes, which leaves out the trend. PeakToMean compares the busiest minute with the
	// mean one, Lag is the correlation of each minute with the next.
	IDC1, IDC60, Within, PeakToMean, Lag float64
	Prompt, Output                       Quantiles
	// Correlation is that of the ranks of prompt and output length.
	Correlation float64
	// Reuse is the share of prompt tokens in blocks that were there before at the same place,
	// for a cache that never evicts.
	Reuse float64
	// Turns are those of a conversation, Think their pauses in seconds.
	Turns, Think Quantiles
}

// Quantiles are those of one quantity.
type Quantiles struct{ P50, P90, P99 float64 }

// Statistic is one of the numbers, under its name.
type Statistic struct {
	Name  string
	Value float64
}

// All are the statistics in an order for tables, always the same ones.
func (s *Statistics) All() []Statistic {
	return []Statistic{
		{"requests/s", s.Rate},
		{"IDC 1 s", s.IDC1},
		{"IDC 60 s", s.IDC60},
		{"the same, trend removed", s.Within},
		{"peak to mean, 60 s", s.PeakToMean},
		{"one minute with the next", s.Lag},
		{"prompt p50", s.Prompt.P50},
		{"prompt p90", s.Prompt.P90},
		{"prompt p99", s.Prompt.P99},
		{"output p50", s.Output.P50},
		{"output p90", s.Output.P90},
		{"output p99", s.Output.P99},
		{"prompt with output", s.Correlation},
		{"prefix reuse", s.Reuse},
		{"turns p50", s.Turns.P50},
		{"turns p90", s.Turns.P90},
		{"think p50, s", s.Think.P50},
		{"think p90, s", s.Think.P90},
		{"think p99, s", s.Think.P99},
	}
}

// Number writes a value for a table, with three digits.
func Number(v float64) string {
	if math.IsNaN(v) {
		return ""
	}
	if math.Abs(v) < 0.01 {
		return strconv.FormatFloat(math.Round(v*1000)/1000+0, 'f', -1, 64)
	}
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'e', 2, 64), 64)
	return strconv.FormatFloat(rounded, 'f', -1, 64)
}

// Measure measures traffic.
func Measure(t *engine.Traffic) Statistics {
	s := Statistics{Rate: math.NaN(), IDC1: math.NaN(), IDC60: math.NaN(), Within: math.NaN(), PeakToMean: math.NaN(), Lag: math.NaN()}
	var prompts, outputs, turns, think []float64
	for i := range t.Arrivals {
		prompts = append(prompts, float64(t.Arrivals[i].Prompt))
		outputs = append(outputs, float64(t.Arrivals[i].Output))
	}
	for i := range t.Conversations {
		all := t.Conversations[i].Turns
		turns = append(turns, float64(len(all)))
		for k := range all {
			prompts = append(prompts, float64(all[k].Prompt))
			outputs = append(outputs, float64(all[k].Output))
			if k > 0 {
				think = append(think, all[k].Think)
			}
		}
	}
	s.Requests = len(prompts)
	if len(t.Arrivals) > 0 {
		s.Rate = float64(len(t.Arrivals)) / t.Span
		minutes := counts(t, 60)
		s.IDC1, s.IDC60, s.Within = dispersion(counts(t, 1)), dispersion(minutes), within(minutes)
		if mean := meanOf(minutes); mean > 0 {
			s.PeakToMean = slices.Max(minutes) / mean
		}
		if len(minutes) > 1 {
			s.Lag = correlation(minutes[:len(minutes)-1], minutes[1:])
		}
	}
	s.Correlation = correlation(ranks(prompts), ranks(outputs))
	s.Reuse = reuse(t)
	s.Prompt, s.Output, s.Turns, s.Think = quantiles(prompts), quantiles(outputs), quantiles(turns), quantiles(think)
	return s
}

// counts are the requests in whole windows of so many seconds.
func counts(t *engine.Traffic, window float64) []float64 {
	all := make([]float64, int(t.Span/window))
	for i := range t.Arrivals {
		if n := int(t.Arrivals[i].At / window); n < len(all) {
			all[n]++
		}
	}
	return all
}

// dispersion is variance over mean.
func dispersion(all []float64) float64 {
	mean := meanOf(all)
	if len(all) < 2 || mean == 0 {
		return math.NaN()
	}
	sum := 0.0
	for _, v := range all {
		sum += (v - mean) * (v - mean)
	}
	return sum / float64(len(all)-1) / mean
}

// within is the mean dispersion inside each ten minutes that have a request.
func within(minutes []float64) float64 {
	sum, n := 0.0, 0.0
	for ten := range slices.Chunk(minutes, 10) {
		if d := dispersion(ten); len(ten) == 10 && !math.IsNaN(d) {
			sum, n = sum+d, n+1
		}
	}
	return sum / n
}

func meanOf(all []float64) float64 {
	sum := 0.0
	for _, v := range all {
		sum += v
	}
	return sum / float64(len(all))
}

func quantiles(all []float64) Quantiles {
	slices.Sort(all)
	return Quantiles{quantile(all, 0.5), quantile(all, 0.9), quantile(all, 0.99)}
}

// quantile is the value of the request at a share of sorted values.
func quantile(sorted []float64, share float64) float64 {
	if len(sorted) == 0 {
		return math.NaN()
	}
	return sorted[min(len(sorted)-1, int(share*float64(len(sorted))))]
}

func correlation(a, b []float64) float64 {
	meanA, meanB := meanOf(a), meanOf(b)
	var both, onlyA, onlyB float64
	for i := range a {
		x, y := a[i]-meanA, b[i]-meanB
		both, onlyA, onlyB = both+x*y, onlyA+x*x, onlyB+y*y
	}
	return both / math.Sqrt(onlyA*onlyB)
}

// ranks are the places of the values among all; equal values share the mean of theirs.
func ranks(all []float64) []float64 {
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, k int) int { return cmp.Compare(all[i], all[k]) })
	result := make([]float64, len(all))
	for from := 0; from < len(order); {
		to := from + 1
		for to < len(order) && all[order[to]] == all[order[from]] {
			to++
		}
		for _, i := range order[from:to] {
			result[i] = float64(from+to-1) / 2
		}
		from = to
	}
	return result
}

// reuse is the share of prompt tokens that a cache without end has already.
func reuse(t *engine.Traffic) float64 {
	if t.BlockTokens == 0 {
		return math.NaN()
	}
	var found, all float64
	seen := map[int32]bool{}
	count := func(prompt int32, prefix []engine.BlockRun) {
		known, missing := 0, false
		for _, run := range prefix {
			for block := run.First; ; block++ {
				if missing = missing || !seen[block]; !missing {
					known++
				}
				seen[block] = true
				if block == run.Last { // not a condition of the loop: Last may be the greatest number
					break
				}
			}
		}
		found += min(float64(prompt), float64(known*t.BlockTokens))
		all += float64(prompt)
	}
	for i := range t.Arrivals {
		count(t.Arrivals[i].Prompt, t.Arrivals[i].Prefix)
	}
	for i := range t.Conversations {
		clear(seen) // block numbers are those of the conversation
		for k := range t.Conversations[i].Turns {
			turn := &t.Conversations[i].Turns[k]
			count(turn.Prompt, turn.Prefix)
		}
	}
	return found / all
}
