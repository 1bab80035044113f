package story

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// Loaded reports whether a phase sends a share of what the server can serve.
func (p *Play) Loaded() bool {
	return slices.ContainsFunc(p.Phases, func(phase Phase) bool { return phase.Load > 0 })
}

// lasts is how long the phases of a story take.
func (s *Story) lasts() (all time.Duration) {
	for i := range s.Phases {
		all += s.Phases[i].For
	}
	return all
}

// Groups returns the names of all stories, as they are played together: those of one group
// share a server and its steady phase. Where the stories of a server take longer than the
// given time, they are several groups of about the same length, so that a server that ends
// takes few of them with it.
func (b *Book) Groups(longest time.Duration) [][]string {
	var out [][]string
	for i := range b.Servers {
		var total, before time.Duration
		var shared []*Story
		for j := range b.Stories {
			switch s := &b.Stories[j]; {
			case s.Server != b.Servers[i].Name:
			case len(s.Processor) > 0:
				out = append(out, []string{s.Name})
			default:
				shared, total = append(shared, s), total+s.lasts()
			}
		}
		if len(shared) == 0 {
			continue
		}
		groups := make([][]string, int(math.Ceil(float64(total)/float64(longest))))
		for _, s := range shared {
			// The group in which the middle of the story lies.
			n := int(float64(before+s.lasts()/2) / float64(total) * float64(len(groups)))
			groups[n] = append(groups[n], s.Name)
			before += s.lasts()
		}
		out = append(out, slices.DeleteFunc(groups, func(g []string) bool { return len(g) == 0 })...)
	}
	return out
}

// Part returns the groups of one of several parts, by numbers from 1, so that all parts take
// about as long.
func (b *Book) Part(groups [][]string, part, of int) ([][]string, error) {
	lasts := make([]time.Duration, len(groups))
	order := make([]int, len(groups))
	for i, names := range groups {
		play, err := b.Play(names...)
		if err != nil {
			return nil, err
		}
		for _, phase := range play.Phases {
			lasts[i] += phase.For
		}
		order[i] = i
	}
	// The longest first, each to the part that has least.
	slices.SortStableFunc(order, func(x, y int) int { return cmp.Compare(lasts[y], lasts[x]) })
	sums := make([]time.Duration, of)
	var mine []int
	for _, i := range order {
		least := slices.Index(sums, slices.Min(sums))
		sums[least] += lasts[i]
		if least == part-1 {
			mine = append(mine, i)
		}
	}
	slices.Sort(mine)
	out := make([][]string, 0, len(mine))
	for _, i := range mine {
		out = append(out, groups[i])
	}
	return out, nil
}
