// Package incident reads a list of what is known to have happened, and compares with it what
// a backtest found: whether and when each incident was seen, by what, and which alarms
// belong to none.
package incident
