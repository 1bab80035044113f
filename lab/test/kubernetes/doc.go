// Package kubernetes holds only tests of examples/kubernetes, examples/helm,
// examples/operator, of the Dockerfile, and of what asks vllm_fleet in examples/probes. No cluster is needed: the manifests are decoded
// strictly into the Kubernetes API's own Go types, the overlays are built by kustomize's own
// library and the charts by Helm's, what refers to something is followed to it, and, with the build tag
// e2e, the built collector validates each embedded configuration with the
// environment that its pod gives it, and runs those of the overlays: those of the pool with
// a stand-in for the API server.
package kubernetes

// The charts have copies of rules and dashboards. "make generate" takes lab after cmd/vllmctl, whose
// package content writes them.
//go:generate go run ../../cmd/chartgen -root ../../..
