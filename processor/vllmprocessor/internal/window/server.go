package window

import (
	"iter"
	"math"
	"regexp"
	"slices"
	"sync"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
)

// Affected reports whether the server can have a defect.
func (v *View) Affected(id catalog.DefectID) bool { return v.resource.Affected(id) }

// AffectedV0 reports whether the server can have a defect of the V0 engine: its version is
// older than the other engine, or it exposes a family that only this engine has. Almost
// every other server of unknown version is none.
func (v *View) AffectedV0(id catalog.DefectID) bool {
	version := v.resource.Version()
	older := version.Exact && version.Least.Compare(catalog.Release{0, 7}) < 0
	return (older || v.resource.evidence.Signs.Has(input.V0)) && v.resource.Affected(id)
}

// Known reports whether the version of the server is known.
func (v *View) Known() bool { return v.resource.Version().Exact }

// Before reports whether the server can be older than a release.
func (v *View) Before(release catalog.Release) bool {
	return v.resource.Version().Least.Compare(release) < 0
}

// MarksErrors reports whether the resource is a gateway that has distinguished requests that failed.
func (v *View) MarksErrors() bool { return v.resource.evidence.Signs.Has(input.MarksErrors) }

// Shows reports whether the data show that the server has a setup.
func (v *View) Shows(setup string) bool { return v.resource.Shows(setup) }

// Server iterates over all engines and models of the server, over the same window: those
// in the newest batch or the one before.
func (v *View) Server() iter.Seq[*View] {
	return func(yield func(*View) bool) {
		for _, g := range v.resource.groups {
			if !g.ended && g.seq >= v.resource.seq-1 && !yield(&View{v.resource, g, v.from, v.Elapsed}) {
				return
			}
		}
	}
}

// RestartedWithin reports whether the engine has restarted within the window.
func (v *View) RestartedWithin() bool {
	at, ever := v.Restarted()
	return ever && at > *v.resource.times.at(v.from)
}

// Received returns the value of a counter or gauge as the server sent it, summed over its labels:
// without what was counted before a restart that was seen. It is the same for every reader of the
// server. It is not a number where the newest batch lacks a part of it, or it sends deltas.
func (v *View) Received(in input.Metric) float64 {
	value, status := v.sumPresent(in, func(s *series) (float64, Status) {
		if s.delta {
			return 0, Missing
		}
		var b buffer
		return s.received(b[:])[0], v.status(s)
	})
	if status != Present {
		return math.NaN()
	}
	return value
}

// Began returns the latest known start of a counter, in Unix nanoseconds; 0 where none is known. A
// start equal to the time of its point is not known.
func (v *View) Began(in input.Metric) (start int64) {
	for _, s := range v.group.inputs.of(in) {
		if v.status(s) == Present && !s.delta && s.start < s.time {
			start = max(start, s.start)
		}
	}
	return start
}

// ProcessStart is when the process of the server began, in Unix seconds of its own clock; 0 where
// it does not say.
func (r *Resource) ProcessStart() float64 { return r.evidence.ProcessStart }

// Version is what is known about the version of a server.
type Version struct {
	// Least is the oldest version that it can have; 0 where nothing is known.
	Least catalog.Release
	// Exact is true where Least is its version.
	Exact bool
	// unreleased is true for a build before the release, which can lack what the release
	// has.
	unreleased bool
	// v0 is true for the V0 engine.
	v0 bool
}

// Version returns what is known about the version of the server. It is that of the
// attribute service.version, if this can be a version of vLLM: its first number is 0, and
// it is not older than a family that the server exposes. Otherwise the families prove a
// lower bound. They prove none where several servers share the resource, and none of a
// program that imitates vLLM.
func (r *Resource) Version() Version {
	if !r.judged {
		r.version, r.judged = r.judge(), true
	}
	return r.version
}

func (r *Resource) judge() Version {
	e := &r.evidence
	if e.Signs.Has(input.Imitator) {
		return Version{}
	}
	var v Version
	if !r.severalServers() {
		v.Least, v.v0 = e.Least, e.Signs.Has(input.V0)
	}
	parts := versionOfVLLM.FindStringSubmatch(e.Version)
	if parts == nil {
		return v
	}
	if release, ok := catalog.ParseRelease(parts[1]); ok && release.Compare(v.Least) >= 0 {
		v.Least, v.Exact, v.unreleased = release, true, parts[2] != ""
	}
	return v
}

// versionOfVLLM matches a version of vLLM. Other programs and charts begin with other
// numbers, so their versions in service.version are told apart. The second group is that
// of a build before the release.
var versionOfVLLM = regexp.MustCompile(`^v?(0\.\d+(?:\.\d+)*)(?:\.?((?:dev|rc|a|b)\d*))?`)

// severalServers reports whether the models of the resource belong to several servers:
// they differ in more than engine and model.
func (r *Resource) severalServers() bool {
	var first *Group
	for _, g := range r.groups {
		switch {
		case g.Value("model_name") == "":
		case first == nil:
			first = g
		case !slices.Equal(first.Without("engine", "model_name"), g.Without("engine", "model_name")):
			return true
		}
	}
	return false
}

// affected is a defect of the catalogue in the form in which it is looked up.
type affected struct {
	since, until catalog.Release
	// ends is true where the defect is fixed. v0 is true where the V0 engine can have it.
	ends, v0 bool
	setups   []string
}

