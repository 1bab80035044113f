//go:build !race

package race

// Enabled is true if the race detector is on.
const Enabled = false
