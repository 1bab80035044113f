// Package discover finds the servers to scrape. It uses the library of Prometheus for
// Kubernetes, HTTP, files, DNS and static lists, and also supports an InferencePool of
// the Gateway API Inference Extension.
//
//	Parse      converts the configuration to Settings and reports mistakes by key
//	Runner     runs the mechanisms and reports the targets that should be scraped
//	Target     one address with its resource attributes and intervals
//
// The short forms expand to Prometheus's configurations and relabelling rules.
package discover
