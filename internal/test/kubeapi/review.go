package kubeapi

import (
	"encoding/json"
	"net/http"
	"strings"

	authorization "k8s.io/api/authorization/v1"
)

// reviews is where a client asks what it may do.
const reviews = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"

// review answers whether a verb is allowed: unless Deny or Forbid said otherwise.
func (s *Server) review(w http.ResponseWriter, request *http.Request) {
	var asked authorization.SelfSubjectAccessReview
	if err := json.NewDecoder(request.Body).Decode(&asked); err != nil || asked.Spec.ResourceAttributes == nil {
		status(w, http.StatusBadRequest, "BadRequest", "a SelfSubjectAccessReview with resourceAttributes is expected")
		return
	}
	about := asked.Spec.ResourceAttributes
	s.count("review " + about.Verb + " " + about.Resource + " " + about.Namespace)
	asked.Status.Allowed = !s.denies(about)
	asked.Kind, asked.APIVersion = "SelfSubjectAccessReview", "authorization.k8s.io/v1"
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(asked)
}

// denies reports whether a verb is denied. The names of resources here have a version, and
// those of a review have none.
func (s *Server) denies(about *authorization.ResourceAttributes) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	is := func(resource string) bool {
		group := ""
		if parts := strings.Split(resource, "/"); len(parts) == 3 {
			group = parts[0]
		}
		return group == about.Group && strings.HasSuffix(resource, "/"+about.Resource)
	}
	for resource, forbidden := range s.forbidden {
		if forbidden && is(resource) {
			return true
		}
	}
	for denied := range s.denied {
		verb, resource, _ := strings.Cut(denied, " ")
		if verb == about.Verb && is(resource) {
			return true
		}
	}
	return false
}
