//go:build !unix

package screen

// stop does nothing: this system has no job control.
func stop() {}
