package surface

import (
	"fmt"
	"strconv"
	"strings"
)

// Version is a vLLM release.
type Version [3]int

// ParseVersion reads "0.20.0" or "v0.20"; missing parts are 0.
func ParseVersion(s string) (Version, error) {
	var v Version
	parts := strings.Split(strings.TrimPrefix(s, "v"), ".")
	if s == "" || len(parts) > len(v) {
		return v, fmt.Errorf("vLLM version %q: want three numbers, for example 0.20.0", s)
	}
	for i, part := range parts {
		n, err := strconv.Atoi(part)
		if err != nil || n < 0 {
			return v, fmt.Errorf("vLLM version %q: want three numbers, for example 0.20.0", s)
		}
		v[i] = n
	}
	return v, nil
}

// String returns the version as the server itself reports it.
func (v Version) String() string { return fmt.Sprintf("%d.%d.%d", v[0], v[1], v[2]) }

// AtLeast reports whether v is the release written as "0.9.2" or a newer one.
func (v Version) AtLeast(release string) bool { return !v.before(release) }

// before reports whether v is older than the release written as "0.9.2".
func (v Version) before(release string) bool {
	other, err := ParseVersion(release)
	if err != nil {
		panic(err) // A mistake in this package's tables.
	}
	for i := range v {
		if v[i] != other[i] {
			return v[i] < other[i]
		}
	}
	return false
}

// within reports whether v is at least since and older than until; an empty
// since means from the beginning, and an empty until that the thing still exists.
func (v Version) within(since, until string) bool {
	return (since == "" || !v.before(since)) && (until == "" || v.before(until))
}
