package accuracy

import (
	"fmt"
	"math"
	"strconv"
)

// Bar is a required value of the diagnosis, and whether it is met.
type Bar struct {
	Name, Want, Seen string
	Holds            bool
	// Short is the amount by which it is missed.
	Short string
}

// The required values.
const (
	wantLower    = 0.90
	wantTopTwo   = 0.97
	wantMedian   = 3.0
	wantP90      = 6.0
	wantWarnings = 4.0 / 10_000 // Per healthy engine-hour.
)

// Bars compares the measured values with the required ones.
func Bars(s *Summary, alarms *Alarms) []Bar {
	minutes, worth := macro(s.Minutes)
	low, high := wilson(minutes, worth)
	top, topWorth := macro(s.TopTwo)
	topLow, topHigh := wilson(top, topWorth)
	median, p90 := quantileOf(s.Delays, 0.5), quantileOf(s.Delays, 0.9)
	pages, warnings := alarms.Count(3), alarms.Count(2)
	allowed := wantWarnings * alarms.Hours
	return []Bar{
		{
			Name: "right cause, mean over the causes", Want: "lower bound at least 90 %",
			Seen:  fmt.Sprintf("%s (%s to %s)", percent(minutes), percent(low), percent(high)),
			Holds: low >= wantLower, Short: points(wantLower - low),
		},
		{
			Name: "right cause among the two strongest", Want: "at least 97 %",
			Seen:  fmt.Sprintf("%s (%s to %s)", percent(top), percent(topLow), percent(topHigh)),
			Holds: top >= wantTopTwo, Short: points(wantTopTwo - top),
		},
		{
			Name: "delay, median", Want: "at most 3 windows", Seen: windows(median),
			Holds: median <= wantMedian, Short: windows(median - wantMedian),
		},
		{
			Name: "delay, 90 % of the stories", Want: "at most 6 windows", Seen: windows(p90),
			Holds: p90 <= wantP90, Short: windows(p90 - wantP90),
		},
		{
			Name: "false alarms at page severity", Want: "none",
			Seen:  fmt.Sprintf("%d in %.0f h (at most %.1f in 10,000 h)", pages, alarms.Hours, atMost(pages, alarms.Hours)),
			Holds: pages == 0, Short: strconv.Itoa(pages),
		},
		{
			Name: "false alarms at warning severity", Want: "at most 4 in 10,000 h",
			Seen:  fmt.Sprintf("%d in %.0f h (at most %.1f in 10,000 h)", warnings, alarms.Hours, atMost(warnings, alarms.Hours)),
			Holds: float64(warnings) <= allowed, Short: fmt.Sprintf("%.1f too many", float64(warnings)-allowed),
		},
	}
}

// Refuted returns the bars that a small sample refutes, each with a confidence of
// 97.5 %. A bar that the sample only fails to confirm is not among them.
func Refuted(s *Summary, alarms *Alarms) []string {
	var out []string
	p, worth := macro(s.Runs)
	if _, high := wilson(p, worth); len(s.Runs) > 0 && high < wantLower {
		out = append(out, fmt.Sprintf("the right cause is reported in %s of the minutes, and at most %s by 97.5 %% confidence over the stories: below 90 %%", percent(p), percent(high)))
	}
	for _, d := range []struct{ within, share float64 }{{wantMedian, 0.5}, {wantP90, 0.9}} {
		n := 0.0
		for _, delay := range s.Delays {
			if delay <= d.within {
				n++
			}
		}
		of := float64(len(s.Delays))
		if _, high := wilson(n/max(1, of), of); of > 0 && high < d.share {
			out = append(out, fmt.Sprintf("the right cause is reported within %g windows in %g of %g stories only", d.within, n, of))
		}
	}
	if n := alarms.Count(3); n > 0 {
		out = append(out, fmt.Sprintf("%d false alarms at page severity in %.0f healthy hours: %v", n, alarms.Hours, alarms.Alarms))
	}
	if n := alarms.Count(2); poissonAtLeast(n, wantWarnings*alarms.Hours) < 0.025 {
		out = append(out, fmt.Sprintf("%d false warnings in %.0f healthy hours, which 4 in 10,000 h explain with a probability below 2.5 %%: %v", n, alarms.Hours, alarms.Alarms))
	}
	return out
}

// atMost is the upper bound, with a confidence of 97.5 %, of the rate of events per
// 10,000 hours, given k events in some hours.
func atMost(k int, hours float64) float64 {
	low, high := float64(k), float64(k)+20+6*math.Sqrt(float64(k)+1)
	for range 60 {
		mid := (low + high) / 2
		if poissonAtLeast(k+1, mid) < 0.975 {
			low = mid
		} else {
			high = mid
		}
	}
	return high / hours * 10_000
}

func percent(p float64) string { return fmt.Sprintf("%.1f %%", 100*p) }

func windows(n float64) string {
	switch {
	case math.IsNaN(n):
		return "no story"
	case math.IsInf(n, 1):
		return "never"
	}
	return fmt.Sprintf("%.1f", n)
}

func points(p float64) string { return fmt.Sprintf("%.1f points", 100*p) }
