package accuracy

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/internal/test/race"
)

var (
	flagMode  = flag.String("accuracy", "sample", "sample: a stratified sample; quick: each story of a set once, as a table; full: all sets, and docs/why/accuracy.md")
	flagSet   = flag.String("accuracy.set", "tuning", "of quick: tuning, tuning-healthy, heldout, healthy or faults")
	flagRun   = flag.String("accuracy.run", "", "of quick: only the stories whose name begins with this")
	flagHours = flag.Float64("accuracy.hours", 10000, "engine-hours of healthy servers")
	flagDump  = flag.String("accuracy.dump", "", "of quick: a file for a line per scrape (CSV), with all signals")
	flagDate  = flag.String("accuracy.date", "", "of full: the date on the page; empty for none")
)

const page = "../../../docs/why/accuracy.md"

// explored is a watched story with its truth.
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

// report runs all stories and scores them.
func report(t *testing.T, held, tuned, faults, healthy []Story) *Report {
	t.Helper()
	r := &Report{
		Held: make([]Result, len(held)), Tuned: make([]Result, len(tuned)),
		HealthyKinds: map[string]float64{}, Faults: map[string]Share{},
	}
	scored := func(to []Result) func(int, explored) {
		return func(i int, e explored) { to[i] = score(e.story, e.truth, e.reported) }
	}
	all(t, "held out", held, false, scored(r.Held))
	all(t, "tuning", tuned, false, scored(r.Tuned))
	all(t, "faults", faults, false, func(_ int, e explored) {
		share, sum := faultReported(e.story, e.reported), r.Faults[e.story.Group]
		r.Faults[e.story.Group] = Share{sum.Right + share.Right, sum.Of + share.Of}
	})
	all(t, "healthy", healthy, false, func(_ int, e explored) {
		alarms, hours := falseAlarms(e.story, e.truth, e.reported)
		r.Alarms.Alarms = append(r.Alarms.Alarms, alarms...)
		r.Alarms.Hours += hours
		r.HealthyKinds[e.story.Group] += hours
	})
	slices.SortFunc(r.Alarms.Alarms, func(a, b Alarm) int {
		return strings.Compare(fmt.Sprintf("%s %012.0f", a.Story, a.At), fmt.Sprintf("%s %012.0f", b.Story, b.At))
	})
	return r
}

// TestAccuracy measures the diagnosis. Without flags it is a sample, which fails only
// if it refutes a bar. With -accuracy=full it runs everything, writes
// docs/why/accuracy.md and fails if a bar is missed.
func TestAccuracy(t *testing.T) {
	_, diagnoses := catalog.ByName(metricSeverity)
	require.True(t, diagnoses, "the catalogue has no %s: nothing would be measured", metricSeverity)
	switch {
	case *flagMode == "full":
		full(t)
	case *flagMode != "sample":
		t.Skip("-accuracy=" + *flagMode)
	default:
		race.SkipSequential(t)
		sample(t)
	}
}

func full(t *testing.T) {
	t.Helper()
	r := report(t, heldOutStories(), tuningStories(), faultStories(), healthyStories(Healthy, *flagHours))
	r.Command = "make accuracy"
	if *flagHours != 10000 {
		r.Command += fmt.Sprintf(" ACCURACY_HOURS=%g", *flagHours)
	}
	r.Machine = fmt.Sprintf("%s/%s, %d processors", runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
	r.Date = *flagDate
	text := r.Page()
	require.NoError(t, os.WriteFile(page, []byte(text), 0o644))
	fmt.Println(text)
	held := Summarize(r.Held)
	for _, bar := range Bars(&held, &r.Alarms) {
		assert.True(t, bar.Holds, "%s: wanted %s, seen %s", bar.Name, bar.Want, bar.Seen)
	}
}

// sample runs one story of each cause, some healthy hours and some faults. The stories
// are from the tuning sets, so that the held-out ones stay unseen during development.
// It is too small to show that a bar is met; it fails if it refutes one.
func sample(t *testing.T) {
	t.Helper()
	hours, every := 96.0, 1
	if testing.Short() {
		hours, every = 24, 4
	}
	var tuned []Story
	for i, s := range tuningStories()[:3*len(kinds)] {
		if i%3 == 1 && (i/3)%every == 0 {
			tuned = append(tuned, s)
		}
	}
	r := report(t, nil, tuned, faultStories()[:3], healthyStories(TuningHealthy, hours))
	s := Summarize(r.Tuned)
	for _, why := range Refuted(&s, &r.Alarms) {
		assert.Fail(t, "the diagnosis is less accurate than required", "%s\nreported in the harmful minutes: %v", why, s.Confusion)
	}
}
