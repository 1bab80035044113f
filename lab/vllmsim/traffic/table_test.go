package traffic

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/pageparts"
	"github.com/otelcol-vllm/otelcol-vllm/internal/test/race"
)

const page = "../../../docs/simulator.md"

// tableSeeds is the number of seeds in the table. None of them is one that the fit looked at.
const tableSeeds = 9

// TestTheTableOfTheDocsIsCurrent compares the generator with the traces. With -fit it writes
// the table.
func TestTheTableOfTheDocsIsCurrent(t *testing.T) {
	race.SkipSequential(t)
	have, err := os.ReadFile(page)
	require.NoError(t, err)
	want, err := pageparts.Replace(have, map[string]string{"traffic": table(t)})
	require.NoError(t, err)
	if *fitFlag {
		require.NoError(t, os.WriteFile(page, want, 0o644))
		return
	}
	assert.Equal(t, string(want), string(have), "go test ./lab/vllmsim/traffic -run TheTable -fit writes the table")
}

// table has a row for each statistic and a column for each kind.
func table(tb testing.TB) string {
	tb.Helper()
	names := []string{"conversation", "long-context", "tenants", "reasoning", "batch", "assistant"}
	require.ElementsMatch(tb, Names(), names)
	cells := make([][]string, len((&Statistics{}).All()))
	for _, name := range names {
		published := trace(tb, kinds[name].trace)
		want := Measure(published)
		seconds := published.Span
		if len(published.Conversations) > 0 {
			seconds = 86400
		}
		var all [][]Statistic
		for seed := range uint64(tableSeeds) {
			generated, err := Generate(name, seed+1, 0, seconds)
			require.NoError(tb, err)
			got := Measure(generated)
			all = append(all, got.All())
		}
		for i, statistic := range want.All() {
			if math.IsNaN(statistic.Value) {
				cells[i] = append(cells[i], "")
				continue
			}
			var values []float64
			for _, one := range all {
				values = append(values, one[i].Value)
			}
			slices.Sort(values)
			cells[i] = append(cells[i], fmt.Sprintf("%s: **%s** (%s to %s)", Number(statistic.Value), Number(values[tableSeeds/2]), Number(values[0]), Number(values[tableSeeds-1])))
		}
	}
	var b strings.Builder
	b.WriteString("| |")
	for _, name := range names {
		fmt.Fprintf(&b, " `%s` |", name)
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(names)) + "\n")
	for i, statistic := range (&Statistics{}).All() {
		fmt.Fprintf(&b, "| %s | %s |\n", statistic.Name, strings.Join(cells[i], " | "))
	}
	return b.String()
}
