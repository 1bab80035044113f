// Package conformance compares the collector with programs that others wrote: any server of metrics
// at an address. Every sample of the collector is compared with the body that it read and with what
// the program said just before and after, and every derived value with PromQL that a real Prometheus
// evaluates over the same bodies. "make conform" runs it and keeps what was found in results; the page
// docs/why/conformance.md is written from that.
package conformance
