package promlint

// Code is the stable name of a kind of mistake.
type Code string

// The codes of findings.
const (
	CodeSyntax             Code = "syntax"
	CodeUnknownMetric      Code = "unknown-metric"
	CodeOtherSpelling      Code = "other-spelling"
	CodeRemovedMetric      Code = "removed-metric"
	CodeMissingTotal       Code = "missing-total"
	CodeExtraTotal         Code = "extra-total"
	CodeHistogramPart      Code = "histogram-part"
	CodeNotAHistogram      Code = "not-a-histogram"
	CodeCounterWithoutRate Code = "counter-without-rate"
	CodeRateOfGauge        Code = "rate-of-gauge"
	CodeDeltaOfCounter     Code = "delta-of-counter"
	CodeRateOfAggregate    Code = "rate-of-aggregate"
	CodeSubquery           Code = "subquery"
	CodeShortRange         Code = "short-range"
	CodeLeUnknown          Code = "le-unknown"
	CodeLeFormat           Code = "le-format"
	CodeQuantileWithoutLe  Code = "quantile-without-le"
	CodeQuantileInput      Code = "quantile-input"
	CodeQuantileLifetime   Code = "quantile-of-lifetime"
	CodeQuantileRange      Code = "quantile-range"
	CodeBucketUse          Code = "bucket-use"
	CodeAggregatedRatio    Code = "aggregated-ratio"
	CodeLifetimeRatio      Code = "lifetime-ratio"
	CodeUnknownLabel       Code = "unknown-label"
	CodeLostLabel          Code = "lost-label"
	CodeUnknownValue       Code = "unknown-value"
	CodeTemplateLabel      Code = "template-label"
	CodeWithoutBool        Code = "without-bool"
	CodeDivision           Code = "division-by-zero"
	CodeDivisionNaN        Code = "division-nan"
	CodeManyToMany         Code = "many-to-many"
	CodeNeverMatches       Code = "never-matches"
	CodeUnit               Code = "unit"
	CodeThreshold          Code = "threshold"
	CodeAbsent             Code = "absent"
	CodeBurnWindows        Code = "burn-windows"
	CodeBurnOneWindow      Code = "burn-one-window"
	CodeBurnThreshold      Code = "burn-threshold"
	CodeLowTraffic         Code = "low-traffic"
	CodeCoverage           Code = "coverage"
	CodeRateFactor         Code = "rate-factor"
	CodeRecordWindow       Code = "record-window"
	CodeAlwaysFiring       Code = "always-firing"
	CodeNoDataAsZero       Code = "no-data-as-zero"
	CodeSilentWhenGone     Code = "silent-when-gone"
	CodeWithoutFor         Code = "without-for"
)

// Rule describes a code for the documentation.
type Rule struct {
	Code Code
	// Finds is one sentence.
	Finds string
}

// Rules returns all codes in the order of the documentation.
func Rules() []Rule { return rules }

var rules = []Rule{
	{CodeSyntax, "The expression does not parse."},
	{CodeUnknownMetric, "No metric and no recording rule has this name."},
	{CodeOtherSpelling, "The name is right in another spelling: suffixed, unsuffixed, dotted, or that of the program itself."},
	{CodeRemovedMetric, "Newer versions of vLLM do not expose the metric, and the expression has no alternative for them."},
	{CodeMissingTotal, "The name of a counter lacks `_total`, so the expression is always empty."},
	{CodeExtraTotal, "A metric that is not a counter is written with `_total`."},
	{CodeHistogramPart, "A histogram is written without `_bucket`, `_sum` or `_count`."},
	{CodeNotAHistogram, "A metric that is not a histogram is written with `_bucket`, `_sum` or `_count`."},
	{CodeCounterWithoutRate, "A counter is used without `rate` or `increase`: the value counts from the start of the server."},
	{CodeRateOfGauge, "`rate`, `irate` or `increase` is applied to something that is not a counter."},
	{CodeDeltaOfCounter, "`delta` or `deriv` is applied to a counter, and a restart makes the result negative."},
	{CodeRateOfAggregate, "`rate` is applied to a sum of counters: the restart of one server looks like a huge increase."},
	{CodeSubquery, "A subquery is finer than it needs to be, coarser than its range, or takes a rate of a rate."},
	{CodeShortRange, "The range is shorter than four scrapes, so one lost scrape makes a gap."},
	{CodeLeUnknown, "The value of `le` is no bound of this histogram, so nothing matches."},
	{CodeLeFormat, "A whole number in `le` is `1` or `1.0`, which depends on the way of ingestion; match both."},
	{CodeQuantileWithoutLe, "`le` was aggregated away before `histogram_quantile`."},
	{CodeQuantileInput, "`histogram_quantile` is not applied to buckets."},
	{CodeQuantileLifetime, "`histogram_quantile` is applied to buckets without `rate`: it covers the whole life of the server."},
	{CodeQuantileRange, "The quantile is not between 0 and 1."},
	{CodeBucketUse, "Buckets are added up or compared although they are cumulative: each contains the smaller ones."},
	{CodeAggregatedRatio, "Ratios, means, quantiles or burn rates of several servers are added up or averaged."},
	{CodeLifetimeRatio, "A ratio of counters without `rate` covers the whole life of the servers."},
	{CodeUnknownLabel, "The metric does not have this label."},
	{CodeLostLabel, "An aggregation or a match has removed this label."},
	{CodeUnknownValue, "The label never has this value."},
	{CodeTemplateLabel, "A legend or an annotation uses a label that the result does not have."},
	{CodeWithoutBool, "The result of a comparison is used as a number, but without `bool` the comparison only filters."},
	{CodeDivision, "The divisor can be 0 while the dividend is not: the result is infinite."},
	{CodeDivisionNaN, "The divisor can be 0 together with the dividend: the result is NaN instead of absent."},
	{CodeManyToMany, "The labels of `on` or `ignoring` do not identify the series of one side: the evaluation fails."},
	{CodeNeverMatches, "The two sides have different labels, so no series match."},
	{CodeUnit, "The unit of the result is not the declared unit, or quantities of different units are combined."},
	{CodeThreshold, "The threshold is out of reach or in another unit than the metric."},
	{CodeAbsent, "`absent` cannot say what is absent: its result has only the labels of equality matchers."},
	{CodeBurnWindows, "The windows of a burn-rate alert do not belong to its factor, are equal or in the wrong order."},
	{CodeBurnOneWindow, "A burn-rate alert has one window only: it fires late or stays long after the end."},
	{CodeBurnThreshold, "The thresholds of a burn-rate alert differ within a pair, or have no burn factor."},
	{CodeLowTraffic, "An alert on a ratio or a quantile has no condition on the traffic: at night one of two requests is a half."},
	{CodeCoverage, "An alert on a ratio over a day or more has no condition on how much of the window was observed."},
	{CodeRateFactor, "A rate is multiplied by the seconds of another window than its own."},
	{CodeRecordWindow, "The name of a recording rule has another window than its expression."},
	{CodeAlwaysFiring, "The alert compares nothing, so it fires for each series."},
	{CodeNoDataAsZero, "`or vector(0)` after a quantile or a mean shows a latency of 0 where there is no data."},
	{CodeSilentWhenGone, "An alert on a sum or a number of series is silent once the last series is gone: there is no 0 then."},
	{CodeWithoutFor, "The alert has no `for`: one evaluation is enough to fire."},
}
