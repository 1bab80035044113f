// Command mutate measures how well the tests protect the product: it draws
// mutations of the code by a seed, runs the tests against each, and writes a
// table of what the tests did not notice. "make mutate-sample" starts it.
//
// A mutation is one changed operator: < becomes <=, == becomes !=, && becomes ||,
// + becomes -. Gremlins (github.com/go-gremlins/gremlins) lists all that are
// possible; this program draws from its list and runs the tests. Gremlins itself
// does both only for a whole folder ("make mutate PKG=..."): it cannot draw a
// sample, and it cannot run the parent's tests for what a package's own tests let
// pass.
//
// A mutation is drawn from all of them with the same chance, so that each package
// takes part in proportion to its operators. The product is what a distribution
// compiles: the components and what they import of this module, without generated
// files. Operators in tests, commands, the simulator and internal/test are not
// drawn. A mutation that does not compile is replaced by the next one drawn.
//
// The tests of the mutation's own package run first. Only where they pass, the
// tests of the parent run: the component's package for a package below its
// internal folder. They run with -short. Packages of internal/ at the top have no
// parent. They must pass without a mutation. A mutation on which the tests fail, or do not end in time, is killed.
package main
