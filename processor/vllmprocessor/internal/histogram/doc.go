// Package histogram does arithmetic on what one histogram with explicit bounds
// counted over some time: quantiles, means, sums over engines, and how many
// observations a threshold holds. It is pure: no clock, no logger, no goroutine,
// no pdata.
package histogram
