// Package promapi reads raw samples from the HTTP API of Prometheus, Thanos, Mimir or
// VictoriaMetrics: the series of a selector with the times at which they were scraped. It
// is the only package of the backtest that knows HTTP. It limits what a server can make the
// program read, and turns each failure into a sentence that says what to do.
package promapi
