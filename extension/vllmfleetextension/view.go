package vllmfleetextension

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/internal/fleet"
)

// view is what all processors know at a moment. Nothing changes it once it is made.
type view struct {
	at      time.Time
	engines []engine
	pools   []pool
	budgets []fleet.Budget
	servers []*server
	// byName finds servers by what a probe can call them.
	byName map[string][]*server
	byID   map[string]int
	// suspect is true where most servers that were read cannot be read any more: then it is likely that the collector,
	// not the servers, has lost its network.
	suspect bool
}

type engine struct {
	fleet.Engine
	processor string
	server    *server
}

type pool struct {
	fleet.Pool
	processor string
}

// server is the engines of one resource.
type server struct {
	key, name string
	engines   []*engine
	// group is what a share of can be unfit: servers of one model and namespace.
	group string
	fit   fitness
	// refused is true where routing probes answer 503, dead where those for liveness do as well.
	refused, dead bool
}

// fitness is what the data say of a server, the worst of its engines.
type fitness uint8

const (
	serving fitness = iota
	slow
	starting
	unread
	old
	unreachable
	failing
	stalled
)

var fitnessWords = [...]struct{ name, sentence string }{
	serving:     {"serving", "The server serves."},
	slow:        {"slow", "The server serves, but not as it should."},
	starting:    {"starting", "The server is starting."},
	unread:      {"unread", "The server was never read, so nothing is known about it."},
	old:         {"old", "The newest data are older than two scrapes, so nothing is known about the server now."},
	unreachable: {"unreachable", "The server was read before and cannot be read any more."},
	failing:     {"failing", "Most requests fail."},
	stalled:     {"stalled", "The engine makes no progress while requests wait."},
}

// fitnessOf judges one engine at a time.
func fitnessOf(e *fleet.Engine, window time.Duration, now time.Time) fitness {
	limit := 2 * cmp.Or(e.Interval, window)
	switch {
	case !e.Read && e.Condition == "starting":
		return starting
	case !e.Read:
		return unread
	case now.Sub(e.Arrived) > limit || now.Sub(e.At) > limit+skew:
		return old
	}
	switch e.Condition {
	case "stalled":
		return stalled
	case "failing":
		return failing
	case "unreachable":
		return unreachable
	case "starting":
		return starting
	}
	if e.Severity >= 2 {
		return slow
	}
	return serving
}

// skew is how far the clock of a sender can be behind before its data count as old.
const skew = 30 * time.Second

// newView joins what processors know. refusedBefore are the servers that were refused in the view before: they stay so
// while they are unfit, so that the share does not move from one server to another.
func newView(now time.Time, known map[string]*fleet.Snapshot, share float64, refusedBefore map[string]bool) *view {
	v := &view{at: now, byName: map[string][]*server{}, byID: map[string]int{}}
	for _, processor := range slices.Sorted(keys(known)) {
		snapshot := known[processor]
		for i := range snapshot.Engines {
			v.engines = append(v.engines, engine{Engine: snapshot.Engines[i], processor: processor})
		}
		for _, one := range snapshot.Pools {
			v.pools = append(v.pools, pool{one, processor})
		}
		v.budgets = append(v.budgets, snapshot.Budgets...)
	}
	servers := map[string]*server{}
	for i := range v.engines {
		e := &v.engines[i]
		v.byID[e.Key] = i
		key := e.processor + "\x00" + e.Namespace + "\x00" + e.Server
		s := servers[key]
		if s == nil {
			s = &server{key: key, name: e.Server, group: e.processor + "\x00" + e.Namespace + "\x00" + e.Model}
			servers[key] = s
			v.servers = append(v.servers, s)
			for _, name := range []string{e.Server, e.Address, e.Pod, e.Namespace + "/" + e.Pod} {
				if name = strings.ToLower(name); name != "" && name != "/" && !slices.Contains(v.byName[name], s) {
					v.byName[name] = append(v.byName[name], s)
				}
			}
		}
		s.engines = append(s.engines, e)
		e.server = s
		s.fit = max(s.fit, fitnessOf(&e.Engine, known[e.processor].Window, now))
	}
	v.refuse(share, refusedBefore)
	return v
}

// refuse decides which unfit servers probes report as unfit.
func (v *view) refuse(share float64, before map[string]bool) {
	read, lost := 0, 0
	groups := map[string][]*server{}
	for _, s := range v.servers {
		groups[s.group] = append(groups[s.group], s)
		if s.fit != unread && s.fit != old && s.fit != starting {
			read++
		}
		if s.fit == unreachable {
			lost++
		}
	}
	v.suspect = 2*lost > read
	for _, servers := range groups {
		unfit := slices.DeleteFunc(slices.Clone(servers), func(s *server) bool {
			return s.fit < unreachable || s.fit == unreachable && v.suspect
		})
		slices.SortFunc(unfit, func(a, b *server) int {
			if before[a.key] != before[b.key] {
				return map[bool]int{true: -1, false: 1}[before[a.key]]
			}
			return cmp.Or(a.since().Compare(b.since()), cmp.Compare(a.key, b.key))
		})
		allowed := int(share * float64(len(servers)))
		if share > 0 {
			allowed = max(allowed, 1)
		}
		for _, s := range unfit[:min(allowed, len(unfit))] {
			s.refused = true
			s.dead = !slices.ContainsFunc(s.engines, func(e *engine) bool { return e.Condition != "stalled" })
		}
	}
}

// since is since when the first of its engines has been in its condition.
func (s *server) since() time.Time {
	return slices.MinFunc(s.engines, func(a, b *engine) int { return a.Since.Compare(b.Since) }).Since
}

// worst is the engine that is in the worst condition.
func (s *server) worst() *engine {
	return slices.MaxFunc(s.engines, func(a, b *engine) int { return cmp.Compare(a.Severity, b.Severity) })
}

// refusedServers are the keys of the servers that are refused.
func (v *view) refusedServers() map[string]bool {
	refused := map[string]bool{}
	for _, s := range v.servers {
		if s.refused {
			refused[s.key] = true
		}
	}
	return refused
}

func keys[V any](of map[string]V) func(func(string) bool) {
	return func(yield func(string) bool) {
		for key := range of {
			if !yield(key) {
				return
			}
		}
	}
}
