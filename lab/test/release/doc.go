// Package release holds what goreleaser does not: that every place names the version of the release, and
// that tag, tree and changelog belong to it. The program below it, run, does this for "make release".
package release
