package history

import (
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/rulestore"
)

// Firing is one time in which an alert fires. Times are since the begin of the story.
type Firing struct {
	Alert    string
	Labels   labels.Labels
	From, To time.Duration
	// Lasts is true if it still fires at the end; To is the end then.
	Lasts bool
}

// String returns the alert with its labels and its times.
func (f Firing) String() string {
	return fmt.Sprintf("%s %s from %s to %s", f.Alert, f.Labels, f.From, f.To)
}

// Rules evaluates rule files over the whole story with Prometheus's rule engine, and
// stores the results. Groups without an interval are evaluated every 15 s. A rule that
// cannot be evaluated, or a template that cannot be expanded, fails the test.
func (s *Store) Rules(tb testing.TB, begin, end time.Time, files ...string) []Firing {
	tb.Helper()
	return s.RulesEvery(tb, begin, end, 15*time.Second, files...)
}

// RulesEvery is Rules with another interval of groups that have none.
func (s *Store) RulesEvery(tb testing.TB, begin, end time.Time, step time.Duration, files ...string) []Firing {
	tb.Helper()
	e, errs := rulestore.NewEvaluation(tb.Context(), s.Store, begin, step, files...)
	require.Empty(tb, errs)
	require.NoError(tb, e.Until(tb.Context(), end))
	all, problems, dropped := e.Finish(end)
	require.Empty(tb, problems)
	require.Zero(tb, dropped)
	out := make([]Firing, len(all))
	for i, f := range all {
		out[i] = Firing{Alert: f.Alert, Labels: f.Labels, From: f.From.Sub(begin), To: f.To.Sub(begin), Lasts: f.Lasts}
	}
	return out
}
