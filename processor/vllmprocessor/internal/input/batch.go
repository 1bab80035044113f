package input

import (
	"hash/maphash"
	"slices"
	"strings"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
)

// Batch is the points of one resource at one time.
type Batch struct {
	// Resource is the identity of the resource, see the package identity.
	Resource string
	// Time is the time of the points in Unix nanoseconds.
	Time int64
	// Groups are the engines and models that the samples belong to.
	Groups []Group
	// Samples are the points, at most one for each series.
	Samples []Sample
	// Unread are the points of counters and distributions that cannot be used. They only
	// prove that their series exist. Only the fields that name a series are set.
	Unread []Sample
	// Contradicted are the gauges of which the API servers of a server report different
	// values. Only the fields that name a series are set.
	Contradicted []Sample
	// Source is the index of the ResourceMetrics with the last value, or with the last
	// point where there is no value. Derived values are written next to it.
	Source int
	// Ends is the index of the ResourceMetrics with the last point that ends its series;
	// -1 without one.
	Ends int
	// Evidence is what the request shows of the server.
	Evidence Evidence
}

var printSeed = maphash.MakeSeed()

// Print returns a fingerprint of the series of a batch. It does not depend on their
// order, so a batch that is sent again has the same print.
func (b *Batch) Print() (sum uint64) {
	for i := range b.Groups {
		b.Groups[i].print = maphash.String(printSeed, b.Groups[i].Key)
	}
	for _, samples := range [...][]Sample{b.Samples, b.Unread} {
		for i := range samples {
			s := &samples[i]
			one := b.Groups[s.Group].print ^ maphash.String(printSeed, string(s.Label))*3 ^ uint64(s.Input)<<1
			if s.Gone {
				one++
			}
			// One step of a mixing function, so that sums of different series differ.
			one ^= one >> 33
			one *= 0xff51afd7ed558ccd
			sum += one ^ one>>33
		}
	}
	return sum
}

// Group is one engine and model: the attributes that are not labels of an input.
type Group struct {
	// Key is equal for equal attributes.
	Key string
	// Attributes are sorted by name.
	Attributes []Attribute

	print uint64
}

// GroupOf returns the group with some attributes, which must be sorted by name.
func GroupOf(attributes []Attribute) Group { return NewGroup(KeyWithout(attributes, ""), attributes) }

// NewGroup returns a group with a key of AppendKey and its attributes, which are copied.
func NewGroup(key string, attributes []Attribute) Group {
	g := Group{Key: key, Attributes: append([]Attribute(nil), attributes...)}
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
	return g
}

// KeyWithout returns a key that is equal for attributes that are equal except for the one
// with a name.
func KeyWithout(attributes []Attribute, name string) string {
	var key []byte
	for i, a := range attributes {
		if a.Name != name {
			key = AppendKey(key, attributes[i:i+1])
		}
	}
	return string(key)
}

// AppendKey appends the key of attributes, which must be sorted by name.
func AppendKey(key []byte, attributes []Attribute) []byte {
	for _, a := range attributes {
		key = append(append(append(append(key, a.Name...), 0), a.Value...), 0)
	}
	return key
}

// Attribute is a name and a value.
type Attribute struct{ Name, Value string }

// Model returns all attributes but the engine: those that the engines of a model have in
// common.
func (g *Group) Model() []Attribute { return g.Without("engine") }

// Common returns all attributes but the model and its target: those that the models of an
// endpoint picker have in common.
func (g *Group) Common() []Attribute { return g.Without("model_name", "target_model_name") }

// Without returns all attributes but those with some names.
func (g *Group) Without(names ...string) []Attribute {
	without := make([]Attribute, 0, len(g.Attributes))
	for _, a := range g.Attributes {
		if !slices.Contains(names, a.Name) {
			without = append(without, a)
		}
	}
	return without
}

// Engine returns the value of the attribute engine; empty without one.
func (g *Group) Engine() string { return g.Value("engine") }

// Value returns the value of an attribute; empty without it.
func (g *Group) Value(name string) string {
	for _, a := range g.Attributes {
		if a.Name == name {
			return a.Value
		}
	}
	return ""
}

// Label is the values of an input's own attributes, in the order of Definition.Labels.
// Equal values make equal labels, so it can be the key of a map.
type Label string

// separator stands between the values of a label. Prometheus's labels cannot contain it.
const separator = "\x00"

// NewLabel returns the label with these values.
func NewLabel(values ...string) Label { return Label(strings.Join(values, separator)) }

// Value returns the value of one of the input's own attributes.
func (l Label) Value(i int) string {
	rest := string(l)
	for range i {
		_, rest, _ = strings.Cut(rest, separator)
	}
	value, _, _ := strings.Cut(rest, separator)
	return value
}

// Sample is one point. There are many, so the small fields stand together.
type Sample struct {
	Input Metric
	// Delta is true where the point is the change since the previous one.
	Delta bool
	// Gone is true where the point ends its series.
	Gone bool
	// Older is true where the name can be that of an older metric. Such a metric can have
	// another unit, so it may be used in quotients only.
	Older bool
	// Level is true where the count is a gauge: it may fall without a restart.
	Level bool
	// HasSum is true where a distribution has a sum.
	HasSum bool

	// Group is an index into the batch's groups.
	Group int
	// Label is the values of the input's own attributes.
	Label Label
	// Start is the start time of the point in Unix nanoseconds; 0 without one.
	Start int64
	// Value is the point's number, for counters and gauges.
	Value float64
	// Bounds, Counts, Count and Sum are the point of a distribution. Distributions share
	// bounds, which must not be changed. The counts are the sample's own.
	Bounds, Counts []float64
	Count, Sum     float64
}

// Evidence is what a resource and the names of its metrics show of the server.
type Evidence struct {
	// Version is the attribute service.version; empty without it.
	Version string
	// Least is the oldest version that can expose all families that were seen; 0 where
	// none of them proves a version.
	Least catalog.Release
	// ProcessStart is when the process of the server began, in Unix seconds of its own
	// clock; 0 where it does not say.
	ProcessStart float64
	// Signs are the signs of an implementation or of a setup.
	Signs Sign
}

// Sign is a set of what can be seen of a server.
type Sign uint16

// The signs.
const (
	// Imitator means: another program that writes vLLM's names. Its version is not one of
	// vLLM.
	Imitator Sign = 1 << iota
	// V0 means: a family that only the V0 engine has.
	V0
	// Ray means: metrics through the agent of Ray.
	Ray
	// Connector means: a family of a KV connector.
	Connector
	// LoRA means: a family of adapters.
	LoRA
	// Processes means: a gauge of one process of several.
	Processes
	// Received means: metrics of our receiver, which logs itself what is known of them.
	Received
	// DefaultBounds means: a histogram in seconds with the default bounds of an SDK, which
	// are too wide. It is read without buckets.
	DefaultBounds
	// LateFirstTokens means: times to the first token that are observed when requests end.
	LateFirstTokens
	// MarksErrors means: a gateway that distinguishes the requests that failed.
	MarksErrors
)

// Has reports whether all given signs were seen.
func (s Sign) Has(signs Sign) bool { return s&signs == signs }

// Join adds the evidence of another part of the same server.
func (e *Evidence) Join(other *Evidence) {
	if other.Version != "" {
		e.Version = other.Version
	}
	if other.ProcessStart != 0 {
		e.ProcessStart = other.ProcessStart
	}
	if e.Least.Compare(other.Least) < 0 {
		e.Least = other.Least
	}
	e.Signs |= other.Signs
}
