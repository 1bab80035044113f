// Package version says of which release a program is.
package version

import (
	"runtime/debug"
	"strings"
)

// released is the version in builder-config.yaml. The linker sets it in programs that the
// Makefile or a release builds.
var released string

// Of returns the version of this program without a leading "v": that of the release, else the
// one that "go install" has resolved, else "devel".
func Of() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return of(released, "")
	}
	return of(released, info.Main.Version)
}

// of chooses between what the linker set and the version of the main module, which is empty or
// "(devel)" in a checkout without a tag.
func of(released, module string) string {
	switch {
	case released != "":
		return released
	case module == "" || module == "(devel)":
		return "devel"
	default:
		return strings.TrimPrefix(module, "v")
	}
}
