// Package builder has only tests of examples/builder and examples/prometheus-receiver: the
// manifests with which users put our components into a collector of their own. "make
// own-collector" runs them.
package builder
