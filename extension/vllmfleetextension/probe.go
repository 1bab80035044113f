package vllmfleetextension

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// fitnessHeader says in each answer of a probe what the status rests on: one of the names of fitnessWords, or unknown or
// ambiguous.
const fitnessHeader = "Vllm-Fleet"

// alone is said where no processor is asked.
const alone = "Nothing is known about any server: this collector has no vllm processor with diagnosis."

// answer is the body of a probe.
type answer struct {
	// Serve is true where the status is 200.
	Serve bool `json:"serve"`
	// Fitness is what the header has, Reason a sentence about it.
	Fitness string `json:"fitness"`
	Reason  string `json:"reason"`
	// Server is who was asked about; the others are those of its worst engine.
	Server    string     `json:"server,omitempty"`
	Condition string     `json:"condition,omitempty"`
	Cause     string     `json:"cause,omitempty"`
	Since     *time.Time `json:"since,omitempty"`
	DataAt    *time.Time `json:"data_at,omitempty"`
}

// answerProbe takes the name from the path or, where the path has none, from the header Host: a health check of Envoy
// can set that for each endpoint, and the path only once.
func (f *fleetServer) answerProbe(w http.ResponseWriter, r *http.Request) {
	name := cmp.Or(strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, "/probe"), "/"), r.Host)
	a := answer{Serve: true, Fitness: "unknown", Reason: "The query of the address is neither ?for=routing nor ?for=liveness; leave it out for routing."}
	switch query := r.URL.RawQuery; query { // A mistake in a manifest must not restart a server.
	case "", "for=routing", "for=liveness":
		a = f.view().probe(name, query == "for=liveness")
	}
	w.Header().Set(fitnessHeader, a.Fitness)
	status := http.StatusOK
	if !a.Serve {
		status = http.StatusServiceUnavailable
	}
	write(w, status, &a)
}

// probe answers whether a server should get requests or, for liveness, whether it should live on. Only what is certain
// is a reason against a server: whatever is unknown is for it.
func (v *view) probe(name string, liveness bool) answer {
	found := v.byName[strings.ToLower(name)]
	if len(found) > 1 {
		// A pod that was replaced under its name is known for a while.
		found = slices.DeleteFunc(slices.Clone(found), func(s *server) bool { return s.fit == old })
	}
	switch len(found) {
	case 0:
		if v.alone {
			return answer{Serve: true, Fitness: "unknown", Reason: alone}
		}
		return answer{Serve: true, Fitness: "unknown", Reason: "No processor of this collector knows a server of this name now."}
	case 1:
	default:
		return answer{Serve: true, Fitness: "ambiguous", Reason: fmt.Sprintf("%d servers have this name; ask with the namespace (namespace/pod) or with host:port.", len(found))}
	}
	s := found[0]
	e, words := s.worst(), fitnessWords[s.said()]
	since, at := e.Since.UTC(), e.At.UTC()
	a := answer{
		Serve: !s.refused, Fitness: words.name, Reason: words.sentence,
		Server: e.Server, Condition: e.Condition, Cause: e.Cause, Since: &since, DataAt: &at,
	}
	if s.refused && liveness && !s.dead {
		a.Serve = true
		a.Reason += " A restart is advised only where all engines of a server have stalled."
	}
	return a
}
