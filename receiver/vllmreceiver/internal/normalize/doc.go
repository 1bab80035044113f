// Package normalize decides what a body's families are called, so that the
// same thing has the same name in every version and dialect of vLLM.
//
// It works on the structure of a body alone (an exposition.Layout), never on
// its numbers, and returns a Plan: the metrics to emit, each point with its
// attributes and the slots at which its numbers stand. A Plan can therefore be
// remembered as long as the layout lives; only package emit looks at numbers.
//
// The rules are those of docs/reference/naming.md:
//
//   - a known family gets its name, unit and kind from the catalogue, whatever
//     prefix its deployment put before it;
//   - of an old and a new family that mean the same, the new one wins;
//   - the TYPE line decides the kind, and a family whose TYPE contradicts the
//     catalogue is not that metric;
//   - a gateway's generations share one name, its labels unify, and those
//     without limit are added up;
//   - a router's families never stand beside those of its servers;
//   - an unknown family passes through under the mechanical form of the rule.
package normalize
