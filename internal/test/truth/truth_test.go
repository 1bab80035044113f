package truth

import (
	"flag"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
)

var (
	full = flag.Bool("truth.full", false, "test every version with every setup")
	only = flag.String("truth.only", "", "test the cases whose name this regular expression matches")
)

// chosen are the cases of this run. The short form has each setup and each version several
// times, but not every pair.
func chosen() (cases []*Case) {
	chosenOnly := regexp.MustCompile(*only)
	for i, c := range Cases() {
		switch {
		case *only != "":
			if chosenOnly.MatchString(c.Name()) {
				cases = append(cases, c)
			}
		case *full || i%61 == 0:
			cases = append(cases, c)
		}
	}
	return cases
}

// tally is a summary over cases.
type tally struct {
	mu                 sync.Mutex
	cases              int
	compared, withheld map[string]int
	wrong              map[string]int
	example            map[string]string
}

func (a *tally) add(c *Case, v *Verdict) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.cases++
	for metric, n := range v.Compared {
		a.compared[metric] += n
	}
	for metric, n := range v.Withheld {
		a.withheld[c.Setup.Name+" "+metric] += n
	}
	for _, m := range v.Wrong {
		if key := c.Setup.Name + " " + m.Metric; a.wrong[key] == 0 {
			a.example[key] = m.Text
		}
		a.wrong[c.Setup.Name+" "+m.Metric]++
	}
}

func (a *tally) String() string {
	var b strings.Builder
	total := 0
	for _, n := range a.compared {
		total += n
	}
	fmt.Fprintf(&b, "%d cases, %d values compared\n", a.cases, total)
	for _, key := range slices.Sorted(maps.Keys(a.wrong)) {
		fmt.Fprintf(&b, "WRONG %5d %s: %s\n", a.wrong[key], key, a.example[key])
	}
	for _, key := range slices.Sorted(maps.Keys(a.withheld)) {
		fmt.Fprintf(&b, "withheld %5d %s\n", a.withheld[key], key)
	}
	return b.String()
}

func TestEverythingDerivedIsTrue(t *testing.T) {
	sum := &tally{compared: map[string]int{}, withheld: map[string]int{}, wrong: map[string]int{}, example: map[string]string{}}
	t.Cleanup(func() { t.Log(sum) })
	for _, c := range chosen() {
		t.Run(c.Name(), func(t *testing.T) {
			t.Parallel()
			v := Judge(Play(t, c))
			sum.add(c, &v)
			for _, wrong := range v.Wrong[:min(len(v.Wrong), 5)] {
				assert.Fail(t, wrong.Text)
			}
		})
	}
}
