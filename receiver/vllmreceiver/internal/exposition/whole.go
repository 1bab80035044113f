package exposition

import "bytes"

// WholeLines returns what can be believed of a body whose sender did not declare
// where it ends: the lines that end. The last one without a line end may have been
// cut inside its number, and a number that lost its last digits looks like any
// other. Only OpenMetrics marks its end in the text; complete reports whether the
// mark is there.
func WholeLines(body []byte, d Dialect) (whole []byte, complete bool) {
	if d == DialectOpenMetrics && endsWithEOF(body) {
		return body, true
	}
	return body[:bytes.LastIndexByte(body, '\n')+1], false
}
