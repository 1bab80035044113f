// Package faults runs the built collector against servers that go wrong, one
// fault after the other, together with servers that work. It knows what each working
// server has answered, so that one lost scrape is seen, and measures memory, the
// time that SIGTERM takes and what the log says. "make faults" runs every fault
// and writes docs/why/faults.md; "make e2e" runs the short form.
//
// A Fault is an entry of a table: how it begins, and what must follow from it. A
// World starts what the faults and the working servers need, on loopback, on ports
// that the system picks.
package faults
