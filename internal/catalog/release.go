package catalog

import (
	"strconv"
	"strings"
)

// Release is the three numbers of a vLLM version.
type Release [3]int

// ParseRelease reads the numbers of a Python version such as "0.10.1.1", "0.20.0rc1" or
// "0.9.0.dev1+g1234". These are not semantic versions, so no library for those can read
// them. ok is false where the text begins with no number.
func ParseRelease(s string) (v Release, ok bool) {
	for i, part := range strings.SplitN(strings.TrimPrefix(s, "v"), ".", 4) {
		if i == len(v) {
			break
		}
		end := 0
		for end < len(part) && part[end] >= '0' && part[end] <= '9' {
			end++
		}
		if end == 0 {
			break
		}
		n, err := strconv.Atoi(part[:end])
		if err != nil {
			return v, false
		}
		v[i] = n
		ok = true
		if end < len(part) {
			break
		}
	}
	return v, ok
}

// Compare returns a negative number where r is older than other, 0 where they are equal,
// and a positive number where r is newer.
func (r Release) Compare(other Release) int {
	for i := range r {
		if r[i] != other[i] {
			return r[i] - other[i]
		}
	}
	return 0
}

// Within reports whether the release is at least since and older than until. An empty
// bound is open.
func (r Release) Within(since, until string) bool {
	if low, ok := ParseRelease(since); ok && r.Compare(low) < 0 {
		return false
	}
	if high, ok := ParseRelease(until); ok && r.Compare(high) >= 0 {
		return false
	}
	return true
}
