// Package gpus plays simulated servers with simulated GPUs through receivers of both and the
// processor, and compares what is said about the GPUs with what was done to them: in the files of
// examples/scenarios, and in random stories, whose result is a part of lab/test/accuracy/results.md.
package gpus
