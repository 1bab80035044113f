package collect

import (
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-vllm/otelcol-vllm/internal/identity"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
)

// pending is what is needed while a batch is read.
type pending struct {
	// groups is an index by key, once there are too many groups for a linear search.
	groups map[string]int
	// twins is an index of the samples. It is created at the first point whose series can
	// also have another name or process.
	twins map[sampleKey]twin
	// newest is the highest rank of the names of each input of a picker, and mixed is true
	// where there are several.
	newest map[input.Metric]int16
	mixed  bool
	// torn are the sums that lack a part, because its point cannot be used.
	torn map[sampleKey]bool
	// valued is true once there is a value.
	valued bool
}

type sampleKey struct {
	input input.Metric
	group int
	label input.Label
}

// origin is where a point comes from, which is needed only until its batch is read.
type origin struct {
	// rank is that of the name, see names.go.
	rank int16
	// summed is true where the point is summed, see Definition.Summed.
	summed bool
	// process is the process that reported the point, where vLLM names it.
	process string
}

// twin is a sample that others of the same series are compared with.
type twin struct {
	origin
	at int
	// contradicted is true where another process reported the same series.
	contradicted bool
}

func (c *Reader) add(timestamp pcommon.Timestamp, attributes pcommon.Map, sample *input.Sample) {
	if timestamp == 0 {
		c.report[NoTimestamp]++
		return
	}
	if sample.Input.Summed() && isCopy(attributes) || isRepeated(sample.Input, attributes) {
		return
	}
	if !c.read(attributes, sample) {
		c.report[TooLarge]++
		return
	}
	batch, p := c.batch(timestamp)
	if sample.Gone {
		batch.Ends = c.source
	}
	if !sample.Gone || !p.valued {
		batch.Source, p.valued = c.source, !sample.Gone
	}
	sample.Group = c.group(batch, p)
	p.compare(sample, c.origin.rank)
	if c.replaces(batch, p, sample) {
		return
	}
	batch.Samples = append(batch.Samples, *sample)
	c.most = max(c.most, len(batch.Samples))
}

// addUnread records that a series exists whose point cannot be used.
func (c *Reader) addUnread(timestamp pcommon.Timestamp, attributes pcommon.Map, in input.Metric) {
	if timestamp == 0 || in.Define().Kind == input.Gauge {
		return
	}
	sample := input.Sample{Input: in}
	c.origin = origin{}
	if !c.read(attributes, &sample) {
		return
	}
	batch, p := c.batch(timestamp)
	sample.Group = c.group(batch, p)
	batch.Unread = append(batch.Unread, sample)
	if c.origin.summed {
		p.tear(keyOf(&sample))
	}
}

func (p *pending) tear(key sampleKey) {
	if p.torn == nil {
		p.torn = map[sampleKey]bool{}
	}
	p.torn[key] = true
}

func (c *Reader) batch(timestamp pcommon.Timestamp) (*input.Batch, *pending) {
	if c.current >= 0 && c.batches[c.current].Time == int64(timestamp) {
		return &c.batches[c.current], &c.pending[c.current]
	}
	key := batchKey{c.resource, int64(timestamp)}
	at, known := c.index[key]
	if !known {
		at = len(c.batches)
		c.index[key] = at
		c.batches = append(c.batches, input.Batch{
			Resource: c.resource, Time: int64(timestamp), Samples: c.memory.samples(min(max(minSamples, c.most), c.points)),
			Source: c.source, Ends: -1,
		})
		c.pending = append(c.pending, pending{})
		// A resource usually has points of one time. Where it has many, the other batches
		// grow as needed.
		c.points = 0
	}
	c.current = at
	return &c.batches[at], &c.pending[at]
}

// minSamples is about what a server with one engine has. A batch begins with room for as
// many samples, or as the largest batch so far, but not for more than there are points.
const minSamples = 48

// pidLabel is the process of a gauge that vLLM's multi-process mode reports for each API
// server. It is not a part of the engine's identity.
const pidLabel = "pid"

