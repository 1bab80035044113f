package accuracy

import (
	"flag"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	flagMode  = flag.String("accuracy", "sample", "sample: a stratified sample; quick: each story of a set once, as a table; full: all sets, and docs/accuracy.md")
	flagSet   = flag.String("accuracy.set", "tuning", "tuning, heldout, healthy, faults or all")
	flagRun   = flag.String("accuracy.run", "", "only the stories whose name begins so")
	flagHours = flag.Float64("accuracy.hours", 10000, "engine-hours of healthy servers")
	flagDump  = flag.String("accuracy.dump", "", "a file for a line per scrape (CSV), with all signals")
)

// explored is a story that was watched, with its truth.
type explored struct {
	watched
	truth []Bin
}

func carryOut(t *testing.T, s *Story, signals bool) explored {
	t.Helper()
	w := watch(t, s, signals)
	r, err := explore(s, w.actual)
	require.NoError(t, err)
	return explored{w, truth(s, r)}
}
