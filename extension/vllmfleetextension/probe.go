package vllmfleetextension

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

// fitnessHeader says in each answer of a probe what the status rests on: one of the names of fitnessWords, or unknown,
// ambiguous, limited or suspect.
const fitnessHeader = "Vllm-Fleet"

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

// status is that of the answer.
func (a *answer) status() int {
	if a.Serve {
		return http.StatusOK
	}
	return http.StatusServiceUnavailable
}

// probe answers whether a server should get requests or, for liveness, whether it should live on. Only what is certain
// is a reason against a server: whatever is unknown is for it.
func (v *view) probe(name string, liveness bool) answer {
	found := v.byName[strings.ToLower(name)]
	switch len(found) {
	case 0:
		return answer{Serve: true, Fitness: "unknown", Reason: "No processor of this collector knows a server of this name."}
	case 1:
	default:
		return answer{Serve: true, Fitness: "ambiguous", Reason: fmt.Sprintf("%d servers have this name; ask with the namespace (namespace/pod) or with host:port.", len(found))}
	}
	s := found[0]
	e := s.worst()
	words := fitnessWords[s.fit]
	a := answer{
		Serve: !s.refused, Fitness: words.name, Reason: words.sentence,
		Server: s.name, Condition: e.Condition, Cause: e.Cause, Since: &e.Since, DataAt: &e.At,
	}
	switch {
	case s.refused && liveness && !s.dead:
		a.Serve = true
		a.Reason += " A restart is advised only for a server of which all engines have stalled."
	case s.fit == unreachable && v.suspect:
		a.Fitness = "suspect"
		a.Reason = "Most servers cannot be read any more, so the collector has probably lost its network."
	case s.fit >= unreachable && !s.refused:
		a.Fitness = "limited"
		a.Reason += " As many servers of its pool as unfit_share allows are reported as unfit already."
	}
	return a
}
