// Package upgrade tests that an operator can go from one release to the next one and back. It
// compares what the last release wrote and emitted with what this tree reads and emits: the
// configurations, the files on disk, and the names, kinds, units and attribute keys of metrics.
//
// The last release is known in two ways. testdata/upgrade/VERSION at the root of the repository
// has what it wrote, so that most tests need nothing but this tree. "make upgrade" builds the
// release from the history of git and runs both programs in turns on one storage.
package upgrade
