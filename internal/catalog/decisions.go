package catalog

// Decision is what is done about defects in what the project computes. decisions.yaml
// explains the fields.
type Decision struct {
	// Of are derived metrics, signals of the diagnosis as "signal:NAME", and rules of the
	// diagnosis as "rule:NAME".
	Of      []string
	Defects []DefectID
	// Verdict is "unaffected", "corrected", "bounded" or "withheld".
	Verdict string
	How     string
	// Test is the package below the root and the test that fails without the decision.
	Test string
}

// Decisions returns all decisions in the order of the file. The slice is the table
// itself: do not change it.
func Decisions() []Decision { return decisions }
