// Package fidelity compares the simulated engine with real ones: step times, latencies and
// throughput of closed loops, whole runs, recordings, published benchmarks, and cache sizes.
// What was measured is read from the folder of reference data; it is never part of the
// project. The result is results.tsv, and its summary in docs/why/simulator.md.
package fidelity

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
)

// The quantities, each with one unit.
const (
	StepTime   = "step, ms"
	TPOT       = "TPOT, ms"
	TTFT       = "TTFT, ms"
	Latency    = "whole latency, s"
	Throughput = "tokens per second"
	Requests   = "requests per second"
	Gain       = "throughput against one client"
	CacheUse   = "KV cache in use, %"
	CacheSize  = "KV cache, tokens"
	Reuse      = "prompt tokens found, %"
)

// Pair is a quantity in one case: what was measured, and what the simulator gives for it.
type Pair struct {
	Case                string
	Measured, Simulated float64
}

// Error is by which share of the measured value the simulated one differs.
func (p Pair) Error() float64 { return p.Simulated/p.Measured - 1 }

// Line is a line of the table: a quantity in all cases of one setup.
type Line struct {
	// Section is the part of the table, What the setup.
	Section, What, Quantity string
	Pairs                   []Pair
	// Bar is what the median of the errors' sizes must not exceed; 0 is no bar. A line with
	// Factor has a bar for the factor between both values instead, whichever is larger.
	Bar    float64
	Factor bool
	// Fitted says that constants were chosen with these cases; everything else is
	// predicted.
	Fitted bool
	// Note says what differs, and why a bar is missed.
	Note string
}

// size is how far a pair is from equality.
func (l Line) size(p Pair) float64 {
	if l.Factor {
		return math.Exp(math.Abs(math.Log(p.Simulated/p.Measured))) - 1
	}
	return math.Abs(p.Error())
}

// Median returns the medians of both values, of the errors, and of the errors' sizes.
func (l Line) Median() (measured, simulated, signed, size float64) {
	return l.quantile(0.5, func(p Pair) float64 { return p.Measured }),
		l.quantile(0.5, func(p Pair) float64 { return p.Simulated }),
		l.quantile(0.5, Pair.Error), l.quantile(0.5, l.size)
}

// P90 returns the error's size that nine of ten cases do not exceed.
func (l Line) P90() float64 { return l.quantile(0.9, l.size) }

// Held reports whether the bar is held.
func (l Line) Held() bool {
	_, _, _, size := l.Median()
	return size <= l.Bar
}

func (l Line) quantile(q float64, of func(Pair) float64) float64 {
	values := make([]float64, len(l.Pairs))
	for i, p := range l.Pairs {
		values[i] = of(p)
	}
	return quantile(values, q)
}

// quantile interpolates between the values in their order.
func quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	slices.Sort(values)
	at := q * float64(len(values)-1)
	below := int(at)
	if below == len(values)-1 {
		return values[below]
	}
	return values[below] + (at-float64(below))*(values[below+1]-values[below])
}

// mean is 0 for no values.
func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / max(1, float64(len(values)))
}

// Section is one part of the table.
type Section struct {
	Name  string
	lines func(context.Context, *data) ([]Line, error)
}

// Sections are all parts of the table, in their order.
func Sections() []Section {
	return []Section{
		{"Step times", stepTimes},
		{"Closed loops", closedLoops},
		{"Whole runs", wholeRuns},
		{"Recordings", recordings},
		{"Published benchmarks", published},
		{"Cache sizes", cacheSizes},
	}
}

// Lines computes the lines of a section from the reference data in the folder shared.
func (s Section) Lines(ctx context.Context, shared string) ([]Line, error) {
	d, err := open(shared)
	if err != nil {
		return nil, err
	}
	lines, err := s.lines(ctx, d)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.Name, err)
	}
	for i := range lines {
		lines[i].Section = s.Name
		for _, p := range lines[i].Pairs {
			if !(p.Measured > 0 && p.Simulated > 0) || math.IsInf(p.Measured+p.Simulated, 1) {
				return nil, fmt.Errorf("%s: %s, %s, %s: measured %v, simulated %v: both must be numbers above 0",
					s.Name, lines[i].What, p.Case, lines[i].Quantity, p.Measured, p.Simulated)
			}
		}
	}
	return lines, nil
}

// ErrAbsent is returned where there is no reference data.
var ErrAbsent = errors.New("no reference data")

// data is the folder of reference data.
type data struct{ profiles string }

func open(shared string) (*data, error) {
	profiles := filepath.Join(shared, "profiles")
	if info, err := os.Stat(profiles); errors.Is(err, fs.ErrNotExist) || (err == nil && !info.IsDir()) {
		return nil, fmt.Errorf("%w: there is no folder %s", ErrAbsent, profiles)
	} else if err != nil {
		return nil, err
	}
	return &data{profiles}, nil
}
