package gpus

import (
	"flag"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/pageparts"
	"github.com/otelcol-vllm/otelcol-vllm/internal/test/race"
)

const accuracyPage = "../accuracy/results.md"

var (
	flagStories = flag.Int("gpus.stories", 1, "how many random stories of each kind are played")
	flagWrite   = flag.Bool("gpus.write", false, "play the held-out seeds, and write their table into lab/test/accuracy/results.md")
	flagOnly    = flag.String("gpus.only", "", "play one kind only, with a line for each story")
)

// score is what was said in the stories of a kind.
type score struct {
	kind kind
	// Reports of slow_steps from one and a half minutes after the first one, by what their detail is.
	reports, right, wrong, none int
}

// grace is how long a report may lack a detail: exporters have a sample every 30 s.
const grace = 90 * time.Second

// add adds the reports of a story.
func (s *score) add(r *random, reports []said) string {
	first := slices.IndexFunc(reports, func(one said) bool { return one.at >= r.onset && one.slow && one.harm })
	if first < 0 {
		return "silent"
	}
	found := map[string]int{}
	for _, one := range reports[first:] {
		if !one.slow || !one.harm || one.at > r.end {
			continue
		}
		bad := !(r.kind.clean && one.detail == notThrottled) && one.detail != r.kind.right && slices.Contains(append([]string{notThrottled}, ofGPUs...), one.detail)
		if one.at < reports[first].at+grace {
			continue
		}
		found[one.detail]++
		s.reports++
		switch {
		case one.detail == r.kind.right:
			s.right++
		case bad:
			s.wrong++
		default:
			s.none++
		}
	}
	return fmt.Sprint(found)
}

func percent(n, of int) string {
	if of == 0 {
		return ""
	}
	return fmt.Sprintf("%.0f", 100*float64(n)/float64(of))
}

// row is the line of the table.
func (s *score) row() string {
	right := "`" + s.kind.right + "`"
	if s.kind.right == "" {
		right = "no detail"
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %s |", s.kind.about, right, percent(s.right, s.reports), percent(s.wrong, s.reports), percent(s.none, s.reports))
}

// measure plays so many stories of each kind.
func measure(t *testing.T, seed uint64, stories int) []score {
	t.Helper()
	scores := make([]score, len(kinds))
	for i, k := range kinds {
		scores[i] = score{kind: k}
	}
	var mu sync.Mutex
	t.Run("stories", func(t *testing.T) {
		limit := make(chan struct{}, runtime.GOMAXPROCS(0))
		for i, k := range kinds {
			if *flagOnly != "" && *flagOnly != k.name {
				continue
			}
			for n := range stories {
				t.Run(fmt.Sprintf("%s-%d", k.name, n), func(t *testing.T) {
					t.Parallel()
					limit <- struct{}{}
					defer func() { <-limit }()
					r := draw(k, seed, uint64(n))
					a := play(t, r.story)
					mu.Lock()
					defer mu.Unlock()
					line := scores[i].add(&r, a.all["vllm-0:8000"])
					if *flagOnly != "" {
						c := r.story.Servers[0].Config
						t.Logf("%s: %s; %s, %v, %+v", r.story.Name, line, c.Hardware, c.Changes, *c.GPUs)
					}
				})
			}
		}
	})
	return scores
}

// Details are right far more often than wrong, in random stories of each kind. The published table
// is of more stories, with seeds of its own.
func TestDetailsAreRightInRandomStories(t *testing.T) {
	race.SkipSequential(t)
	if testing.Short() && !*flagWrite {
		t.Skip("some seconds for each kind")
	}
	seed := uint64(tuningSeed)
	if *flagWrite {
		seed = heldOutSeed
	}
	scores := measure(t, seed, *flagStories)
	right, wrong, reports := 0, 0, 0
	rows := []string{}
	for i := range scores {
		s := &scores[i]
		right, wrong, reports = right+s.right, wrong+s.wrong, reports+s.reports
		rows = append(rows, s.row())
		t.Log(s.row())
	}
	if *flagOnly != "" {
		return
	}
	require.Positive(t, reports)
	assert.Greater(t, right, reports*7/10, "right")
	// A power limit that is not counted is taken for a low clock.
	assert.LessOrEqual(t, wrong, reports/len(kinds)+reports/20, "wrong")
	if !*flagWrite || t.Failed() {
		return
	}
	text := fmt.Sprintf(head, *flagStories, heldOutSeed) + strings.Join(rows, "\n") + "\n"
	require.NoError(t, pageparts.Rewrite(accuracyPage, map[string]string{"gpus": text}))
}

// head is the text above the table.
const head = `The details of ` + "`slow_steps`" + ` that are about GPUs, in %d random stories of each kind, with seeds from %d. A server with
simulated GPUs and its exporter are read as in production; no real GPU was measured. A report
counts if it names ` + "`slow_steps`" + ` with severity 2 or more. An exporter with defaults does not report a power limit, so the report is ` + "`clocks_low`" + `.

| What is done | True | Right, %% | Wrong, %% | No detail, %% |
|---|---|---|---|---|
`
