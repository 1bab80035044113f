package live

import (
	"hash/maphash"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/internal/identity"
)

// The bounds of what is kept.
const (
	// MaxRows is how many engines, pools and servers without an engine are shown at most. The
	// first ones stay.
	MaxRows = 2000
	// maxEngines is how many of them can be of one server, so that one that invents engines
	// leaves room for others.
	maxEngines = 256
	// maxLeftOut is up to which number servers and pools that have no row are counted.
	maxLeftOut = 20000
)

// State is what has been emitted so far. It has no clock: times are those of the points.
type State struct {
	servers map[string]*server
	pools   map[string]*subject
	// rows is how many rows the servers and pools have.
	rows int
	// leftOut are hashes of the servers and pools that have no row.
	leftOut map[uint64]struct{}
	seed    maphash.Seed
	notes   notes
}

// server is a target of a receiver.
type server struct {
	// instance is service.instance.id as it is: the log names the server by it. The others
	// are printable.
	instance                               string
	address, namespace, pod, version, kind string
	// up is whether the last scrape succeeded, since is when that became so, and at is when
	// the last scrape was.
	up        bool
	since, at time.Time
	// scrapes is how many scrapes there were, and reads how many succeeded.
	scrapes, reads int
	// failure is the kind of the failure of the last scrape; empty without one.
	failure string
	errors  float64
	engines map[string]*subject
	// leftOut is how many engines of the last batch have no row.
	leftOut int
}

// NewState returns a state that knows nothing.
func NewState() *State {
	return &State{
		servers: map[string]*server{}, pools: map[string]*subject{},
		leftOut: map[uint64]struct{}{}, seed: maphash.MakeSeed(), notes: newNotes(),
	}
}

// needed is a metric of a batch that the view takes something from.
type needed struct {
	need
	points pmetric.NumberDataPointSlice
}

// Take takes a batch of the processor: a scrape of one server, or the pools.
func (s *State) Take(metrics pmetric.Metrics) {
	for _, rm := range metrics.ResourceMetrics().All() {
		var ofServer, ofPools []needed
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				need, is := needs[m.Name()]
				if !is || m.Type() != pmetric.MetricTypeGauge {
					continue
				}
				if n := (needed{need, m.Gauge().DataPoints()}); strings.HasPrefix(m.Name(), poolPrefix) {
					ofPools = append(ofPools, n)
				} else {
					ofServer = append(ofServer, n)
				}
			}
		}
		if len(ofServer) > 0 {
			s.takeServer(rm.Resource().Attributes(), ofServer)
		}
		if len(ofPools) > 0 {
			s.takePools(ofPools)
		}
	}
}

// takeServer takes what a batch has of one server. Only metrics about the scrape and the
// condition make a new row.
func (s *State) takeServer(resource pcommon.Map, metrics []needed) {
	key := identity.Of(resource)
	to, known := s.servers[key]
	began, ended := false, false
	for _, m := range metrics {
		for _, p := range m.points.All() {
			began = began || m.into == intoUp && !isEnd(p) || m.into == intoCondition && holds(p)
			ended = ended || m.into == intoUp && isEnd(p)
		}
	}
	switch {
	case ended && !began:
		// It is not a target any more.
		s.remove(key)
		return
	case !known && (!began || !s.room(key)):
		return
	case !known:
		to = &server{errors: math.NaN(), engines: map[string]*subject{}}
		s.servers[key] = to
		s.rows++
	}
	to.describe(resource)
	before := max(1, len(to.engines))
	to.leftOut = 0
	for _, m := range metrics {
		for _, p := range m.points.All() {
			if m.into == intoCondition && holds(p) && !to.begin(p.Attributes(), s.rows+len(to.engines)-before < MaxRows) {
				to.leftOut++
			}
		}
	}
	for _, m := range metrics {
		for _, p := range m.points.All() {
			to.take(&m.need, p)
		}
	}
	for name, engine := range to.engines {
		if engine.condition == "" {
			delete(to.engines, name)
			delete(s.notes.sentences, to.instance+"\x00"+name)
			continue
		}
		engine.remember()
	}
	s.rows += max(1, len(to.engines)) - before
}

// room reports whether there is room for another server or pool.
func (s *State) room(key string) bool {
	hash := maphash.String(s.seed, key)
	if s.rows < MaxRows {
		delete(s.leftOut, hash)
		return true
	}
	if len(s.leftOut) < maxLeftOut {
		s.leftOut[hash] = struct{}{}
	}
	return false
}

// remove forgets a server.
func (s *State) remove(key string) {
	delete(s.leftOut, maphash.String(s.seed, key))
	if gone, known := s.servers[key]; known {
		s.rows -= max(1, len(gone.engines))
		s.notes.forget(gone.instance)
		delete(s.servers, key)
	}
}

