package objective

import (
	"fmt"
	"sort"
)

// Objective is the aim that a share of the observations of a histogram is within a
// threshold.
type Objective struct {
	// Name identifies the objective. It is the value of an attribute.
	Name string `mapstructure:"name"`
	// Metric is the canonical name of a latency histogram in seconds.
	Metric string `mapstructure:"metric"`
	// Threshold is the longest good time.
	Threshold Duration `mapstructure:"threshold"`
	// Target is the share that must be good, greater than 0 and less than 1.
	Target float64 `mapstructure:"target"`
	// Models are patterns of model names (see Matches); none means all models.
	Models []string `mapstructure:"models"`
}

// Finished reports whether the histogram observes each request once, at its end.
func (o *Objective) Finished() bool {
	known, ok := indicatorOf(o.Metric)
	return ok && known.finished
}

// Resolution returns a sentence for the log where the threshold is not one of the bounds
// of a histogram (in seconds, ascending, without +Inf). The sentence names the nearest
// exact thresholds. Resolution is empty where the threshold is a bound.
//
// The real bounds can differ from those in indicators: old servers have fewer, and
// operators of new ones can choose them.
func (o *Objective) Resolution(bounds []float64) string {
	if len(bounds) == 0 {
		return fmt.Sprintf("objective %q: %s has no buckets, so it is unknown which requests took at most %s", o.Name, o.Metric, o.Threshold)
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

// Note returns Resolution for the usual bounds of vLLM, for the log at the start.
func (o *Objective) Note() string {
	known, ok := indicatorOf(o.Metric)
	if !ok {
		return ""
	}
	return o.Resolution(known.bounds)
}
