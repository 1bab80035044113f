// Package e2e holds only tests of the built collector, with the build tag e2e:
// it scrapes real HTTP servers on loopback and writes files or offers a
// Prometheus endpoint, which the tests read back. Package audit beside it tells
// whether what came out is what the bodies said.
package e2e
