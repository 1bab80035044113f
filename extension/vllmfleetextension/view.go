package vllmfleetextension

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/internal/fleet"
)

// view is what all processors know at a moment. Nothing changes it once it is made.
type view struct {
	at time.Time
	// alone is true where no processor is asked.
	alone   bool
	engines []engine
	pools   []pool
	budgets []fleet.Budget
	servers []*server
	// byName finds servers by what a probe can call them, in lower case, and byID the engines.
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
	fit       fitness
}

type pool struct {
	fleet.Pool
	processor string
}

// server is the engines of one resource, of all processors that know it.
type server struct {
	key     string
	engines []*engine
	// lead is the engine that tells its pool: one that is heard of now and has a model, where there is one.
	lead *engine
	// fit is the worst of its engines that are heard of now.
	fit fitness
	// read is true where it was read before and is heard of now, lost where nobody can read it now.
	read, lost bool
	// refused is true where probes for routing answer 503, dead where those for liveness do as well.
	refused, dead bool
	// suspect is true where it cannot be read, as most others.
	suspect bool
}

// fitness is what the data say of a server, from what says least against it. An old engine says nothing: a server that was
// restarted with another model has one for a while.
type fitness uint8

const (
	old fitness = iota
	serving
	slow
	asleep
	draining
	starting
	undecided
	unread
	resumed
	doubtful
	unreachable
	failing
	stalled
	// What follows is said of servers that are unfit and get requests all the same.
	limited
	suspect
)

var fitnessWords = [...]struct{ name, sentence string }{
	serving:     {"serving", "The server serves."},
	slow:        {"slow", "The server serves, but not as it should."},
	asleep:      {"asleep", "The engine sleeps and serves nothing until it is woken."},
	draining:    {"draining", "Kubernetes is deleting the pod."},
	undecided:   {"undecided", "The server was read, but the data do not say yet whether it serves."},
	starting:    {"starting", "The server is starting."},
	unread:      {"unread", "The server was never read, so nothing is known about it."},
	resumed:     {"resumed", "What is known is from before the collector restarted."},
	doubtful:    {"doubtful", "It is not certain that the server is unreachable: it was lost or found only just now, or another processor reads it."},
	old:         {"old", "The server was not read in the time of two scrapes, so nothing is known about it now."},
	unreachable: {"unreachable", "The server was read before and cannot be read any more."},
	failing:     {"failing", "Too many requests fail."},
	stalled:     {"stalled", "The engine makes no progress."},
	limited:     {"limited", "The server is unfit, but as many servers of its pool as unfit_share allows are reported as unfit already."},
	suspect:     {"suspect", "The server cannot be read any more, like most others: perhaps the collector has lost its network."},
}

// skew is how far the clock of a sender can be behind before its data count as old.
const skew = 30 * time.Second

// fitnessOf judges one engine at a time. Only what is certain makes one unfit. window is that of its processor, for
// senders of which the time between two scrapes is not known.
func fitnessOf(e *fleet.Engine, window time.Duration, now time.Time) fitness {
	limit := 2 * cmp.Or(e.Interval, window)
	switch {
	case !e.Read && e.Condition == "starting":
		return starting
	case !e.Read:
		return unread
	case now.Sub(e.Arrived) > limit || now.Sub(e.At) > limit+skew:
		return old
	case e.Resumed:
		return resumed
	}
	switch e.Condition {
	case "stalled":
		return stalled
	case "failing":
		return failing
	case "unreachable":
		if e.Failure == "" || now.Sub(e.Since) < limit {
			return doubtful // Until all servers were scraped once more, it may be the collector that has lost its network.
		}
		return unreachable
	case "starting":
		return starting
	case "unknown":
		return undecided
	case "draining":
		return draining
	case "asleep":
		return asleep
	}
	if e.Severity >= 2 {
		return slow
	}
	return serving
}

