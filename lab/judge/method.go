package judge

import (
	"context"

	"go.opentelemetry.io/collector/pdata/pmetric"
)

// Method judges servers by what their scrapes show. On a tape it can take the place of the processor, so that
// others are measured on the same stories.
type Method interface {
	// Scraped takes a scrape of a server, so many seconds after the beginning, and returns what is reported of
	// the server from then on. Servers count from 0. Scrapes come in the order of their times, and may be changed.
	// An error ends the story.
	Scraped(ctx context.Context, server int, at float64, metrics pmetric.Metrics) (Report, error)
}

// Report is what a method reports of a server.
type Report struct {
	// Condition is one of the diagnosis, Cause the primary cause; empty without one.
	Condition, Cause string
	// Severity is 0 for nothing to do, 1 for a notice, 2 for a warning and 3 for a page.
	Severity int
}

func (r *Report) report() report {
	out := report{condition: r.Condition, severity: r.Severity}
	if r.Cause != "" {
		out.causes = []Cause{{Name: r.Cause, Role: "primary"}}
	}
	return out
}
