package catalog

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var updateReleased = flag.Bool("update-released", false, "add new metrics to the list of released names")

const releasedFile = "testdata/released.txt"

// The name, kind and unit of a released metric never change: dashboards, alerts and stored
// data depend on them. docs/reference/naming.md describes how to make a change
// nevertheless.
func TestReleasedNamesStay(t *testing.T) {
	var now []string
	for _, m := range All() {
		now = append(now, fmt.Sprintf("%s %s %q", m.Name, m.Kind, m.Unit))
	}
	content, err := os.ReadFile(releasedFile)
	require.NoError(t, err)
	released := strings.Split(strings.TrimSpace(string(content)), "\n")
	for _, line := range released {
		if !slices.Contains(now, line) {
			t.Errorf("%s was released and is gone or differs; put the change behind a feature gate (docs/reference/naming.md, Changing a name)", line)
		}
	}
	if *updateReleased {
		all := slices.Compact(slices.Sorted(slices.Values(append(slices.Clone(released), now...))))
		require.NoError(t, os.WriteFile(releasedFile, []byte(strings.Join(all, "\n")+"\n"), 0o600))
	}
}
