// Package objective measures service level objectives such as "95 % of the requests get
// their first token within 2.5 s".
//
// A histogram shows only between which two bounds an observation lies. So observations
// are counted in three parts: good (certainly within the threshold), undecided (in the
// bucket that the threshold splits) and the rest, which is certainly bad. Every result is
// an Interval that contains the true value. Where the threshold is a bound of the
// histogram, both ends are equal.
//
// A Tracker counts for one objective. It has sums since its start, and for each window a
// ring of coarse slots, so that 30 days take as much memory as an hour. Encode and
// Restore preserve the rings over a restart of the collector.
//
// A State has the trackers of one resource: one for each objective and model, over all
// engines. It reads the steps of the histograms from the window. An Evaluator computes the
// metrics from the trackers.
//
// The package is pure: it has no clock, no logger and no lock. All times are Unix
// nanoseconds.
package objective

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
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
func (o *Objective) Finished() bool { return slices.Contains(finishedRequests, o.Metric) }

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
	i, exact := slices.BinarySearch(bounds, threshold)
	switch {
	case i == len(bounds):
		return fmt.Sprintf("objective %q: the threshold %s is beyond the last bucket of %s, so what took longer than %s stays undecided; write at most that",
			o.Name, o.Threshold, o.Metric, ofSeconds(bounds[i-1]))
	case exact:
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
	if bounds, ok := indicatorOf(o.Metric); ok {
		return o.Resolution(bounds)
	}
	return ""
}

// The histograms that an objective can be about: the latencies of requests. Histograms of tokens are
// not among them, because the client chooses the length of a prompt. Caches and transfers are not
// either, because users do not see them directly.
//
// Older servers have fewer buckets than the catalogue says, up to 10 s, 2.5 s and 60 s. So no server can decide
// a threshold beyond its bounds, unless its operator chose others. Objective.Resolution checks the real bounds.
var (
	ofTokens = []string{"vllm.time_to_first_token", "vllm.inter_token_latency"}
	// finishedRequests are those in which each request is observed once, at its end. Only such
	// histograms with equal counts have observed the same requests.
	finishedRequests = []string{
		"vllm.e2e_request_latency", "vllm.request.time_per_output_token", "vllm.request.queue_time",
		"vllm.request.inference_time", "vllm.request.prefill_time", "vllm.request.decode_time",
	}
	indicators = slices.Concat(ofTokens, finishedRequests)
)

// indicatorOf returns the bounds of an indicator; false for another metric.
func indicatorOf(metric string) (bounds []float64, ok bool) {
	return catalog.Bounds(metric), slices.Contains(indicators, metric)
}

func usable() string { return strings.Join(indicators, ", ") }

// alertFactors are the burn rates above which the usual alerts fire, the highest first.
// The lowest usual one, 1, can be exceeded with any target.
var alertFactors = [...]float64{14.4, 6, 3}

// HighestBurn returns the burn rate while every observation misses the objective. No burn
// rate can exceed it.
func (o *Objective) HighestBurn() float64 { return 1 / (1 - o.Target) }

// Unreachable returns a sentence for the log where a usual alert on the burn rate could
// never fire; empty where all of them can.
func (o *Objective) Unreachable() string {
	var never []string
	for _, factor := range alertFactors {
		if o.HighestBurn() <= factor {
			never = append(never, number(factor))
		}
	}
	if len(never) == 0 {
		return ""
	}
	// Rounded up, because the burn rate must exceed the factor.
	enough := math.Ceil((1-1/alertFactors[0])*1e4) / 1e4
	return fmt.Sprintf("objective %q: with the target %s the burn rate is at most %s, even if every request is too slow, "+
		"so an alert on a burn rate above %s can never fire; write a target of at least %s, let your alerts compare with a lower burn rate, "+
		"or use the rules in content/rules, which fire with any target",
		o.Name, number(o.Target), strconv.FormatFloat(o.HighestBurn(), 'g', 3, 64), strings.Join(never, " or "), number(enough))
}

func number(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }

// Matches reports whether the objective is for a model: one of its patterns matches the
// whole name, or it has no patterns. In a pattern "*" matches any number of characters,
// including "/", and "?" matches one. Case matters. So "llama-*" does not match "meta-llama/Llama-3.1-8B";
// "meta-llama/*" and "*Llama-*" do.
func (o *Objective) Matches(model string) bool {
	return len(o.Models) == 0 || slices.ContainsFunc(o.Models, func(wanted string) bool { return input.MatchPattern(wanted, model) })
}

// matchWithin is the time after the first model in which each pattern must match a model.
// It is enough for several scrapes and for discovery at the start.
const matchWithin = int64(2 * time.Minute)

// maxModelsNamed bounds how many models a warning lists.
const maxModelsNamed = 10

// PatternWatch finds the model patterns that match nothing.
type PatternWatch struct {
	unmatched []unmatched
	models    []string
	more      bool
	first     int64
}

type unmatched struct{ objective, pattern string }

// WatchPatterns returns a watch over the patterns of the objectives.
func WatchPatterns(objectives []Objective) *PatternWatch {
	w := &PatternWatch{}
	for _, o := range objectives {
		for _, pattern := range o.Models {
			w.unmatched = append(w.unmatched, unmatched{o.Name, pattern})
		}
	}
	return w
}

// See records a model at a time.
func (w *PatternWatch) See(model string, at int64) {
	if len(w.unmatched) == 0 || slices.Contains(w.models, model) {
		return
	}
	if w.first == 0 {
		w.first = at
	}
	w.unmatched = slices.DeleteFunc(w.unmatched, func(u unmatched) bool { return input.MatchPattern(u.pattern, model) })
	if len(w.models) < maxModelsNamed {
		w.models = append(w.models, model)
	} else {
		w.more = true
	}
}

// Warnings returns a sentence for each pattern that has matched no model within two
// minutes after the first model. It returns each sentence once.
func (w *PatternWatch) Warnings(at int64) []string {
	if len(w.unmatched) == 0 || len(w.models) == 0 || at-w.first < matchWithin {
		return nil
	}
	models := strings.Join(w.models, ", ")
	if w.more {
		models += " and others"
	}
	warnings := make([]string, len(w.unmatched))
	for i, u := range w.unmatched {
		warnings[i] = fmt.Sprintf("objective %q: the pattern %q matches none of the models seen: %s; it must match the whole name, and case matters; * also matches /; write for example %q",
			u.objective, u.pattern, models, w.example(u.pattern))
	}
	w.unmatched = nil
	return warnings
}

// example returns a pattern that matches a known model: the user's own after a star if
// that matches, else the name of a model.
func (w *PatternWatch) example(unmatched string) string {
	anywhere := "*" + strings.TrimLeft(unmatched, "*")
	if slices.ContainsFunc(w.models, func(model string) bool { return input.MatchPattern(anywhere, model) }) {
		return anywhere
	}
	return w.models[0]
}
