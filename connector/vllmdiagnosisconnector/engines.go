package vllmdiagnosisconnector

import (
	"iter"
	"maps"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/connector/vllmdiagnosisconnector/internal/collect"
	"github.com/otelcol-vllm/otelcol-vllm/connector/vllmdiagnosisconnector/internal/emit"
	"github.com/otelcol-vllm/otelcol-vllm/connector/vllmdiagnosisconnector/internal/track"
)

// engine is an engine or a pool.
type engine struct {
	*track.Engine
	attributes []collect.Attribute
	// arrived is when its last points arrived, by our clock.
	arrived time.Time
	// waits is the origin of a part of a frame whose rest has not arrived; nil without
	// one.
	waits *emit.Origin
	// behind is the time of the last frame that was older than the newest, where that is
	// ahead of our clock; 0 without one.
	behind int64
}

// engines are those of all resources. They have a limit, and each resource a share of
// it, so that one which sends more engines than it has takes nothing from the others.
type engines struct {
	by           map[string]*group
	limit, share int
	// count is their number, and ended the number of those that have ended.
	count, ended int
	// sizes is how many resources have so many engines, and most the largest number that
	// one has.
	sizes []int
	most  int
}

// group are the engines of one resource.
type group struct {
	by    map[collect.Key]*engine
	ended int
}

const (
	// leastShare is the least share of a resource, where the limit has room for it.
	leastShare = 256
	// shares is how many resources with all of their share fit.
	shares = 10
)

func newEngines(limit int) engines {
	share := max(min(limit, leastShare), limit/shares)
	return engines{by: map[string]*group{}, limit: limit, share: share, sizes: make([]int, share+1)}
}

func (s *engines) get(key collect.Key) *engine {
	if of := s.by[key.Resource]; of != nil {
		return of.by[key]
	}
	return nil
}

func (s *engines) add(key collect.Key, e *engine) *engine {
	of := s.by[key.Resource]
	if of == nil {
		of = &group{by: map[collect.Key]*engine{}}
		s.by[key.Resource] = of
	}
	of.by[key] = e
	s.count++
	s.resized(len(of.by)-1, len(of.by))
	return e
}

func (s *engines) remove(key collect.Key) {
	e := s.get(key)
	if e == nil {
		return
	}
	of := s.by[key.Resource]
	s.mark(key, e.Ended(), false)
	delete(of.by, key)
	s.count--
	s.resized(len(of.by)+1, len(of.by))
	if len(of.by) == 0 {
		delete(s.by, key.Resource)
	}
}

func (s *engines) resized(from, to int) {
	s.sizes[from]--
	s.sizes[to]++
	s.sizes[0] = 0
	s.most = max(s.most, to)
	for s.most > 0 && s.sizes[s.most] == 0 {
		s.most--
	}
}

// mark counts an engine that has ended, or that has begun again.
func (s *engines) mark(key collect.Key, before, now bool) {
	by := 0
	switch {
	case now && !before:
		by = 1
	case before && !now:
		by = -1
	}
	s.by[key.Resource].ended += by
	s.ended += by
}

// all returns the engines of all resources. The one that it is at may be removed.
func (s *engines) all() iter.Seq2[collect.Key, *engine] {
	return func(yield func(collect.Key, *engine) bool) {
		for _, of := range s.by {
			for key, e := range of.by {
				if !yield(key, e) {
					return
				}
			}
		}
	}
}

// live is the number of those that have a diagnosis.
func (s *engines) live() int { return s.count - s.ended }

// makeRoom reports whether there is no room for another engine of a resource, and then
// which one is to give way: one that has ended, or where the limit is reached one of the
// resource with the most. It is nil where none is to. To find that none is to takes no
// search: that is what a resource with far too many engines asks for all of them.
func (s *engines) makeRoom(resource string) (giveWay *collect.Key, full bool) {
	own, ended := 0, 0
	if of := s.by[resource]; of != nil {
		own, ended = len(of.by), of.ended
	}
	switch {
	case own >= s.share && ended == 0:
		return nil, true
	case own >= s.share:
		return oldest(maps.All(s.by[resource].by), true), true
	case s.count < s.limit:
		return nil, false
	case s.ended > 0:
		return oldest(s.all(), true), true
	case s.most < own+2:
		return nil, true
	}
	largest := ""
	for name, of := range s.by {
		// The least name, so that the choice is the same each time.
		if len(of.by) == s.most && (largest == "" || name < largest) {
			largest = name
		}
	}
	return oldest(maps.All(s.by[largest].by), false), true
}

// oldest is the engine that has been silent for the longest time, of those that have
// ended or of all.
func oldest(of iter.Seq2[collect.Key, *engine], ended bool) *collect.Key {
	var found *collect.Key
	var since time.Time
	for key, e := range of {
		if ended && !e.Ended() {
			continue
		}
		if found == nil || e.arrived.Before(since) || e.arrived.Equal(since) && key.Point < found.Point {
			found, since = &key, e.arrived
		}
	}
	return found
}
