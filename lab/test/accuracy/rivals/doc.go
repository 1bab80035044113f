// Package rivals has methods that others would take in place of the diagnosis, so that its figures can be read beside
// theirs on the same scrapes: NSigma on the same signals, and the alerts on vLLM's own names in a Prometheus.
package rivals
