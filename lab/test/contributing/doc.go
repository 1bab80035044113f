// Package contributing tests the worked examples of CONTRIBUTING.md: their blocks are applied to a
// copy of the tree, in the order in which a reader pastes them. With -contributing.run each command
// of them is run as well, which takes minutes (make contributing).
package contributing
