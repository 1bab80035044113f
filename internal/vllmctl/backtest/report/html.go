package report

import "io"

// HTML writes the report as a page.
func HTML(w io.Writer, r *Report) error { return nil }
