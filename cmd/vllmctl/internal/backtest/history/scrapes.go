package history

import (
	"slices"
	"sort"

	"github.com/prometheus/prometheus/model/labels"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/backtest/promapi"
)

// Part is one target in one window, as scrapes.
type Part struct {
	// Target are the labels of the target that every series of it has besides its own.
	Target labels.Labels
	// Series are those of the body, without what Prometheus adds.
	Series []promapi.Series
	// Times are the times of the scrapes in milliseconds.
	Times []int64
	// Snapped is true where the samples of one scrape had different times.
	Snapped bool

	up []promapi.Series
}

// NewPart splits the series of a target into those of the body and those that Prometheus
// adds, and finds the times of the scrapes.
func NewPart(t *Target, series []promapi.Series) *Part {
	p := &Part{Target: t.Labels}
	for i := range series {
		if t.Form == Raw && series[i].Labels.Get("__name__") == nameUp {
			p.up = append(p.up, series[i])
			continue
		}
		p.Series = append(p.Series, series[i])
	}
	if len(p.up) > 0 {
		// The labels that Prometheus gives to all series of a target.
		p.Target = labels.NewBuilder(p.up[0].Labels).Del("__name__").Labels()
	}
	p.times()
	return p
}

// Up returns whether Prometheus reports a scrape of this time as successful; known is false
// where it reports nothing.
func (p *Part) Up(at int64) (up, known bool) {
	for i := range p.up {
		if n, found := slices.BinarySearch(p.up[i].Times, at); found {
			return p.up[i].Values[n] != 0, true
		}
	}
	return false, false
}

// times finds the times of the scrapes. The samples of one scrape have one time. Where they
// have not, as behind a store that removes duplicates of redundant Prometheus servers, those
// less than half an interval apart are of one scrape.
func (p *Part) times() {
	var lists [][]int64
	var longest []int64
	for _, all := range [][]promapi.Series{p.up, p.Series} {
		for i := range all {
			if len(all[i].Times) > len(longest) {
				longest = all[i].Times
			}
			if len(lists) == 0 || &lists[len(lists)-1][0] != &all[i].Times[0] {
				lists = append(lists, all[i].Times)
			}
		}
	}
	p.Times = union(lists)
	if n := len(longest); len(p.Times) > n+n/2+2 {
		p.snap(int64(Interval(longest)*1000) / 2)
	}
}

// union returns all times of sorted lists, sorted.
func union(lists [][]int64) []int64 {
	slices.SortFunc(lists, slices.Compare)
	lists = slices.CompactFunc(lists, slices.Equal)
	var out []int64
	for _, l := range lists {
		out = append(out, l...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Interval is the median time between sorted times in milliseconds, in seconds; 0 for fewer
// than two.
func Interval(times []int64) float64 {
	if len(times) < 2 {
		return 0
	}
	steps := make([]int64, len(times)-1)
	for i := range steps {
		steps[i] = times[i+1] - times[i]
	}
	slices.Sort(steps)
	return float64(steps[len(steps)/2]) / 1000
}

// snap moves samples to the last time of their scrape. Times of one scrape are less than
// half an interval apart.
func (p *Part) snap(half int64) {
	var ends []int64
	for i, begin := 0, int64(0); i < len(p.Times); i++ {
		if i == 0 || p.Times[i]-begin > half {
			begin = p.Times[i]
			ends = append(ends, begin)
		}
		ends[len(ends)-1] = p.Times[i]
	}
	for _, all := range [][]promapi.Series{p.up, p.Series} {
		for i := range all {
			s := &all[i]
			times, values := make([]int64, 0, len(s.Times)), make([]float64, 0, len(s.Times))
			for j, t := range s.Times {
				end := ends[sort.Search(len(ends), func(k int) bool { return ends[k] >= t })]
				if n := len(times); n > 0 && times[n-1] == end {
					values[n-1] = s.Values[j]
					continue
				}
				times, values = append(times, end), append(values, s.Values[j])
			}
			s.Times, s.Values = times, values
		}
	}
	p.Snapped = len(ends) < len(p.Times)
	p.Times = ends
}
