package realruns

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Fidelity compares the quantiles that the processor derives from reconstructed histograms
// with those of what the clients measured, over each minute.
type Fidelity struct {
	Run     string
	Minutes int
	// Ratios are derived divided by true, one for each minute, by source and quantile.
	Ratios map[Source]map[string][]float64
}

// compared are the derived quantiles, in the order of the table.
var compared = []struct {
	name, metric string
	quantile     float64
	truth        func(l *latencies, from, to float64) []observation
}{
	{"TTFT p50", "vllm.time_to_first_token_quantile/0.5", 0.5, (*latencies).timesToFirstToken},
	{"TTFT p95", "vllm.time_to_first_token_quantile/0.95", 0.95, (*latencies).timesToFirstToken},
	{"ITL p50", "vllm.inter_token_latency_quantile/0.5", 0.5, (*latencies).timesBetweenTokens},
	{"ITL p95", "vllm.inter_token_latency_quantile/0.95", 0.95, (*latencies).timesBetweenTokens},
}

// leastCompared is how many requests a minute needs, leastCovered the share of the tokens
// that the requests of a recording have to have.
const (
	leastCompared = 20
	leastCovered  = 0.9
)

// Compare compares a recording for both sources. It returns nil for a recording without
// enough requests of its clients.
func Compare(ctx context.Context, r *Recording, settings Settings) (*Fidelity, error) {
	if !(r.Coverage() >= leastCovered) {
		return nil, nil
	}
	const minute = 60
	known := &latencies{requests: r.Requests}
	out := &Fidelity{Run: r.Name, Ratios: map[Source]map[string][]float64{}}
	for _, source := range []Source{Clients, Gauges} {
		settings.Source = source
		reports, err := Play(ctx, r, settings)
		if err != nil {
			return nil, err
		}
		out.Ratios[source] = map[string][]float64{}
		next := float64(minute)
		minutes := 0
		for i := range reports {
			at := reports[i].At
			if at < next {
				continue
			}
			next = at + minute
			if len(known.timesToFirstToken(at-minute, at)) < leastCompared {
				continue
			}
			minutes++
			for _, c := range compared {
				ratio := reports[i].Value(c.metric) / quantileOf(c.truth(known, at-minute, at), c.quantile)
				if !math.IsNaN(ratio) && !math.IsInf(ratio, 0) {
					out.Ratios[source][c.name] = append(out.Ratios[source][c.name], ratio)
				}
			}
		}
		out.Minutes = minutes
	}
	if out.Minutes == 0 {
		return nil, nil
	}
	return out, nil
}

// quantileOf is a quantile of observations with their numbers.
func quantileOf(all []observation, q float64) float64 {
	sorted := slices.Clone(all)
	slices.SortFunc(sorted, func(a, b observation) int {
		switch {
		case a.value < b.value:
			return -1
		case a.value > b.value:
			return 1
		}
		return 0
	})
	total := 0.0
	for _, o := range sorted {
		total += o.n
	}
	sum := 0.0
	for _, o := range sorted {
		if sum += o.n; sum >= q*total {
			return o.value
		}
	}
	return math.NaN()
}

// FidelityTable has the range of the runs' median ratios for each quantile.
func FidelityTable(all []*Fidelity) string {
	var b strings.Builder
	b.WriteString("| latencies from |")
	for _, c := range compared {
		b.WriteString(" " + c.name + " |")
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(compared)) + "\n")
	for _, source := range []Source{Clients, Gauges} {
		fmt.Fprintf(&b, "| %s |", source)
		for _, c := range compared {
			var medians []float64
			for _, f := range all {
				if ratios := f.Ratios[source][c.name]; len(ratios) > 0 {
					medians = append(medians, Quantile(ratios, 0.5))
				}
			}
			if len(medians) == 0 {
				b.WriteString(" |")
				continue
			}
			fmt.Fprintf(&b, " %.2f to %.2f |", slices.Min(medians), slices.Max(medians))
		}
		b.WriteString("\n")
	}
	return b.String()
}
