// Package e2e holds only tests of the built collector, with the build tag e2e:
// it scrapes real HTTP servers on loopback and writes files or offers a
// Prometheus endpoint, which the tests read back. Package audit compares
// the emitted points with the bodies.
package e2e
