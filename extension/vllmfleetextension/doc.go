// Package vllmfleetextension answers questions about vLLM servers over HTTP: whether a server should get requests
// (/probe), what all of them do (/api/v1), and the same as a page for people (/). It only reads. The vllm processors of
// the collector join it when they start; it asks them when it is asked, at most once a second, and
// once a minute for its curves.
package vllmfleetextension

//go:generate go tool mdatagen metadata.yaml
