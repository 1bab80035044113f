// Package discover finds the servers to scrape: by Kubernetes, HTTP, files, DNS
// or a list, as Prometheus does and with its own library, and from an
// InferencePool of the Gateway API Inference Extension.
//
//	Parse      what the user wrote becomes Settings, with each mistake by its key
//	Runner     runs the mechanisms and tells which targets are wanted now
//	Target     one address with its resource attributes and intervals
//
// Short forms are nothing of their own: they expand to Prometheus's
// configurations and relabelling rules.
package discover
