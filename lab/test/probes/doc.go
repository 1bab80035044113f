// Package probes holds only tests, with the build tag e2e: a real HAProxy with the shipped example asks the built
// collector which servers are fit, while clients send requests through it.
package probes
