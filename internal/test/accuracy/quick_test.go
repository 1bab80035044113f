package accuracy

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// chosen returns the stories of -accuracy.set whose names begin with -accuracy.run.
func chosen(t *testing.T) []Story {
	t.Helper()
	var out []Story
	for _, s := range Stories(Set(*flagSet), *flagHours) {
		if strings.HasPrefix(s.Name, *flagRun) {
			out = append(out, s)
		}
	}
	require.NotEmpty(t, out, "no story of -accuracy.set=%s begins with %q", *flagSet, *flagRun)
	return out
}

// all runs stories, as many at a time as there are processors.
func all(t *testing.T, name string, stories []Story, signals bool, done func(int, explored)) {
	t.Helper()
	var mu sync.Mutex
	t.Run(name, func(t *testing.T) {
		for i := range stories {
			t.Run(stories[i].Name, func(t *testing.T) {
				t.Parallel()
				e := carryOut(t, &stories[i], signals)
				mu.Lock()
				defer mu.Unlock()
				done(i, e)
			})
		}
	})
}

// TestQuick is for tuning the diagnosis: it runs each story once and prints a line for
// each. With -accuracy.dump it also writes a line for every scrape.
func TestQuick(t *testing.T) {
	if *flagMode != "quick" {
		t.Skip("only with -accuracy=quick")
	}
	stories := chosen(t)
	results := make([]Result, len(stories))
	var file *os.File
	hours := 0.0
	if *flagDump != "" {
		var err error
		file, err = os.Create(*flagDump)
		require.NoError(t, err)
		defer file.Close()
	}
	all(t, "runs", stories, file != nil, func(i int, e explored) {
		results[i] = score(e.story, e.truth, e.reported)
		if strings.HasSuffix(*flagSet, string(Healthy)) {
			found, of := falseAlarms(e.story, e.truth, e.reported)
			hours += of
			for _, a := range found {
				fmt.Printf("%s (%s), %.0f s: severity %d, %s\n", a.Story, e.story.Group, a.At, a.Severity, a.Label)
			}
		}
		if share := faultReported(e.story, e.reported); share.Of > 0 && *flagSet == string(Faults) {
			fmt.Printf("%s: reported at %.0f of %.0f scrapes\n", e.story.Name, share.Right, share.Of)
		}
		if file != nil {
			require.NoError(t, dump(file, e.story, e.truth, e.reported))
		}
	})
	if hours > 0 {
		fmt.Printf("%.0f healthy hours\n", hours)
		return
	}
	fmt.Printf("%-22s %5s %5s %5s %6s %6s  %-55s | %s\n", "run", "score", "right", "top2", "delay", "noisy", "true in harmful minutes", "reported in them")
	for i := range results {
		r := &results[i]
		right, top := 0, 0
		for _, v := range r.Verdicts {
			if v.Right {
				right++
			}
			if v.TopTwo {
				top++
			}
		}
		fmt.Printf("%-22s %5d %5d %5d %6.1f %3d/%2d  %-55s | %s\n", r.Story.Name, len(r.Verdicts), right, top, r.Delay,
			r.Noisy, r.Quiet, counted(r.Harmful), counted(r.Reported))
	}
}
