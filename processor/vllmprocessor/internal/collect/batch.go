package collect

import "hash/maphash"

// Batch is what one resource said at one time.
type Batch struct {
	// Resource is the identity of the resource: service.name,
	// service.instance.id and k8s.pod.uid where the instance is named, else all
	// attributes.
	Resource string
	// Time is the points' time in nanoseconds since 1970.
	Time int64
	// Groups are the engines and models that the samples belong to.
	Groups []Group
	// Samples are the points, at most one for each series.
	Samples []Sample
	// Unread are the points of counters and distributions that cannot be used: they
	// say no more than that their series exist. Only what names a series is set.
	Unread []Sample
	// Source is the index of the ResourceMetrics that the last value came from, or
	// the last point where there is no value: what is derived from the batch belongs
	// beside it.
	Source int
	// Ends is that of the last point that says that its series has ended, -1
	// without one.
	Ends int
}

var printSeed = maphash.MakeSeed()

// Print is a number that is the same for batches of the same series, in any order:
// a batch that is sent again has the print that it had before.
func (b *Batch) Print() (sum uint64) {
	for i := range b.Groups {
		b.Groups[i].print = maphash.String(printSeed, b.Groups[i].Key)
	}
	for _, samples := range [...][]Sample{b.Samples, b.Unread} {
		for i := range samples {
			s := &samples[i]
			one := b.Groups[s.Group].print ^ maphash.String(printSeed, s.Label)*3 ^ uint64(s.Input)<<1
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

// Group is one engine and model: the attributes that all inputs have in common.
type Group struct {
	// Key is the same for equal attributes.
	Key string
	// Attributes are sorted by name.
	Attributes []Attribute

	print uint64
}

// NewGroup returns the group with some attributes, which are sorted by name.
func NewGroup(attributes []Attribute) Group {
	return Group{Key: string(appendKey(nil, attributes)), Attributes: attributes}
}

func appendKey(key []byte, attributes []Attribute) []byte {
	for _, a := range attributes {
		key = append(append(append(append(key, a.Name...), 0), a.Value...), 0)
	}
	return key
}

// Attribute is a name and a value.
type Attribute struct{ Name, Value string }

// Model is the attributes that the engines of one model have in common: all but
// the engine.
func (g *Group) Model() []Attribute {
	without := make([]Attribute, 0, len(g.Attributes))
	for _, a := range g.Attributes {
		if a.Name != "engine" {
			without = append(without, a)
		}
	}
	return without
}

// Engine is the value of the attribute engine; empty without one.
func (g *Group) Engine() string { return g.Value("engine") }

// Value is the value of an attribute; empty without it.
func (g *Group) Value(name string) string {
	for _, a := range g.Attributes {
		if a.Name == name {
			return a.Value
		}
	}
	return ""
}

// Sample is one point.
type Sample struct {
	Input Input
	// Group is an index into the batch's groups.
	Group int
	// Label is the values of the input's own attributes, in the order of
	// Definition.Labels, joined by NUL.
	Label string
	// Delta is true where the point is the change since the previous one.
	Delta bool
	// Gone is true where the point says that its series has ended.
	Gone bool
	// Older is true where the point's name can be that of an older metric, which
	// means the same only in quotients: it can have another unit.
	Older bool
	// Level is true where a gauge brings the count: it may fall without a restart.
	Level bool
	// Start is the point's start time in nanoseconds, 0 where it has none.
	Start int64
	// Value is the point's number, for counters and gauges.
	Value float64
	// Bounds, Counts, Count and Sum are the point of a distribution. The slices
	// are the sample's own.
	Bounds, Counts []float64
	Count, Sum     float64
	HasSum         bool

	// rank is that of the name, see names.go.
	rank int
	// process is the one that told it, where vLLM says so.
	process string
	// summed is true where it is one of those that are summed.
	summed bool
	// contradicted is true where another process told it, too.
	contradicted bool
}

// Reason says why a point is not used. It passes through all the same.
type Reason uint8

// The reasons.
const (
	// TypeConflict means: a known name with points of another kind, as Ray's gauge
	// twin of a counter.
	TypeConflict Reason = iota
	// UnsupportedTemporality means: neither cumulative nor delta.
	UnsupportedTemporality
	// NotANumber means: a value that is NaN or infinite, or a negative count.
	NotANumber
	// BadHistogram means: bounds out of order, or counts that do not fit them.
	BadHistogram
	// NoTimestamp means: a point without a time.
	NoTimestamp
	// OlderName means: the same series under an older name beside the newer one.
	OlderName
	// TooLarge means: a point, or the resource that it belongs to, with more attributes
	// than can be kept.
	TooLarge
	// SeveralProcesses: a gauge that each API server of a server tells, where none
	// of them is right.
	SeveralProcesses

	// NumReasons is the number of reasons, for arrays over them.
	NumReasons
)

// String is the reason as the processor's own telemetry spells it.
func (r Reason) String() string {
	return [NumReasons]string{
		"type_conflict", "unsupported_temporality", "not_a_number", "bad_histogram", "no_timestamp", "older_name", "too_large",
		"several_processes",
	}[r]
}

// Report counts what was not used.
type Report [NumReasons]int
