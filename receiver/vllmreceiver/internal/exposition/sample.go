package exposition

import (
	"slices"
	"strings"

	"github.com/prometheus/common/model"
)

// sample is a sample line without its number.
type sample struct {
	name string
	// labels are sorted by name, without empty values, which mean that the label
	// is absent, and without le and quantile. Neighbours share the slice.
	labels []Label
	// le and quantile are separate because the family's kind decides whether they are
	// part of the series. Empty means absent.
	le, quantile string
	// line is the sample's line in its block, from 0.
	line int32
}

// meta is a HELP, TYPE or UNIT line.
type meta struct {
	line       lineKind
	kind       Kind
	name, text string
}

// words returns the same string for equal texts, because a body repeats its labels on every
// line.
type words map[string]string

func (w words) intern(word string) string {
	if known, ok := w[word]; ok {
		return known
	}
	// A clone, as the word may be a part of something large.
	word = strings.Clone(word)
	w[word] = word
	return word
}

// forget drops all words.
func (w words) forget() { clear(w) }

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

// sortLabels sorts the labels. If they equal last, the labels of the line before, both
// share one slice. It returns the labels for the next line.
func (s *sample) sortLabels(last []Label) []Label {
	if !slices.IsSortedFunc(s.labels, compareLabels) {
		slices.SortFunc(s.labels, compareLabels)
	}
	if slices.Equal(s.labels, last) {
		s.labels = last
	}
	return s.labels
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
