// Package release holds what a release must prove: that every place names its version, that
// tag, tree and changelog belong to it, that each linked module has a licence text, and that
// the archives have in them what their names and checksums say. The program below it, run,
// does this for "make release"; the tests do it for the checkout.
package release
