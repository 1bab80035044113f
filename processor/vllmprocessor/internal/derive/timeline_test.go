package derive_test

import (
	"cmp"
	"slices"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
)

// exposed reports whether a series is in the body of a scrape.
func (w *world) exposed(s *stream, scrape int) bool {
	if !w.up[s.engine][scrape] {
		return false
	}
	if !s.lazy {
		return true
	}
	t := w.scrapes[scrape]
	begin := w.lives[s.engine][w.life(s.engine, t)]
	next, _ := slices.BinarySearchFunc(s.events, begin, func(o occurrence, t int64) int { return cmp.Compare(o.at, t) })
	return next < len(s.events) && s.events[next].at <= t
}

// body is what the server says about a series at a time: everything since the
// engine began.
func (w *world) body(s *stream, t int64) (value float64, counts []float64, sum float64) {
	if known, ok := s.cache[t]; ok {
		return known.value, slices.Clone(known.counts), known.sum
	}
	defer func() {
		if s.cache == nil {
			s.cache = map[int64]body{}
		}
		s.cache[t] = body{value, slices.Clone(counts), sum}
	}()
	life := w.life(s.engine, t)
	if s.bounds != nil {
		counts = make([]float64, len(s.bounds[life])+1)
	}
	for _, o := range s.events {
		if o.at < w.lives[s.engine][life] || o.at > t {
			continue
		}
		value += o.value
		if s.bounds != nil {
			i, _ := slices.BinarySearch(s.bounds[life], o.value)
			counts[i]++
			sum += o.value
		}
	}
	return value, counts, sum
}

// evidence makes sure that each restart can be seen: where no number falls, the
// points of that life have start times.
func (w *world) evidence() {
	for _, e := range append([]string{frontEnd}, w.engines...) {
		for life := 1; life < len(w.lives[e]); life++ {
			first := slices.IndexFunc(w.scrapes, func(t int64) bool { return t >= w.lives[e][life] })
			for first >= 0 && first < len(w.scrapes) && !w.speaks(e, first) {
				first++
			}
			if first < 0 || first == len(w.scrapes) || w.life(e, w.scrapes[first]) != life {
				continue
			}
			w.startsKnown[e][life] = w.startsKnown[e][life] || !w.falls(e, first)
		}
	}
}

// speaks reports whether an engine shows anything that could fall.
func (w *world) speaks(engine string, scrape int) bool {
	return slices.ContainsFunc(w.streams, func(s *stream) bool {
		return s.engine == engine && s.input.Define().Kind != input.Gauge && w.exposed(s, scrape)
	})
}

// falls reports whether a number of an engine is lower than it was when it was
// seen last, in the life before.
func (w *world) falls(engine string, scrape int) bool {
	last := scrape - 1
	for last >= 0 && !w.speaks(engine, last) {
		last--
	}
	if last < 0 {
		return false
	}
	for _, s := range w.streams {
		if s.engine != engine || s.input.Define().Kind == input.Gauge || !w.exposed(s, scrape) {
			continue
		}
		for before := scrape - 1; before >= 0; before-- {
			if w.scrapes[before+1]-w.scrapes[before] > w.staleness || w.scrapes[scrape]-w.scrapes[before] > w.staleness {
				break
			}
			if !w.exposed(s, before) {
				continue
			}
			if w.life(engine, w.scrapes[before]) != w.life(engine, w.scrapes[last]) {
				break
			}
			now, counts, _ := w.body(s, w.scrapes[scrape])
			was, countsWere, _ := w.body(s, w.scrapes[before])
			if s.bounds != nil {
				now, was = total(counts), total(countsWere)
			}
			if now < was {
				return true
			}
			break
		}
	}
	return false
}

func total(counts []float64) (n float64) {
	for _, c := range counts {
		n += c
	}
	return n
}

// batches are what comes from a scrape: in parts, in any order, with points that
// come twice and points that come too late. What was not in the scrape before is
// in the first part, because it cannot be known that it follows.
func (w *world) batches(scrape int) []*input.Batch {
	r := w.random
	t := w.scrapes[scrape]
	parts := make([]*input.Batch, 1)
	if r.IntN(3) == 0 && !w.began(scrape) {
		parts = make([]*input.Batch, 2+r.IntN(2))
	}
	for i := range parts {
		parts[i] = &input.Batch{Time: t, Evidence: input.Evidence{Version: unaffected}}
	}
	streams := slices.Clone(w.streams)
	r.Shuffle(len(streams), func(i, j int) { streams[i], streams[j] = streams[j], streams[i] })
	for _, s := range streams {
		into := parts[r.IntN(len(parts))]
		before := scrape > 0 && w.exposed(s, scrape-1)
		sample := input.Sample{Input: s.input, Label: input.Label(s.label)}
		life := w.life(s.engine, t)
		if w.startsKnown[s.engine][life] {
			sample.Start = w.lives[s.engine][life]
		}
		switch {
		case w.exposed(s, scrape):
			if !before {
				into = parts[0]
			}
			if s.bounds == nil {
				sample.Value, _, _ = w.body(s, t)
			} else {
				sample.HasSum, sample.Bounds = true, s.bounds[life]
				_, sample.Counts, sample.Sum = w.body(s, t)
				sample.Count = total(sample.Counts)
			}
		case before && w.markers:
			sample.Gone = true
		default:
			continue
		}
		sample.Group = place(into, attributes(s))
		into.Samples = append(into.Samples, sample)
	}
	if r.IntN(6) == 0 {
		again := *parts[0]
		again.Samples = slices.Clone(again.Samples)
		for i := range again.Samples {
			again.Samples[i].Value *= 3
		}
		parts = append(parts, &again)
	}
	if r.IntN(6) == 0 && scrape > 0 {
		late := *parts[0]
		late.Time = w.scrapes[scrape-1] - 1
		parts = append(parts, &late)
	}
	return parts
}

// unaffected is a version whose known defects concern no row of one server, besides the
// multi-modal cache of several engines.
const unaffected = "0.40.0"

// began reports whether an engine may show its restart only by a number that falls.
// Parts before that number would have been emitted without knowing of the restart.
func (w *world) began(scrape int) bool {
	for e, lives := range w.lives {
		life := w.life(e, w.scrapes[scrape])
		if life > 0 && !w.startsKnown[e][life] && !slices.ContainsFunc(w.scrapes[:scrape], func(t int64) bool {
			return t >= lives[life] && w.speaks(e, slices.Index(w.scrapes, t))
		}) {
			return true
		}
	}
	return false
}

func attributes(s *stream) []input.Attribute {
	switch {
	case s.engine == frontEnd:
		return nil
	case s.input == input.CacheConfigTokens:
		return []input.Attribute{{Name: "engine", Value: s.engine}}
	}
	return []input.Attribute{{Name: "engine", Value: s.engine}, {Name: "model_name", Value: model}}
}

func place(b *input.Batch, attributes []input.Attribute) int {
	key := keyOf(attributes)
	for i := range b.Groups {
		if b.Groups[i].Key == key {
			return i
		}
	}
	b.Groups = append(b.Groups, input.Group{Key: key, Attributes: attributes})
	return len(b.Groups) - 1
}

func keyOf(attributes []input.Attribute) string {
	key := ""
	for _, a := range attributes {
		key += a.Name + "=" + a.Value + ","
	}
	return key
}
