package truth

import (
	"flag"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

var (
	full = flag.Bool("truth.full", false, "test every version with every setup")
	only = flag.String("truth.only", "", "test the cases whose name contains this")
)

// chosen are the cases of this run. The short form has each setup and each version several
// times, but not every pair.
func chosen() (cases []*Case) {
	for i, c := range Cases() {
		switch {
		case *only != "":
			if strings.Contains(c.Name(), *only) {
				cases = append(cases, c)
			}
		case *full || i%11 == 0:
			cases = append(cases, c)
		}
	}
	return cases
}

func TestEverythingDerivedIsTrue(t *testing.T) {
	for _, c := range chosen() {
		t.Run(c.Name(), func(t *testing.T) {
			t.Parallel()
			v := Judge(Play(t, c))
			for _, wrong := range v.Wrong[:min(len(v.Wrong), 20)] {
				assert.Fail(t, wrong)
			}
		})
	}
}
