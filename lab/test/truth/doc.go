// Package truth tests one property: for every version of vLLM and every setup, what the
// processor derives equals the truth of the requests, lies within its stated bounds, or is
// absent.
//
// A Case is a simulated server of a version and a dialect under a load. Its pages go
// through our receiver and our processor in virtual time. The simulator's journal says
// what really happened. Truth is computed from the journal alone, at the instants of the
// scrapes; Rows has a function for each derived metric, and says in words how exact the
// metric has to be and why.
package truth
