// Package backtest runs the receiver and the processor over a history in Prometheus, and
// where rules are given also Prometheus's rule engine, in the time of the history. It joins
// the parts: promapi and history read, replay judges, rulestore evaluates rules, incident
// compares with what is known to have happened.
package backtest