// takePools takes what a batch has of pools. A pool is what has the attributes of group_by.
func (s *State) takePools(metrics []needed) {
	for _, m := range metrics {
		for _, p := range m.points.All() {
			key, name := poolOf(p.Attributes())
			pool, known := s.pools[key]
			switch {
			case !known && (m.into != intoCondition || !holds(p) || !s.room(key)):
				continue
			case !known:
				pool = newSubject()
				of := map[string]string{}
				for attribute := range p.Attributes().All() {
					if !own[attribute] {
						of[attribute] = textOf(p.Attributes(), attribute)
					}
				}
				pool.name = name
				pool.model, pool.others = modelOf(of)
				s.pools[key] = pool
				s.rows++
			}
			pool.take(&m.need, p)
		}
	}
	for key, pool := range s.pools {
		if pool.condition == "" {
			delete(s.pools, key)
			s.rows--
			continue
		}
		pool.remember()
	}
}

// modelOf returns the model of a pool and the values of its other attributes, in the order of their names.
func modelOf(attributes map[string]string) (model, others string) {
	var values []string
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		if name != "model_name" {
			values = append(values, attributes[name])
		}
	}
	return printable(attributes["model_name"], maxName), printable(strings.Join(values, " "), maxName)
}

// poolOf returns the key and the name of the pool that a point is about.
func poolOf(attributes pcommon.Map) (key, name string) {
	var names []string
	for attribute := range attributes.All() {
		if !own[attribute] {
			names = append(names, attribute)
		}
	}
	slices.Sort(names)
	var k, n strings.Builder
	for i, attribute := range names {
		value := textOf(attributes, attribute)
		if i > 0 {
			n.WriteByte(' ')
		}
		n.WriteString(value)
		k.WriteString(attribute + "\x00" + value + "\x00")
	}
	return k.String(), printable(n.String(), maxName)
}

// describe takes the names of a server from its resource.
func (v *server) describe(resource pcommon.Map) {
	text := func(attribute string) string { return textOf(resource, attribute) }
	instance := text("service.instance.id")
	if instance == v.instance && v.instance != "" && text("service.version") == v.version {
		return
	}
	v.instance = strings.Clone(instance)
	v.address, v.version = printable(instance, maxName), printable(text("service.version"), maxName)
	v.namespace, v.pod = printable(text("k8s.namespace.name"), maxName), printable(text("k8s.pod.name"), maxName)
	v.kind = printable(text("vllm.server.kind"), maxName)
}

// begin makes an engine known, and reports whether it has room.
func (v *server) begin(attributes pcommon.Map, room bool) bool {
	key, model, engine := engineOf(attributes)
	if _, known := v.engines[key]; known {
		return true
	}
	// The first engine takes the row of the server.
	if len(v.engines) >= maxEngines || !room && len(v.engines) > 0 {
		return false
	}
	begun := newSubject()
	begun.model, begun.engine = printable(model, maxName), printable(engine, maxName)
	v.engines[strings.Clone(key)] = begun
	return true
}

// engineOf returns the key of the engine that a point is about.
func engineOf(attributes pcommon.Map) (key, model, engine string) {
	model, engine = textOf(attributes, "model_name"), textOf(attributes, "engine")
	return model + "\x00" + engine, model, engine
}

// take takes a point about the server or one of its engines.
func (v *server) take(need *need, p pmetric.NumberDataPoint) {
	switch need.into {
	case intoUp:
		if !isEnd(p) {
			v.scraped(p.Timestamp().AsTime(), number(p) == 1)
		}
	case intoFailure:
		if !isEnd(p) {
			v.failure = textOf(p.Attributes(), "outcome")
		}
	case intoErrors:
		if textOf(p.Attributes(), "status_class") == "5xx" {
			v.errors = number(p)
		}
	default:
		key, _, _ := engineOf(p.Attributes())
		if engine, known := v.engines[key]; known {
			engine.take(need, p)
		}
	}
}

// scraped counts a scrape.
func (v *server) scraped(at time.Time, up bool) {
	if v.scrapes == 0 || up != v.up {
		v.up, v.since = up, at
	}
	v.at = at
	v.scrapes++
	if up {
		v.reads++
		v.failure = ""
	}
}

// textOf is an attribute as text; empty without it.
func textOf(attributes pcommon.Map, name string) string {
	value, has := attributes.Get(name)
	if !has {
		return ""
	}
	return value.AsString()
}

// isEnd reports whether a point only ends its series.
func isEnd(p pmetric.NumberDataPoint) bool { return p.Flags().NoRecordedValue() }

// holds reports whether the state that a series is about is the present one.
func holds(p pmetric.NumberDataPoint) bool { return !isEnd(p) && number(p) == 1 }

// number is the value of a point; NaN for the end of a series.
func number(p pmetric.NumberDataPoint) float64 {
	switch {
	case isEnd(p):
		return math.NaN()
	case p.ValueType() == pmetric.NumberDataPointValueTypeInt:
		return float64(p.IntValue())
	}
	return p.DoubleValue()
}