var defects = sync.OnceValue(func() map[catalog.DefectID]affected {
	index := map[catalog.DefectID]affected{}
	for _, d := range catalog.Defects() {
		a := affected{setups: d.Setups, v0: len(d.Engines) == 0 || slices.Contains(d.Engines, "v0")}
		a.since, _ = catalog.ParseRelease(d.Since)
		a.until, a.ends = catalog.ParseRelease(d.Until)
		index[d.ID] = a
	}
	return index
})

// Affected reports whether the server can have a defect: its version can, and each setup
// that the defect needs is there or cannot be seen. The Rust front end cannot be told
// apart in the data, so a defect of the Python front end counts for both.
func (r *Resource) Affected(id catalog.DefectID) bool {
	a, known := defects()[id]
	if !known {
		return false
	}
	version := r.Version()
	if !a.in(version) || version.v0 && !a.v0 {
		return false
	}
	for _, setup := range a.setups {
		if !r.possible(setup, &a, version) {
			return false
		}
	}
	return true
}

// in reports whether a server of this version can have the defect.
func (a *affected) in(v Version) bool {
	fixed := a.ends && v.Least.Compare(a.until) >= 0
	if fixed && v.unreleased {
		fixed = v.Least != a.until
	}
	return !fixed && !(v.Exact && v.Least.Compare(a.since) < 0)
}

// lastPid is the first version in which no gauge has the process in a label.
var lastPid = catalog.Release{0, 12}

// possible reports whether a setup is seen in the data, or cannot be seen.
func (r *Resource) possible(setup string, a *affected, v Version) bool {
	switch setup {
	case "api_servers":
		// A server with several of them does not say when its process began.
		hidden := r.evidence.ProcessStart == 0 && (!a.ends || a.until.Compare(lastPid) > 0) && !(v.Exact && v.Least.Compare(lastPid) < 0)
		return hidden || r.Shows(setup)
	case "data_parallel":
		// Without an engine in a label, the engines may have been added up.
		return r.Shows(setup) || !slices.ContainsFunc(r.groups, func(g *Group) bool { return g.Engine() != "" })
	case "ray", "speculation", "connector", "lora", "late_first_tokens", "scale_up":
		return r.Shows(setup)
	}
	return true
}

// Shows reports whether the data show that the server has a setup. It returns false for a
// setup that cannot be seen.
func (r *Resource) Shows(setup string) bool {
	switch setup {
	case "data_parallel":
		// It is enough that there is an engine with another number than 0: of some versions only the
		// last one is seen.
		return slices.ContainsFunc(r.groups, func(g *Group) bool { return g.Engine() != "" && g.Engine() != "0" })
	case "api_servers":
		return r.evidence.Signs.Has(input.Processes)
	case "ray":
		return r.evidence.Signs.Has(input.Ray)
	case "speculation":
		return r.counted(input.Drafts, input.DraftTokens)
	case "connector":
		// The counters of the external cache are 0 without a connector.
		return r.evidence.Signs.Has(input.Connector) || r.counted(input.ExternalPrefixCacheQueries)
	case "lora":
		return r.evidence.Signs.Has(input.LoRA)
	case "late_first_tokens":
		return r.evidence.Signs.Has(input.LateFirstTokens)
	case "scale_up":
		return r.scaled
	}
	return false
}

// counted reports whether one of the counters is not 0, or sends deltas.
func (r *Resource) counted(counters ...input.Metric) bool {
	for _, g := range r.groups {
		for _, in := range counters {
			if slices.ContainsFunc(g.inputs.of(in), func(s *series) bool { return s.delta || s.number() > 0 }) {
				return true
			}
		}
	}
	return false
}

// learn takes the evidence of a batch. What a server showed before a restart, before a gap
// or under another version may be that of an older or newer program.
func (r *Resource) learn(batch *input.Batch, renewed bool) {
	before := r.evidence
	if renewed || batch.Evidence.Version != "" && batch.Evidence.Version != r.evidence.Version {
		r.evidence = input.Evidence{Version: r.evidence.Version}
	}
	r.evidence.Join(&batch.Evidence)
	r.judged = r.judged && r.evidence == before
}

// Reported is the version that the server reports; empty where it does not.
func (r *Resource) Reported() string { return r.evidence.Version }

// Described returns the server as its known defects are looked up for. It reports false
// where it is not a vLLM server, where several share the resource, and where our receiver
// has looked them up already.
func (r *Resource) Described() (catalog.Server, bool) {
	server := catalog.Server{Version: r.evidence.Version}
	signs := r.evidence.Signs
	if signs.Has(input.Imitator) || signs.Has(input.Received) || r.severalServers() {
		return server, false
	}
	if !r.Version().Exact {
		server.Version = ""
	}
	var sent [input.NumMetrics]bool
	vllm := false
	for in := range input.NumMetrics {
		sent[in] = slices.ContainsFunc(r.groups, func(g *Group) bool { return len(g.inputs.of(in)) > 0 })
		if sent[in] && in.String() != "" {
			server.Metrics = append(server.Metrics, in.String())
			vllm = vllm || !in.OfReceiver()
		}
	}
	for _, setup := range catalog.Setups() {
		if r.Shows(setup.Name) {
			server.Setups = append(server.Setups, setup.Name)
		}
	}
	switch {
	case signs.Has(input.V0):
		server.Engine = "v0"
	case sent[input.IterationTokens] && sent[input.PrefixCacheQueries]:
		// The Rust front end does not observe steps, and the V0 engine counts no lookups.
		server.Engine = "python"
	}
	return server, vllm
}
