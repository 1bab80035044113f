package exposition

import "bytes"

// WholeLines returns the complete lines of a body whose sender did not declare its end. A
// last line without a line end may be cut within its number, and such a number cannot be
// recognized. Only OpenMetrics marks the end of a body; complete reports whether the mark
// is present.
func WholeLines(body []byte, d Dialect) (whole []byte, complete bool) {
	if d == DialectOpenMetrics && endsWithEOF(body) {
		return body, true
	}
	return body[:bytes.LastIndexByte(body, '\n')+1], false
}
