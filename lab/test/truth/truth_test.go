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

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/internal/test/race"
)

var (
	full = flag.Bool("truth.full", false, "test every version with every setup")
	only = flag.String("truth.only", "", "test the cases whose name this regular expression matches")
)

// stride is the distance between two cases of the short form. It is prime, so that the
// short form has all setups and all versions, and not the same pairs again and again.
const stride = 71

// chosen are the cases of this run. The short form has each setup, but not with every
// version.
func chosen() (cases []*Case) {
	names := regexp.MustCompile(*only)
	for i, c := range Cases() {
		switch {
		case *only != "":
			if names.MatchString(c.Name()) {
				cases = append(cases, c)
			}
		case *full || i%stride == 0:
			cases = append(cases, c)
		}
	}
	return cases
}

// tally is a summary over cases.
type tally struct {
	mu                        sync.Mutex
	cases                     int
	compared, withheld, wrong map[string]int
	example                   map[string]string
}

func (a *tally) add(c *Case, v *Verdict) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.cases++
	for metric, n := range v.Compared {
		a.compared[c.Setup.Name+" "+metric] += n
	}
	for metric, n := range v.Withheld {
		a.withheld[c.Setup.Name+" "+metric] += n
	}
	for i := range v.Wrong {
		key := c.Setup.Name + " " + v.Wrong[i].Metric
		if a.wrong[key] == 0 {
			a.example[key] = v.Wrong[i].Text
		}
		a.wrong[key]++
	}
}

// String has a line for each kind of mistake, and the share of the values that were absent
// although there was something to derive.
func (a *tally) String() string {
	var b strings.Builder
	total := 0
	for _, n := range a.compared {
		total += n
	}
	fmt.Fprintf(&b, "%d cases, %d values are true\n", a.cases, total)
	for _, key := range slices.Sorted(maps.Keys(a.wrong)) {
		fmt.Fprintf(&b, "not true: %5d of %s: %s\n", a.wrong[key], key, a.example[key])
	}
	for _, key := range slices.Sorted(maps.Keys(a.withheld)) {
		n := a.withheld[key]
		fmt.Fprintf(&b, "absent: %5.1f %% of %s\n", 100*float64(n)/float64(n+a.compared[key]), key)
	}
	return b.String()
}

// For every version and every setup, what is derived equals the truth of the requests, lies
// within its stated bounds, or is absent. Where nothing is wrong with a server, it is not
// absent, and the diagnosis reports no failure.
func TestEverythingDerivedIsTrue(t *testing.T) {
	race.SkipSequential(t)
	sum := &tally{
		compared: map[string]int{}, withheld: map[string]int{}, wrong: map[string]int{}, example: map[string]string{},
	}
	t.Cleanup(func() { t.Log(sum) })
	for _, c := range chosen() {
		t.Run(c.Name(), func(t *testing.T) {
			t.Parallel()
			o := Play(t, c)
			v := Judge(o)
			sum.add(c, &v)
			for i := range min(len(v.Wrong), 5) {
				assert.Fail(t, v.Wrong[i].Text)
			}
			for _, metric := range absent(c, &v) {
				assert.Failf(t, "a value is absent although nothing is wrong", "%s: %s, %d times of %d", c.Name(), metric, v.Withheld[metric], v.Withheld[metric]+v.Compared[metric])
			}
			if c.Setup.Calm {
				for _, alarm := range FalseAlarms(o) {
					assert.Fail(t, alarm)
				}
			}
		})
	}
}

// Every derived metric has a truth, or a reason why it has none.
func TestEveryDerivedMetricHasATruth(t *testing.T) {
	for _, m := range catalog.All() {
		if m.EmittedBy != "processor" {
			continue
		}
		has := slices.ContainsFunc(rows, func(r Row) bool { return r.Metric == m.Name })
		assert.NotEqual(t, has, isOther(m.Name), "%s: want a row in lab/test/truth/rows.go, or a reason in Others there, and not both", m.Name)
	}
	for _, r := range rows {
		_, known := catalog.ByName(r.Metric)
		assert.True(t, known, r.Metric)
		assert.NotEmpty(t, r.Exact, r.Metric)
	}
}

// The short form has every setup and every version.
func TestTheShortFormHasEverySetup(t *testing.T) {
	had := map[string]bool{}
	for i, c := range Cases() {
		if i%stride == 0 {
			had[c.Setup.Name] = true
			had[c.Config.Dialect] = true
		}
	}
	for _, s := range setups {
		assert.True(t, had[s.Name], s.Name)
	}
	assert.Len(t, had, len(setups)+6, "all dialects")
}