// read divides the attributes of a point: the input's labels go into the sample, those of the
// engine into c.rest, sorted, and details nowhere. As in Prometheus, an attribute without a value
// is ignored. It returns false where the attributes exceed the limits.
func (c *Reader) read(attributes pcommon.Map, sample *input.Sample) bool {
	if identity.Size(attributes) > maxPointBytes {
		return false
	}
	if sample.Input.Summed() {
		c.readGateway(attributes, sample)
		return true
	}
	definition := sample.Input.Define()
	c.rest = c.rest[:0]
	labels := c.labels[:len(definition.Labels)]
	clear(labels)
	for name, value := range attributes.All() {
		text := value.AsString()
		if text == "" {
			continue
		}
		if name == pidLabel {
			if definition.Kind == input.Gauge || sample.Level {
				c.origin.process = text
				c.evidence.Signs |= input.Processes
				continue
			}
		}
		alias, imitator := c.evidence.label(name)
		if slices.Contains(definition.Summed, name) {
			c.origin.summed = true
			continue
		}
		if imitator {
			if _, taken := attributes.Get(alias); !taken {
				name = alias
			}
		}
		if i := slices.Index(definition.Labels, name); i >= 0 {
			labels[i] = text
			continue
		}
		if isDetail(sample.Input, name) {
			c.origin.summed = isAdditive(sample.Input)
			continue
		}
		c.rest = append(c.rest, input.Attribute{Name: name, Value: text})
	}
	if len(c.rest) > 1 {
		slices.SortFunc(c.rest, func(a, b input.Attribute) int { return strings.Compare(a.Name, b.Name) })
	}
	sample.Label = input.NewLabel(labels...)
	c.key = input.AppendKey(c.key[:0], c.rest)
	return true
}

// fewGroups is the number of groups up to which a linear search is used.
const fewGroups = 8

// group returns the group with the attributes in c.rest.
func (c *Reader) group(batch *input.Batch, p *pending) int {
	c.last = c.place(batch, p)
	return c.last
}

func (c *Reader) place(batch *input.Batch, p *pending) int {
	n := len(batch.Groups)
	// A body has the engines in the same order for each metric, so the next group is
	// likely the one after the last.
	for i := range min(n, fewGroups) {
		next := (c.last + 1 + i) % n
		if batch.Groups[next].Key == string(c.key) {
			return next
		}
	}
	if at, known := p.groups[string(c.key)]; known {
		return at
	}
	batch.Groups = append(batch.Groups, input.NewGroup(string(c.key), c.rest))
	if n >= fewGroups {
		if p.groups == nil {
			p.groups = make(map[string]int, 4*fewGroups)
			for i := range batch.Groups {
				p.groups[batch.Groups[i].Key] = i
			}
		}
		p.groups[batch.Groups[n].Key] = n
	}
	return n
}

// replaces resolves several points of one series at one time. A value wins over an end, a
// newer name over an older one, and a point without a process over one with a process.
// Points of several processes contradict each other, unless they are equal. It reports whether the sample is
// handled and must not be added.
func (c *Reader) replaces(batch *input.Batch, p *pending, sample *input.Sample) bool {
	from := c.origin
	if p.twins == nil {
		if from == (origin{rank: rankCanonical}) {
			return false
		}
		p.twins = make(map[sampleKey]twin, len(batch.Samples))
		for i := range batch.Samples {
			p.twins[keyOf(&batch.Samples[i])] = twin{origin: origin{rank: rankCanonical}, at: i}
		}
	}
	key := keyOf(sample)
	known, has := p.twins[key]
	if !has {
		p.twins[key] = twin{origin: from, at: len(batch.Samples)}
		return false
	}
	other := &batch.Samples[known.at]
	use := func() {
		*other = *sample
		p.twins[key] = twin{origin: from, at: known.at}
	}
	switch {
	case other.Gone != sample.Gone:
		// One name or process has ended and another has a value.
		if other.Gone {
			use()
		}
	case known.rank != from.rank:
		c.report[OlderName]++
		if known.rank < from.rank {
			use()
		}
	case from.summed || known.summed:
		if !sum(other, sample) {
			c.report[BadHistogram]++
			batch.Unread = append(batch.Unread, input.Sample{Input: sample.Input, Group: sample.Group, Label: sample.Label})
			p.tear(key)
		}
	case known.process == "" && from.process == "":
		// The same name twice: the window uses the first and counts the other.
		return false
	case known.process == "" || from.process == "":
		if from.process == "" {
			use()
		}
		c.report[SeveralProcesses]++
	case !sample.Gone && sample.Value == other.Value && !known.contradicted:
		// Whichever of them is the current one, this is its value.
	case !sample.Gone:
		if !known.contradicted {
			known.contradicted = true
			p.twins[key] = known
			c.contradictions = true
			c.report[SeveralProcesses]++
		}
		c.report[SeveralProcesses]++
	}
	return true
}

