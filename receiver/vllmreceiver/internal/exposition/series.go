package exposition

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/common/model"
)

// fewSeries is the number of series up to which a family is searched one by one.
const fewSeries = 8

// seriesOf returns the series with these labels, and creates it if it is missing. The
// pointer is valid until the next call.
func (g *growing) seriesOf(labels []Label) *Series {
	series := g.family.Series
	if i := g.find(labels); i >= 0 {
		g.last = i
		return &series[i]
	}
	g.last = len(series)
	if len(series) >= fewSeries {
		if g.index == nil {
			g.index = make(map[labelSet]int, 2*fewSeries)
			for i := range series {
				g.index[labelSetOf(series[i].Labels)] = i
			}
		}
		g.index[labelSetOf(labels)] = len(series)
	}
	g.family.Series = append(g.family.Series, Series{
		Labels: labels, Value: NoSlot, Sum: NoSlot, Count: NoSlot, Created: NoSlot,
	})
	return &g.family.Series[g.last]
}

// find returns the index of the series with these labels, or -1.
func (g *growing) find(labels []Label) int {
	series := g.family.Series
	if g.last >= 0 && slices.Equal(series[g.last].Labels, labels) {
		return g.last
	}
	if g.index != nil {
		if i, ok := g.index[labelSetOf(labels)]; ok {
			return i
		}
		return -1
	}
	return slices.IndexFunc(series, func(s Series) bool { return slices.Equal(s.Labels, labels) })
}

// labelSet identifies a set of labels. Each name and value is preceded by its length, so
// different sets differ.
type labelSet string

func labelSetOf(labels []Label) labelSet {
	var b strings.Builder
	for _, l := range labels {
		for _, s := range [2]string{l.Name, l.Value} {
			b.WriteString(strconv.Itoa(len(s)))
			b.WriteByte(' ')
			b.WriteString(s)
		}
	}
	return labelSet(b.String())
}

// sortBounds sorts the buckets and quantiles and drops the later of equal ones. It
// returns how many it dropped. Bounds are compared as numbers: "1" and "1.0" are
// the same.
func (s *Series) sortBounds() (dropped int) {
	before := len(s.Buckets) + len(s.Quantiles)
	s.Buckets = ascending(s.Buckets, func(b Bucket) float64 { return b.UpperBound })
	s.Quantiles = ascending(s.Quantiles, func(q Quantile) float64 { return q.Quantile })
	return before - len(s.Buckets) - len(s.Quantiles)
}

// ascending sorts by key and keeps the first of equal ones. Most bodies have them
// in order already.
func ascending[E any](list []E, key func(E) float64) []E {
	sorted := true
	for i := 1; i < len(list) && sorted; i++ {
		sorted = key(list[i-1]) < key(list[i])
	}
	if sorted {
		return list
	}
	slices.SortStableFunc(list, func(x, y E) int { return cmp.Compare(key(x), key(y)) })
	return slices.CompactFunc(list, func(x, y E) bool { return key(x) == key(y) })
}

// foldCreated converts "_created" samples to creation times. In OpenMetrics they are part
// of their family. In the text format prometheus_client gives them a gauge family of their
// own, which folds into the counter, histogram or summary that its name points at if any of
// its label sets is there; a gauge whose name has this ending by accident stays a gauge.
func (a *assembler) foldCreated() {
	a.families = slices.DeleteFunc(a.families, func(g *growing) bool {
		base, ok := strings.CutSuffix(g.family.Name, createdSuffix)
		if !ok || len(g.family.Series) == 0 ||
			g.family.Kind != KindGauge && g.family.Kind != KindUntyped {
			return false
		}
		var parents []*growing
		for _, name := range [2]string{base, base + totalSuffix} {
			if p := a.byName[name]; p != nil && hasCreated(p.family.Kind) {
				parents = append(parents, p)
			}
		}
		owners := make([]*Series, len(g.family.Series))
		matched := false
		for i := range g.family.Series {
			for _, p := range parents {
				if at := p.find(g.family.Series[i].Labels); at >= 0 {
					owners[i], matched = &p.family.Series[at], true
					break
				}
			}
		}
		if !matched && !g.created {
			return false
		}
		for i := range g.family.Series {
			slot := g.family.Series[i].Value
			if owners[i] == nil {
				a.result.misfits = append(a.result.misfits, misfit{slot, ReasonOrphanCreated})
			} else {
				a.fill(&owners[i].Created, slot)
			}
		}
		return true
	})
}

// sample is a sample line without its number.
type sample struct {
	name string
	// labels are sorted by name, without empty values, which mean that the label
	// is absent, and without le and quantile. Equal ones of a body share the slice.
	labels []Label
	// le and quantile are separate because the family's kind decides whether they are
	// part of the series. Empty means absent.
	le, quantile string
}

// meta is a HELP, TYPE or UNIT line.
type meta struct {
	line       lineKind
	kind       Kind
	name, text string
}

// words returns the same string for equal texts and the same slice for equal labels, because a body repeats them on
// every line.
type words struct {
	known  map[string]string
	labels map[labelSet][]Label
}

func newWords() words { return words{map[string]string{}, map[labelSet][]Label{}} }

// emptied returns an empty one, which may have the memory of this one unless that is large.
func (w words) emptied() words {
	if len(w.known)+len(w.labels) > spare {
		return newWords()
	}
	clear(w.known)
	clear(w.labels)
	return w
}

func (w words) intern(word string) string {
	if known, ok := w.known[word]; ok {
		return known
	}
	// A clone, as the word may be a part of something large.
	word = strings.Clone(word)
	w.known[word] = word
	return word
}

// add adds a label in the order of the line.
func (s *sample) add(w words, name, value string) {
	switch {
	case value == "":
	case name == model.BucketLabel:
		s.le = w.intern(value)
	case name == model.QuantileLabel:
		s.quantile = w.intern(value)
	default:
		if s.labels == nil {
			s.labels = make([]Label, 0, 4)
		}
		s.labels = append(s.labels, Label{Name: w.intern(name), Value: w.intern(value)})
	}
}

// shareLabels sorts the labels and shares them with equal ones; last are those of the line before. It returns the
// labels for the next line.
func (s *sample) shareLabels(w words, last []Label) []Label {
	if !slices.IsSortedFunc(s.labels, compareLabels) {
		slices.SortFunc(s.labels, compareLabels)
	}
	if slices.Equal(s.labels, last) {
		s.labels = last
		return last
	}
	set := labelSetOf(s.labels)
	known, ok := w.labels[set]
	if !ok {
		known = slices.Clone(s.labels)
		w.labels[set] = known
	}
	s.labels = known
	return known
}

func compareLabels(a, b Label) int { return strings.Compare(a.Name, b.Name) }

// all returns the labels of a sample whose family has no place for le or
// quantile, so that they are labels like others.
func (s *sample) all(le, quantile bool) []Label {
	le, quantile = le && s.le != "", quantile && s.quantile != ""
	if !le && !quantile {
		return s.labels
	}
	labels := slices.Clone(s.labels)
	if le {
		labels = append(labels, Label{Name: model.BucketLabel, Value: s.le})
	}
	if quantile {
		labels = append(labels, Label{Name: model.QuantileLabel, Value: s.quantile})
	}
	slices.SortFunc(labels, compareLabels)
	return labels
}
