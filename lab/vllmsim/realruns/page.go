package realruns

import (
	"context"
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"time"
)

//go:embed page.md
var prose string

// phases is how many times of the first scrape are tried, a second apart.
const phases = 10

// Page returns the generated part of the page about accuracy: the table, what changes with
// the time of the first scrape and with the source of the latencies, and how exact the
// latencies are.
func Page(ctx context.Context, recordings []*Recording, settings Settings) (string, error) {
	var results []*Result
	var compared []*Fidelity
	var shifted, gauged []string
	for _, r := range recordings {
		result, err := Replay(ctx, r, settings)
		if err != nil {
			return "", err
		}
		results = append(results, result)
		line, err := shift(ctx, r, settings)
		if err != nil {
			return "", err
		}
		shifted = append(shifted, line...)
		if len(r.Requests) > 0 {
			gauges := settings
			gauges.Source = Gauges
			other, err := Replay(ctx, r, gauges)
			if err != nil {
				return "", err
			}
			if other.outcomes() != result.outcomes() {
				gauged = append(gauged, fmt.Sprintf("%s: %s", r.Name, other.verdict()))
			}
		}
		fidelity, err := Compare(ctx, r, settings)
		if err != nil {
			return "", err
		}
		if fidelity != nil {
			compared = append(compared, fidelity)
		}
	}
	return strings.NewReplacer(
		"{{table}}\n", Table(results), "{{phases}}\n", list(shifted), "{{gauges}}\n", list(gauged), "{{fidelity}}\n", FidelityTable(compared),
	).Replace(prose), nil
}

// shift returns a line for a recording whose verdict depends on the time of the first
// scrape.
func shift(ctx context.Context, r *Recording, settings Settings) ([]string, error) {
	seen := map[string]int{}
	for n := range phases {
		settings.Offset = time.Duration(n) * time.Second
		if settings.Offset > settings.Interval {
			break
		}
		result, err := Replay(ctx, r, settings)
		if err != nil {
			return nil, err
		}
		seen[result.outcomes()]++
	}
	if len(seen) == 1 {
		return nil, nil
	}
	var parts []string
	for outcome, n := range seen {
		parts = append(parts, fmt.Sprintf("%d times %s", n, outcome))
	}
	slices.Sort(parts)
	slices.Reverse(parts)
	return []string{r.Name + ": " + strings.Join(parts, "; ")}, nil
}

func list(lines []string) string {
	if len(lines) == 0 {
		return "- none\n"
	}
	return "- " + strings.Join(lines, "\n- ") + "\n"
}
