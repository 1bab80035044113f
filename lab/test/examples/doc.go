// Package examples holds only tests of what users get: the manifests from
// which the distribution is built, and, with the build tag e2e, the examples,
// each of which is run by the built binary.
package examples
