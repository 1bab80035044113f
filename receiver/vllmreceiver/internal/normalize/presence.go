package normalize

import (
	"hash/maphash"
	"slices"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/exposition"
)

// seed makes the hashes of series hard to collide on purpose.
var seed = maphash.MakeSeed()

// pointKey identifies a series by the name and kind of its metric and its labels. It
// is a hash, so that its size does not depend on the labels. The separator is the byte
// 0xff: it is not valid UTF-8, so no label contains it.
func pointKey(name string, kind catalog.Kind, labels []exposition.Label) SeriesKey {
	var h maphash.Hash
	h.SetSeed(seed)
	_, _ = h.WriteString(name)
	_ = h.WriteByte(byte(kind))
	for i := range labels {
		_ = h.WriteByte(0xff)
		_, _ = h.WriteString(labels[i].Name)
		_ = h.WriteByte(0xff)
		_, _ = h.WriteString(labels[i].Value)
	}
	return SeriesKey(h.Sum64())
}

// wireSeries is the kind in the keys of series as the body has them, without regard to
// their kind.
const wireSeries catalog.Kind = 0xff

// presence returns the sorted hashes of all series of a layout, including those that
// do not become points, such as a histogram without its last bucket.
func presence(layout *exposition.Layout) []SeriesKey {
	n := 0
	for i := range layout.Families {
		n += len(layout.Families[i].Series)
	}
	present := make([]SeriesKey, 0, n)
	for i := range layout.Families {
		family := &layout.Families[i]
		for j := range family.Series {
			present = append(present, pointKey(family.Name, wireSeries, family.Series[j].Labels))
		}
	}
	slices.Sort(present)
	return present
}

// Has reports whether the bodies of this plan have one of the series of a point, under
// whatever name this plan emits it.
func (p *Plan) Has(metric *Metric, point *Point) bool {
	for i := range point.Parts {
		if _, found := slices.BinarySearch(p.present, pointKey(metric.Family, wireSeries, point.Parts[i].Labels)); found {
			return true
		}
	}
	return false
}