// newView joins what processors know. refusedBefore are the servers that were refused in the view before: they stay so
// while they are unfit, so that the share does not move from one server to another.
func newView(now time.Time, known map[string]*fleet.Snapshot, share float64, refusedBefore map[string]bool) *view {
	v := &view{at: now.UTC(), alone: len(known) == 0, byName: map[string][]*server{}, byID: map[string]int{}}
	for _, processor := range slices.Sorted(maps.Keys(known)) {
		snapshot := known[processor]
		for i := range snapshot.Engines {
			e := &snapshot.Engines[i]
			v.engines = append(v.engines, engine{Engine: *e, processor: processor, fit: fitnessOf(e, snapshot.Window, now)})
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
		s := servers[e.Resource]
		if s == nil {
			s = &server{key: e.Resource, lead: e, lost: true}
			servers[e.Resource] = s
			v.servers = append(v.servers, s)
		}
		s.engines = append(s.engines, e)
		s.fit = max(s.fit, e.fit)
		if e.fit != old {
			s.read = s.read || e.Read
			s.lost = s.lost && e.Read && (e.Failure != "" || e.Condition == "unreachable")
		}
		if s.lead.fit == old || s.lead.Model == "" && e.fit != old {
			s.lead = e
		}
		e.server = s
		v.name(s, e.Server, e.Address, e.Pod)
		if e.Pod != "" && e.Namespace != "" {
			v.name(s, e.Namespace+"/"+e.Pod)
		}
	}
	v.refuse(share, refusedBefore)
	return v
}

func (v *view) name(s *server, names ...string) {
	for _, name := range names {
		if name = strings.ToLower(name); name != "" && !slices.Contains(v.byName[name], s) {
			v.byName[name] = append(v.byName[name], s)
		}
	}
}

// count is how many servers were read before and are heard of now, and how many of them cannot be read.
type count struct{ read, lost int }

func (c *count) add(s *server) {
	if s.read {
		c.read++
	}
	if s.read && s.lost {
		c.lost++
	}
}

// suspect reports whether more than half cannot be read.
func (c *count) suspect() bool { return 2*c.lost > c.read }

// group is what a share of can be unfit: servers of one model, namespace and cluster.
func (s *server) group() string {
	return s.lead.Cluster + "\x00" + s.lead.Namespace + "\x00" + s.lead.Model
}

// refuse decides which unfit servers probes report as unfit.
func (v *view) refuse(share float64, before map[string]bool) {
	var all count
	groups := map[string][]*server{}
	for _, s := range v.servers {
		if s.fit == unreachable && !s.lost {
			s.fit = doubtful
		}
		if s.fit != old { // Servers that have left the pool do not raise what the share allows.
			groups[s.group()] = append(groups[s.group()], s)
		}
		all.add(s)
	}
	v.suspect = all.suspect()
	for _, servers := range groups {
		var of count
		for _, s := range servers {
			of.add(s)
		}
		var unfit []*server
		for _, s := range servers {
			if s.suspect = s.fit == unreachable && (v.suspect || of.suspect()); s.fit >= unreachable && !s.suspect {
				unfit = append(unfit, s)
			}
		}
		slices.SortFunc(unfit, func(a, b *server) int {
			if before[a.key] != before[b.key] {
				return map[bool]int{true: -1, false: 1}[before[a.key]]
			}
			return cmp.Or(a.worst().Since.Compare(b.worst().Since), cmp.Compare(a.key, b.key))
		})
		allowed := int(share*float64(len(servers)) + 1e-9)
		if share > 0 {
			allowed = max(allowed, 1)
		}
		for _, s := range unfit[:min(allowed, len(unfit))] {
			s.refused = true
			s.dead = !slices.ContainsFunc(s.engines, func(e *engine) bool { return e.fit != stalled })
		}
	}
}

// said is what is said about the fitness of the server.
func (s *server) said() fitness {
	switch {
	case s.suspect:
		return suspect
	case s.fit >= unreachable && !s.refused:
		return limited
	}
	return s.fit
}

// worst is the engine that makes the server as fit as it is; of several, the most severe.
func (s *server) worst() *engine {
	return slices.MaxFunc(s.engines, func(a, b *engine) int {
		return cmp.Or(cmp.Compare(a.fit, b.fit), cmp.Compare(a.Severity, b.Severity))
	})
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
