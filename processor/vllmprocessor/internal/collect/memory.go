package collect

import (
	"math"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// The bounds of a memory. What does not fit is read as if there were no memory.
const (
	// maxMeanings bounds the names that mean nothing. The others are in the catalogue.
	maxMeanings, maxNameBytes = 512, 128
	maxGroups, maxLabelSets   = 256, 256
	maxKeyBytes               = 512
	// maxSharedBounds is the most bounds of a distribution that are shared.
	maxSharedBounds = 64
	// maxSpareSamples and maxSpareNumbers bound what is kept for the next batches. A sample
	// has 136 bytes.
	maxSpareSamples, maxSpareNumbers = 2048, 8192
	// maxSpareBatches bounds the lists of batches. A batch has 224 bytes with what is needed
	// to read it.
	maxSpareBatches = 2048
	// memoryCalls is after how many calls a full memory of groups or labels is emptied.
	memoryCalls = 256
)

// memory is what a reader remembers, for all servers: the batches of a fleet have the same
// names in the same order, and few groups and labels.
type memory struct {
	meanings map[string]*meaning
	// nothing counts the names in meanings that mean nothing.
	nothing int
	// before is the meaning of the last name, and first stands before the first one.
	before *meaning
	first  meaning
	// other is that of a name that is not remembered.
	other  meaning
	groups map[string]Group
	labels map[string]Label
	calls  int

	spare   [][]Sample
	chunk   []float64
	numbers []float64
}

// meaning is what the name of a metric means.
type meaning struct {
	name string
	named
	proof proof
	// known is true for an input.
	known       bool
	cacheConfig bool
	// process is true for the start of the process.
	process bool

	// next is the name that followed last.
	next *meaning
	// bounds are those of the last distributions of the name, and older is the place of the
	// older ones.
	bounds [2][]float64
	older  int
}

// meaningOf returns the meaning of a name, and whether there is one.
func meaningOf(name string) (m meaning, is bool) {
	m.name = name
	m.named, m.known = inputs()[name]
	m.proof, is = proofs()[name]
	m.cacheConfig, m.process = slices.Contains(cacheConfigNames(), name), name == processStart
	return m, is || m.known || m.cacheConfig || m.process
}

// begin prepares for a call. The samples of the previous one are used again.
func (m *memory) begin(before []Batch) {
	m.spare = m.spare[:0]
	total := 0
	for i := range before {
		samples := before[i].Samples
		if total += cap(samples); total > maxSpareSamples || i >= maxSpareBatches {
			break
		}
		clear(samples)
		m.spare = append(m.spare, samples[:0])
	}
	m.numbers = m.chunk
	m.calls++
	if m.calls >= memoryCalls {
		m.calls = 0
		if len(m.groups) >= maxGroups {
			clear(m.groups)
		}
		if len(m.labels) >= maxLabelSets {
			clear(m.labels)
		}
	}
}

// rewind begins the names of a resource.
func (m *memory) rewind() { m.before = &m.first }

// meaning returns the meaning of the next name. It is valid until the next call.
func (m *memory) meaning(name string) *meaning {
	if next := m.before.next; next != nil && next.name == name {
		m.before = next
		return next
	}
	is := m.meanings[name]
	if is == nil {
		found, known := meaningOf(name)
		if !known && (m.nothing >= maxMeanings || len(name) > maxNameBytes) {
			m.other = meaning{}
			return &m.other
		}
		if !known {
			m.nothing++
		}
		// The name may be a part of something large.
		found.name = strings.Clone(name)
		is = &found
		if m.meanings == nil {
			m.meanings = map[string]*meaning{}
		}
		m.meanings[is.name] = is
	}
	m.before.next = is
	m.before = is
	return is
}

// noBounds are those of a distribution with one bucket.
var noBounds = []float64{}

// boundsOf returns the first n bounds of a distribution; nil where they are not in order.
// Distributions with the same bounds share them.
func (m *meaning) boundsOf(bounds pcommon.Float64Slice, n int) []float64 {
	if n == 0 {
		return noBounds
	}
	for _, known := range m.bounds {
		if len(known) == n && equal(bounds, known) {
			return known
		}
	}
	own := make([]float64, n)
	for i := range own {
		own[i] = bounds.At(i)
		if !finite(own[i]) || (i > 0 && own[i] <= own[i-1]) {
			return nil
		}
	}
	if n <= maxSharedBounds {
		m.bounds[m.older] = own
		m.older = 1 - m.older
	}
	return own
}

// equal reports whether bounds begin with some others.
func equal(bounds pcommon.Float64Slice, known []float64) bool {
	for i := range known {
		if math.Float64bits(bounds.At(i)) != math.Float64bits(known[i]) {
			return false
		}
	}
	return true
}

// group returns a group with a key and its attributes, which are copied.
func (m *memory) group(key []byte, attributes []Attribute) Group {
	g, known := m.groups[string(key)]
	// Attributes with a zero byte in a value can have the key of others.
	if known && slices.Equal(g.Attributes, attributes) {
		return g
	}
	g = Group{Key: string(key), Attributes: slices.Clone(attributes)}
	at := 0
	part := func(length int) string {
		text := g.Key[at : at+length]
		at += length + len(separator)
		return text
	}
	for i := range g.Attributes {
		a := &g.Attributes[i]
		// They are parts of the key, so that nothing larger is kept for them.
		a.Name = part(len(a.Name))
		a.Value = part(len(a.Value))
	}
	if !known && len(m.groups) < maxGroups && len(key) <= maxKeyBytes {
		if m.groups == nil {
			m.groups = map[string]Group{}
		}
		m.groups[g.Key] = g
	}
	return g
}

// label returns the label with some values. key is for reuse.
func (m *memory) label(key []byte, values []string) (Label, []byte) {
	switch len(values) {
	case 0:
		return "", key
	case 1:
		return Label(values[0]), key
	}
	key = key[:0]
	for i, value := range values {
		if i > 0 {
			key = append(key, separator...)
		}
		key = append(key, value...)
	}
	label, known := m.labels[string(key)]
	if !known {
		label = Label(key)
		if len(m.labels) < maxLabelSets && len(key) <= maxKeyBytes {
			if m.labels == nil {
				m.labels = map[string]Label{}
			}
			m.labels[string(label)] = label
		}
	}
	return label, key
}

// samples returns an empty list with room for n samples, or for as many as a batch before
// had.
func (m *memory) samples(n int) []Sample {
	last := len(m.spare) - 1
	if last < 0 {
		return make([]Sample, 0, n)
	}
	samples := m.spare[last]
	m.spare = m.spare[:last]
	return samples
}

// counts returns n zeros.
func (m *memory) counts(n int) []float64 {
	if len(m.numbers) < n {
		m.numbers = make([]float64, max(n, 512, min(2*len(m.chunk), maxSpareNumbers)))
		if len(m.numbers) <= maxSpareNumbers {
			m.chunk = m.numbers
		}
	}
	counts := m.numbers[:n:n]
	m.numbers = m.numbers[n:]
	clear(counts)
	return counts
}
