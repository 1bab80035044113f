// Package runbooks has only tests: the queries that the runbooks give to paste are run on
// simulated incidents and show what the pages say, and their commands are pasted.
package runbooks
