package window

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var updateDocument = flag.Bool("update", false, "rewrite the table of docs/why/percentiles.md")

// bucketSets are vLLM's bounds since 0.8.4, each with a value that is typical there.
var bucketSets = []struct {
	name    string
	typical float64
	bounds  []float64
}{
	{"time_to_first_token", 0.2, []float64{
		0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75,
		1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560,
	}},
	{"inter_token_latency", 0.02, []float64{
		0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75,
		1, 2.5, 5, 7.5, 10, 20, 40, 80,
	}},
	{"e2e_request_latency", 6, []float64{
		0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680,
	}},
}

var tableQuantiles = []float64{0.5, 0.95, 0.99}

// expected is the histogram of very many observations, scaled to n: no chance in it.
func expected(d distribution, bounds []float64, n float64) *Histogram {
	h := &Histogram{Bounds: bounds, Count: n, Sum: n * d.mean, HasSum: true}
	last := 0.0
	for _, bound := range bounds {
		share := d.share(bound)
		h.Counts = append(h.Counts, n*(share-last))
		last = share
	}
	h.Counts = append(h.Counts, n*(1-last))
	return h
}

// drawn is the histogram of n random observations, and their real quantiles.
func drawn(d distribution, bounds []float64, n int, r *rand.Rand) (*Histogram, func(q float64) float64) {
	h := &Histogram{Bounds: bounds, Counts: make([]float64, len(bounds)+1), Count: float64(n), HasSum: true}
	values := make([]float64, n)
	for i := range values {
		values[i] = d.quantile(r.Float64())
		h.Sum += values[i]
		bucket, _ := slices.BinarySearch(bounds, values[i])
		h.Counts[bucket]++
	}
	slices.Sort(values)
	return h, func(q float64) float64 { return values[int(math.Ceil(q*float64(n)))-1] }
}

// score collects absolute relative errors.
type score struct{ linear, constrained, n float64 }

func (s *score) judge(h *Histogram, q, truth float64) {
	linear, ok1 := h.Quantile(q)
	constrained, ok2 := h.MeanConstrained(q)
	if !ok1 || !ok2 {
		panic("no quantile")
	}
	s.linear += math.Abs(linear/truth - 1)
	s.constrained += math.Abs(constrained/truth - 1)
	s.n++
}

func percent(x float64) string { return fmt.Sprintf("%.1f %%", 100*x) }

func (s *score) columns() string {
	return percent(s.linear/s.n) + " | " + percent(s.constrained/s.n) + " |\n"
}

// positions move a distribution over a decade, so that no result hangs on where it
// happens to lie between two bounds.
func positions(typical float64) []float64 {
	var scales []float64
	for k := range 20 {
		scales = append(scales, typical*math.Pow(10, float64(k)/20-0.5))
	}
	return scales
}

// summary holds the means over all distributions and positions, one score a row.
type summary struct {
	table  string
	scores []score
}

// summarize measures histograms that observe makes, with the truth about each.
func summarize(observe func(d distribution, bounds []float64) (*Histogram, func(q float64) float64)) summary {
	var out strings.Builder
	out.WriteString("| histogram | quantile | linear | mean_constrained |\n|---|---|---|---|\n")
	var all []score
	for _, set := range bucketSets {
		rows := make([]score, len(tableQuantiles))
		for _, d := range distributions {
			for _, scale := range positions(set.typical) {
				h, truth := observe(scaled(d, scale), set.bounds)
				for i, q := range tableQuantiles {
					rows[i].judge(h, q, truth(q))
				}
			}
		}
		for i, q := range tableQuantiles {
			fmt.Fprintf(&out, "| %s | %v | %s", set.name, q, rows[i].columns())
		}
		all = append(all, rows...)
	}
	return summary{out.String(), all}
}

var expectedSummary = sync.OnceValue(func() summary {
	return summarize(func(d distribution, bounds []float64) (*Histogram, func(q float64) float64) {
		return expected(d, bounds, 10000), d.quantile
	})
})

var drawnSummary = sync.OnceValue(func() summary {
	r := rand.New(rand.NewPCG(7, 8))
	return summarize(func(d distribution, bounds []float64) (*Histogram, func(q float64) float64) {
		return drawn(d, bounds, 200, r)
	})
})

func TestMeanConstrainedIsBetterOnAverage(t *testing.T) {
	for name, measured := range map[string]summary{"expected": expectedSummary(), "drawn": drawnSummary()} {
		t.Run(name, func(t *testing.T) {
			for _, s := range measured.scores {
				assert.Less(t, s.constrained, s.linear, "\n%s", measured.table)
			}
		})
	}
}

// The table of the documentation is written by this test, with -update.
func TestPercentilesDocument(t *testing.T) {
	const path, start, end = "../../../../docs/why/percentiles.md", "<!-- accuracy: begin -->\n", "<!-- accuracy: end -->"
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	before, rest, found := strings.Cut(string(content), start)
	require.True(t, found, "%s has no %q", path, start)
	_, after, found := strings.Cut(rest, end)
	require.True(t, found, "%s has no %q", path, end)
	want := before + start + expectedSummary().table + end + after
	if *updateDocument {
		require.NoError(t, os.WriteFile(path, []byte(want), 0o644))
		return
	}
	assert.Equal(t, want, string(content), "run: go test ./processor/vllmprocessor/internal/window -run Document -update")
}
