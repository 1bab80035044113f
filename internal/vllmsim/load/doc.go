// Package load is the load model behind the stand-in server: an arrival
// process and an engine that works in steps, both advanced by a time that the
// caller hands in.
//
// It is deliberately small. The shape of the step time follows the roofline
// rule that the project specifies for its simulated engine (weights or
// arithmetic, plus reading the KV cache), without tensor parallelism and
// without modelling single KV blocks of the prefix cache. The only things that
// other packages use are New, Engine.AdvanceTo and Stats, so that a finer
// engine can take its place.
//
// Everything is deterministic: the same Config gives the same Stats at the
// same time, however many calls of AdvanceTo lead there.
package load
