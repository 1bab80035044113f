package signal

import "regexp"

// settled is how many windows with steps as long as before show that a new version is not slower:
// a change of 10 % is found within ten of them.
const settled = 20

// Upgrade notes that the server has another version from now on.
func (b *Baseline) Upgrade(to string) {
	if b.Version != "" && b.Windows > 0 {
		b.Earlier, b.Since = b.Version, 0
	}
	b.Version = to
}

// settle counts a window that was learned with the present version.
func (b *Baseline) settle() {
	if b.Earlier == "" {
		return
	}
	b.Since++
	if b.Since >= settled {
		b.Earlier, b.Since = "", 0
	}
}

// release matches the versions that a baseline is learned from.
var release = regexp.MustCompile(`^\d{1,9}(\.\d{1,9}){2}$`)

// soundVersion reports whether a stored version is one that a server can have had. It stands in
// lines of the log, and whoever can write the storage could otherwise write those as well.
func soundVersion(version string) bool { return version == "" || release.MatchString(version) }
