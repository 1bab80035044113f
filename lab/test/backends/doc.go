// Package backends holds only tests, with the build tag e2e, of the configurations in
// examples/backends: the built collector sends the whole catalogue through each of them to
// a recording stand-in for the backend, and what arrives must follow that backend's
// published rules. One more test compares the answers of a real Prometheus that scrapes a
// server directly with those for the collector's page of the same server.
//
// A stand-in proves what is sent, not that the vendor accepts it. The tests RealServers send to a real Prometheus 3 and
// VictoriaMetrics, which "make servers" builds.
package backends
