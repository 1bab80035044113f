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

	"github.com/otelcol-vllm/otelcol-vllm/internal/test/race"
)

const results = "fitted.tsv"

// tableSeeds is the number of seeds in the table. None of them is one that the fit looked at.
const tableSeeds = 9

// TestTheTableIsCurrent compares the generator with the traces. With -fit it writes the table.
func TestTheTableIsCurrent(t *testing.T) {
	race.SkipSequential(t)
	want := table(t)
	if *fitFlag {
		require.NoError(t, os.WriteFile(results, []byte(want), 0o644))
		return
	}
	have, err := os.ReadFile(results)
	require.NoError(t, err)
	assert.Equal(t, want, string(have), "go test ./lab/vllmsim/traffic -run TheTable -fit writes the table")
}

// table has a line for each kind and statistic: its value in the trace, and the median, the least and the greatest of
// the seeds.
func table(tb testing.TB) string {
	tb.Helper()
	var b strings.Builder
	b.WriteString("kind\tstatistic\ttrace\tgenerated\tlowest\thighest\n")
	for _, name := range Names() {
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
				continue
			}
			var values []float64
			for _, one := range all {
				values = append(values, one[i].Value)
			}
			slices.Sort(values)
			fmt.Fprintf(&b, "%s\t%s\t%s\t%s\t%s\t%s\n", name, statistic.Name, Number(statistic.Value), Number(values[tableSeeds/2]), Number(values[0]), Number(values[tableSeeds-1]))
		}
	}
	return b.String()
}
