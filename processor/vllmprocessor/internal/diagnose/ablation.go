package diagnose

import (
	"fmt"
	"slices"
)

// without names the part of the method that this build leaves out; empty leaves out nothing.
// Only the linker sets it, for the ablations on the accuracy page ("make ablations"):
//
//	go build -ldflags "-X github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/diagnose.without=lindley"
//
// It is not a setting, because no user has a reason to leave out a part, and a part that can be
// turned off has to be tested with every other setting.
var without string

// part is a part of the method whose use an ablation measures. Its name is that on the
// accuracy page.
type part string

// The parts of the method. The method asks ablated at one place for each.
const (
	// partFixedPoint is the expectation of step, prefill and queue from rates that a fault does
	// not change.
	partFixedPoint part = "fixed_point"
	// partConditionalGates are the tests of a change given the work of the window.
	partConditionalGates part = "conditional_gates"
	// partLindley is the backlog that arrivals alone explain.
	partLindley part = "lindley"
	// partSequential is the evidence that adds up over windows that do not overlap.
	partSequential part = "sequential"
	// partObjectivesSequential is the same for objectives.
	partObjectivesSequential part = "objectives_sequential"
	// partSlowReference is the reference over days beside the baseline.
	partSlowReference part = "slow_reference"
	// partPeers is the comparison with the other engines of a pool at equal work.
	partPeers part = "peers"
	// partLearningByFactor is that learning stops for what may have changed, and goes on for the
	// rest.
	partLearningByFactor part = "learning_by_factor"
	// partFloor is what is reported as broken before there is a baseline.
	partFloor part = "floor"
)

// parts are all of them, in the order of the page.
var parts = []part{
	partFixedPoint, partConditionalGates, partLindley, partSequential, partObjectivesSequential, partSlowReference, partPeers,
	partLearningByFactor, partFloor,
}

// leftOut is the part that is left out. A wrong name ends the program when it starts: a
// measurement of the whole method under the name of an ablation would show that the part has
// no use.
var leftOut = mustPart(without)

// mustPart is the part with a name. It panics if there is none; no name means no part.
func mustPart(name string) part {
	if name != "" && !slices.Contains(parts, part(name)) {
		panic(fmt.Sprintf("diagnose.without=%q, which the linker set, is not a part of the method; the parts are %q", name, parts))
	}
	return part(name)
}

// ablated reports whether this build leaves out a part.
func ablated(p part) bool { return p == leftOut }
