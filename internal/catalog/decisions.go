package catalog

// Decision is what is done about defects in what the project computes, as far as programs read it.
// decisions.yaml has all, with the reasons.
type Decision struct {
	// Of are signals of the diagnosis as "signal:NAME", and "rule:learned".
	Of      []string
	Defects []DefectID
	// Verdict is "unaffected", "corrected", "bounded" or "withheld".
	Verdict string
}

// Decisions returns all decisions in the order of the file. The slice is the table
// itself: do not change it.
func Decisions() []Decision { return decisions }
