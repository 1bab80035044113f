package emit

import "github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/exposition"

// reading records how complete a scrape was: whether a series that it lacks is absent.
type reading struct {
	// partial is true if the end of the body may be missing.
	partial bool
	// badLines is the number of sample lines that could not be read.
	badLines int
}

// reading returns how complete the scrape is.
func (s Scrape) reading() reading {
	r := reading{partial: s.Open, badLines: s.badLines()}
	for _, problem := range s.Snapshot.Problems {
		switch problem.Reason {
		case exposition.ReasonTooManyBadLines, exposition.ReasonTooManyLines, exposition.ReasonMissingEOF:
			r.partial = true
		}
	}
	return r
}

// badLines counts the lines of samples that could not be read.
func (s Scrape) badLines() int {
	n := 0
	for _, problem := range s.Snapshot.Problems {
		switch problem.Reason {
		case exposition.ReasonBadName, exposition.ReasonBadLabels, exposition.ReasonBadValue,
			exposition.ReasonBadTimestamp, exposition.ReasonWrongType, exposition.ReasonNameTooLong,
			exposition.ReasonLabelNameTooLong, exposition.ReasonLabelValueTooLong:
			n++
		}
	}
	return n
}
