// Package stories makes the stories by which the diagnosis is measured. Every story is
// played on a background: a model on its hardware, traffic, and a load as a share of the
// knee. Stories with a fault and healthy ones share the backgrounds.
//
// A story depends on its name and on the tables here, and on nothing else: a first look is a
// part of the published set, and its results count for both.
package stories
