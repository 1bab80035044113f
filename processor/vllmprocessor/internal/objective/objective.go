package objective

import (
	"fmt"
	"sort"
)

// Objective promises that a share of the observations of a histogram is within
// a threshold.
type Objective struct {
	// Name tells the objectives apart; it becomes an attribute.
	Name string `mapstructure:"name"`
	// Metric is the canonical name of a latency histogram in seconds.
	Metric string `mapstructure:"metric"`
	// Threshold is the longest time that is still good.
	Threshold Duration `mapstructure:"threshold"`
	// Target is the share that shall be good, between 0 and 1, both excluded.
	Target float64 `mapstructure:"target"`
	// Models are patterns of model names (see Matches); none means all models.
	Models []string `mapstructure:"models"`
}

// Finished tells whether the objective's histogram counts each request once,
// when it ends.
func (o *Objective) Finished() bool {
	known, ok := indicatorOf(o.Metric)
	return ok && known.finished
}

// Resolution says what the bounds of a histogram (in seconds, ascending, without
// +Inf) mean for the objective: a sentence where the threshold lies between two
// of them, with the thresholds nearby that would be exact, or beyond the last.
// It is empty where the threshold is one of the bounds.
//
// The real bounds can differ from those known at start: old servers have fewer,
// and new ones let their operator choose.
func (o *Objective) Resolution(bounds []float64) string {
	if len(bounds) == 0 {
		return fmt.Sprintf("objective %q: %s has no buckets, so nothing can be said about %s", o.Name, o.Metric, o.Threshold)
	}
	threshold := o.Threshold.Seconds()
	i := sort.SearchFloat64s(bounds, threshold)
	switch {
	case i == len(bounds):
		return fmt.Sprintf("objective %q: the threshold %s is beyond the last bucket of %s, so what took longer than %s stays undecided; write at most that",
			o.Name, o.Threshold, o.Metric, ofSeconds(bounds[i-1]))
	case bounds[i] == threshold:
		return ""
	case i == 0:
		return fmt.Sprintf("objective %q: the threshold %s lies inside the first bucket of %s, so nothing is certainly good; %s would be exact",
			o.Name, o.Threshold, o.Metric, ofSeconds(bounds[0]))
	}
	below, above := ofSeconds(bounds[i-1]), ofSeconds(bounds[i])
	return fmt.Sprintf("objective %q: the threshold %s lies inside a bucket of %s, so what took between %s and %s stays undecided; %s or %s would be exact",
		o.Name, o.Threshold, o.Metric, below, above, below, above)
}

// Note is Resolution for the bounds that vLLM is known to have: a remark for the
// start, no mistake. It is empty where there is nothing to remark.
func (o *Objective) Note() string {
	known, ok := indicatorOf(o.Metric)
	if !ok {
		return ""
	}
	return o.Resolution(known.bounds)
}
