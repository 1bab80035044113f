package emit

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/derive"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
)

// reference is what Memory does, by a map of all series without an order.
type reference struct {
	live  map[key]*seen
	calls int
}

type seen struct {
	of         int64
	call       int
	attributes []input.Attribute
}

func (r *reference) write(values []derive.Value, of, at int64) (points []string) {
	r.calls++
	pending := map[key]bool{}
	for _, v := range values {
		k := key{row: v.Row, group: v.Group, rollup: v.Rollup, extra: v.Extra}
		if v.Pending {
			pending[key{row: k.row, group: k.group, rollup: k.rollup}] = true
			continue
		}
		last, known := r.live[k]
		if !known || last.of != of {
			if of != at {
				continue
			}
			points = append(points, fmt.Sprint(v.Row.Metric, k.group, k.rollup, k.extra, v.Attributes, v.Number))
		}
		r.live[k] = &seen{of, r.calls, v.Attributes}
	}
	type ending struct {
		key
		attributes []input.Attribute
	}
	var ends []ending
	for k, last := range r.live {
		if last.call == r.calls || last.of == at || pending[key{group: k.group, rollup: k.rollup}] ||
			pending[key{row: k.row, group: k.group, rollup: k.rollup}] {
			continue
		}
		delete(r.live, k)
		ends = append(ends, ending{k, last.attributes})
	}
	slices.SortFunc(ends, func(a, b ending) int {
		first := cmp.Compare(a.group, b.group)
		switch {
		case a.rollup && b.rollup:
			first = -first
		case a.rollup:
			first = -1
		case b.rollup:
			first = 1
		}
		return cmp.Or(first,
			cmp.Compare(a.row.Metric, b.row.Metric), slices.Compare(a.extra[:], b.extra[:]))
	})
	for _, e := range ends {
		points = append(points, fmt.Sprint("end ", e.row.Metric, e.group, e.rollup, e.extra, e.attributes))
	}
	return points
}

func describe(points []Point) (all []string) {
	for i := range points {
		p := &points[i]
		if p.End {
			all = append(all, fmt.Sprint("end ", p.Row.Metric, p.Group, p.Rollup, p.Extra, p.Attributes))
		} else {
			all = append(all, fmt.Sprint(p.Row.Metric, p.Group, p.Rollup, p.Extra, p.Attributes, p.Number))
		}
	}
	return all
}

// The order of the values, and which of them there are, may change in each batch. Points
// that were returned before stay as they were.
func TestAMemoryRemembersAllSeriesInAnyOrder(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 1))
		groups := 1 + r.IntN(12)
		m, want := Memory{}, reference{live: map[key]*seen{}}
		var all []derive.Value
		for group := range groups {
			attributes := []input.Attribute{{Name: "engine", Value: fmt.Sprint(group)}}
			for _, row := range []*derive.Row{rate, valid, quantile} {
				for extra := range 4 {
					all = append(all, derive.Value{
						Row: row, Group: group, Rollup: group%5 == 4, Extra: derive.Extra{fmt.Sprint(extra)}, Attributes: attributes,
					})
				}
			}
		}
		var before []Point
		var described []string
		at := int64(10)
		for range 40 {
			switch r.IntN(6) {
			case 0:
				r.Shuffle(len(all), func(i, k int) { all[i], all[k] = all[k], all[i] })
			case 1:
				at--
			case 2:
				i := r.IntN(len(all))
				all[i].Attributes = []input.Attribute{{Name: "engine", Value: fmt.Sprint(all[i].Group, r.IntN(2))}}
			}
			at++
			of := at
			if r.IntN(8) == 0 {
				of -= int64(r.IntN(2))
			}
			var values []derive.Value
			absent := r.IntN(5)
			for _, v := range all {
				v.Number = r.Float64()
				if r.IntN(20) < absent {
					continue
				}
				switch r.IntN(60) / max(absent, 1) {
				case 0:
					v.Pending = true
				case 1:
					v = derive.Value{Group: v.Group, Rollup: v.Rollup, Pending: true}
				case 2:
					values = append(values, v)
				}
				values = append(values, v)
			}
			points := m.Write(values, of, at)
			require.Equal(t, want.write(values, of, at), describe(points), "seed %d", seed)
			require.Len(t, m.live, len(want.live))
			assert.Equal(t, described, describe(before), "points do not change later")
			before, described = points, describe(points)
		}
	}
}
