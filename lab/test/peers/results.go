package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
)

// results are the runs of one or more times.
type results []result

func readResults(file string) (out results, err error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	err = json.Unmarshal(text, &out)
	return out, err
}

// replace returns the results with those of the same load replaced. A load is measured in one
// run, so that its ratios are of programs that took turns.
func (r results) replace(by results) results {
	out := slices.DeleteFunc(slices.Clone(r), func(old result) bool {
		return slices.ContainsFunc(by, func(n result) bool { return n.Scenario == old.Scenario })
	})
	return append(out, by...)
}

// of returns the runs of one program under one load, in the order of the rounds.
func (r results) of(scenario, variant string) results {
	return slices.DeleteFunc(slices.Clone(r), func(x result) bool { return x.Scenario != scenario || x.Variant != variant })
}

// spread is the median of some numbers, with the least and the greatest.
type spread struct{ median, least, most float64 }

// newSpread returns the spread of a number of each run; all zero without runs.
func newSpread(numbers []float64) spread {
	if len(numbers) == 0 {
		return spread{}
	}
	sorted := slices.Sorted(slices.Values(numbers))
	n := len(sorted)
	return spread{(sorted[(n-1)/2] + sorted[n/2]) / 2, sorted[0], sorted[n-1]}
}

// each returns a number of each run.
func (r results) each(number func(*result) float64) (out []float64) {
	for i := range r {
		out = append(out, number(&r[i]))
	}
	return out
}

// bar prints how many times the processor time of our receiver with the processor the peer takes under each load of many targets. It
// returns an error where that is less than least in the least of the rounds, or where nothing
// was compared; with 0 it does nothing. Times of one machine say nothing about another, but
// both programs ran on this one in turns.
func (r results) bar(least float64) error {
	if least == 0 {
		return nil
	}
	var missed error
	compared := false
	for _, c := range scenarios() {
		peer, ours := r.least(c.Name, peerName, milliseconds), r.least(c.Name, oursProcessorName, milliseconds)
		if peer == 0 || ours == 0 || c.Targets < 100 {
			continue
		}
		compared = true
		of := peer / ours
		fmt.Printf("%s: the Prometheus receiver takes %.1f times the processor time of our receiver with the processor (the bar is %g)\n", c.Name, of, least)
		if of < least {
			missed = errors.Join(missed, fmt.Errorf("%s: %.1f times is below the bar of %g", c.Name, of, least))
		}
	}
	if !compared {
		return errors.New("no load was measured with both receivers, so there is nothing to compare")
	}
	return missed
}