// dropTorn removes the sums that lack a part. They are less than before, as after a restart.
func (c *Reader) dropTorn() {
	for i := range c.pending {
		if torn := c.pending[i].torn; torn != nil {
			batch := &c.batches[i]
			batch.Samples = slices.DeleteFunc(batch.Samples, func(s input.Sample) bool { return !s.Gone && torn[keyOf(&s)] })
		}
	}
}

// sum adds to a sample that of another value of a summed attribute. It returns false where the
// buckets differ; no release has such a family.
func sum(s, other *input.Sample) bool {
	if other.Gone {
		return true
	}
	if !slices.Equal(s.Bounds, other.Bounds) {
		return false
	}
	s.Value += other.Value
	for i := range other.Counts {
		s.Counts[i] += other.Counts[i]
	}
	s.Count += other.Count
	s.Sum += other.Sum
	s.HasSum = s.HasSum && other.HasSum
	// The sum began with its oldest part. A newer part must not look like a restart.
	s.Start = min(s.Start, other.Start)
	return true
}

// compare records the rank of a gateway's name. A newer picker writes each family under the
// names of two generations, whose labels differ.
func (p *pending) compare(sample *input.Sample, rank int16) {
	if !sample.Input.ByModel() || sample.Gone {
		return
	}
	newest, known := p.newest[sample.Input]
	p.mixed = p.mixed || known && newest != rank
	if p.newest == nil {
		p.newest = map[input.Metric]int16{}
	}
	p.newest[sample.Input] = max(newest, rank)
}

// dropOlderGenerations removes the samples of a gateway whose input also has a newer name in
// the batch. They count the same requests.
func (c *Reader) dropOlderGenerations() {
	for i := range c.pending {
		p := &c.pending[i]
		if !p.mixed {
			continue
		}
		batch := &c.batches[i]
		batch.Samples = slices.DeleteFunc(batch.Samples, func(s input.Sample) bool {
			if !s.Input.ByModel() || s.Gone || p.twins[keyOf(&s)].rank == p.newest[s.Input] {
				return false
			}
			c.report[OlderName]++
			return true
		})
	}
}

func keyOf(s *input.Sample) sampleKey { return sampleKey{s.Input, s.Group, s.Label} }

// dropContradictions removes the gauges of which several processes report different values.
// An engine of vLLM sends its state to one of the API servers at a time, to any of them, so
// one of the values is the current one and the others are older. They do not show which.
func (c *Reader) dropContradictions() {
	if !c.contradictions {
		return
	}
	for i := range c.batches {
		batch := &c.batches[i]
		batch.Samples = slices.DeleteFunc(batch.Samples, func(s input.Sample) bool {
			contradicted := c.pending[i].twins[keyOf(&s)].contradicted
			if contradicted {
				batch.Contradicted = append(batch.Contradicted, input.Sample{Input: s.Input, Group: s.Group, Label: s.Label})
			}
			return contradicted
		})
	}
}
