// Package normalize names the families of a body, so that a metric has the same
// name in every version and dialect of vLLM.
//
// It reads only the structure of a body (an exposition.Layout) and not its numbers.
// It returns a Plan: the metrics to emit, and for each point its attributes and the
// slots of its numbers. A Plan is therefore valid as long as the layout is; only
// package emit reads numbers.
//
// The rules are those of docs/reference/naming.md:
//
//   - a known family gets its name, unit and kind from the catalogue, whatever
//     prefix its deployment adds;
//   - if a body has a metric under an old and a new name, the new one is emitted;
//   - the TYPE line decides the kind, and a family whose TYPE contradicts the
//     catalogue is another metric;
//   - all generations of a gateway have the same metric names and attributes, and
//     series are added up over labels with unlimited values;
//   - the families of a router get names of their own, because they repeat those of
//     its servers;
//   - an unknown family gets a name by a fixed rule.
package normalize
