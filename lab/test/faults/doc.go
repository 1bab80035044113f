// Package faults runs the built collector against servers that go wrong, one fault after
// the other, together with servers that work. It records what each working server has
// answered, so that a single lost scrape is detected. It measures the memory and the time
// after SIGTERM, and checks the log. "make faults" runs every fault and writes
// docs/why/faults.md; "make e2e" runs the short form.
//
// A Fault is an entry of a table: how it begins, and what must be reported. A World starts
// what the faults and the working servers need, on loopback, on ports that the system
// picks.
package faults
