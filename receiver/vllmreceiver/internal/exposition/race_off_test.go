//go:build !race

package exposition

const raceEnabled = false
