//go:build !race

package plot

const raced = false
