package soak

import (
	"math"
	"slices"
	"time"
)

// sample is what the process used at a time.
type sample struct {
	// At is seconds since the beginning of the soak.
	At float64 `json:"at"`
	// Goroutines is their number; Heap the live heap after the last collection in bytes.
	// Both are -1 while they are not known.
	Goroutines float64 `json:"goroutines"`
	Heap       float64 `json:"heap"`
	// RSS is all resident memory in bytes. Anonymous is the part of it that is not of files: the
	// files of the queue are mapped, and their pages can be taken back at any time.
	RSS       float64 `json:"rss"`
	Anonymous float64 `json:"anonymous"`
	// Files is the number of open file descriptors, Queue the bytes in the queues on disk.
	Files float64 `json:"files"`
	Queue float64 `json:"queue"`
}

// quantity is a number that must not grow.
type quantity struct {
	name, unit string
	of         func(sample) float64
	// The growth from the first third to the last may be this share of the first, and this much.
	share, absolute float64
}

// mebi is the unit of memory in reports.
const mebi = 1 << 20

// The bounds. Churn makes the numbers move, so a bound has to be above that movement and below
// the smallest leak that matters. The soak changes a target every two seconds, which is 1200
// changes between the centers of the thirds in a soak of an hour (110 in one of five minutes).
//
//   - goroutines and file descriptors: one that leaks with each change makes 1200 more; the
//     bound is 5 % and 20 (or 10), about 70 with 200 targets.
//   - heap: the state of one server is about 400 KiB (90 MiB with 200 servers), so that 110 leaked
//     servers are 40 MiB; the bound is 10 % and 8 MiB. A leak of 15 KiB with each change is seen in
//     an hour, and none below that.
//   - resident memory follows the heap with Go's own reserve on top: 10 % and 24 MiB.
var quantities = []quantity{
	{"goroutines", "", func(s sample) float64 { return s.Goroutines }, 0.05, 20},
	{"heap after collection", "MiB", func(s sample) float64 { return s.Heap / mebi }, 0.10, 8},
	{"resident memory without files", "MiB", func(s sample) float64 { return s.Anonymous / mebi }, 0.10, 24},
	{"open file descriptors", "", func(s sample) float64 { return s.Files }, 0.05, 10},
}

// trend is how a quantity has developed.
type trend struct {
	Name string `json:"name"`
	Unit string `json:"unit"`
	// First and Last are the medians of the first and the last third after the warm-up.
	First float64 `json:"first"`
	Last  float64 `json:"last"`
	Most  float64 `json:"most"`
	// Allowed is how much Last may be above First.
	Allowed float64 `json:"allowed"`
	// Slope is the growth per hour between the centers of both thirds.
	Slope float64 `json:"slope_per_hour"`
	// Known is false without enough samples; then Flat is false too.
	Known bool `json:"known"`
	Flat  bool `json:"flat"`
}

// fewest is how many samples a third needs.
const fewest = 5

// trends compares the first third of the samples after the warm-up with the last. Without
// enough samples a quantity is not flat: then nothing is proved.
func trends(samples []sample, from, to time.Duration) []trend {
	third := (to - from).Seconds() / 3
	var out []trend
	for _, q := range quantities {
		t := trend{Name: q.name, Unit: q.unit}
		var first, last []float64
		for _, s := range samples {
			v, at := q.of(s), s.At-from.Seconds()
			if v < 0 || at < 0 || s.At > to.Seconds() {
				continue
			}
			t.Most = max(t.Most, v)
			switch {
			case at < third:
				first = append(first, v)
			case at >= 2*third:
				last = append(last, v)
			}
		}
		if len(first) >= fewest && len(last) >= fewest {
			t.Known = true
			t.First, t.Last = median(first), median(last)
			t.Allowed = q.share*t.First + q.absolute
			t.Slope = (t.Last - t.First) / (2 * third / time.Hour.Seconds())
			t.Flat = t.Last-t.First <= t.Allowed
		}
		out = append(out, t)
	}
	return out
}

func median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	half := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[half]
	}
	return (sorted[half-1] + sorted[half]) / 2
}
