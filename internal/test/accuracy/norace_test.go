//go:build !race

package accuracy

const raced = false
