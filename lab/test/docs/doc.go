// Package docs has only tests of the pages of this repository: links, anchors, the
// length of the README, and the configurations that it prints.
package docs
