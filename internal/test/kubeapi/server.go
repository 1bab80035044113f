// Package kubeapi is a small Kubernetes API server for tests. It speaks the
// protocol that client-go speaks: lists, watches as chunked JSON with bookmarks,
// streamed lists, selectors, 403, 404 and 410, and it can break connections.
package kubeapi

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Object is a Kubernetes object as JSON has it.
type Object = map[string]any

// Resources that the server may have.
const (
	Pods      = "v1/pods"
	Pools     = "inference.networking.k8s.io/v1/inferencepools"
	OldPools  = "inference.networking.x-k8s.io/v1alpha2/inferencepools"
	podKind   = "Pod"
	poolsKind = "InferencePool"
)

// event is one change of an object.
type event struct {
	version       int
	before, after Object
}

// Server is the API server.
type Server struct {
	// URL is where it listens.
	URL string

	mu        sync.Mutex
	version   int
	oldest    int
	objects   map[string]map[string]Object
	events    map[string][]event
	forbidden map[string]bool
	// denied are verbs and resources that access reviews deny.
	denied map[string]bool
	// streaming is true if lists can be streamed, as since Kubernetes 1.32.
	streaming bool
	asked     map[string]int
	// changed is closed and made again at each change; broken, at each cut.
	changed, broken chan struct{}
}

// New starts a server that has pods and nothing else. It ends with the test.
func New(tb testing.TB, resources ...string) *Server {
	tb.Helper()
	s, end := Start(resources...)
	tb.Cleanup(end)
	return s
}

// Start starts such a server for a program, which has to end it.
func Start(resources ...string) (s *Server, end func()) {
	s = &Server{
		version: 100, objects: map[string]map[string]Object{}, events: map[string][]event{},
		forbidden: map[string]bool{}, denied: map[string]bool{}, asked: map[string]int{}, streaming: true,
		changed: make(chan struct{}), broken: make(chan struct{}),
	}
	for _, resource := range append(resources, Pods) {
		s.objects[resource] = map[string]Object{}
	}
	server := httptest.NewServer(s)
	s.URL = server.URL
	return s, func() {
		s.Disconnect()
		server.CloseClientConnections()
		server.Close()
	}
}

// WithoutStreaming makes it a server before Kubernetes 1.32, which refuses
// streamed lists.
func (s *Server) WithoutStreaming() *Server {
	s.streaming = false
	return s
}

// Apply adds or changes an object.
func (s *Server) Apply(resource string, object Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	after := clone(object)
	metadata(after)["resourceVersion"] = strconv.Itoa(s.version)
	before := s.objects[resource][key(after)]
	s.objects[resource][key(after)] = after
	s.record(resource, event{s.version, before, after})
}

// Delete removes an object.
func (s *Server) Delete(resource, namespace, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, ok := s.objects[resource][namespace+"/"+name]
	if !ok {
		return
	}
	s.version++
	delete(s.objects[resource], namespace+"/"+name)
	s.record(resource, event{s.version, before, nil})
}

func (s *Server) record(resource string, e event) {
	s.events[resource] = append(s.events[resource], e)
	close(s.changed)
	s.changed = make(chan struct{})
}

// Forbid denies a resource with 403, or allows it again.
func (s *Server) Forbid(resource string, denied bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forbidden[resource] = denied
}

// Deny lets access reviews deny a verb on a resource. It does not change the answers to
// requests for the resource.
func (s *Server) Deny(verb, resource string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.denied[verb+" "+resource] = true
}

// Disconnect cuts all watches in the middle.
func (s *Server) Disconnect() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.broken)
	s.broken = make(chan struct{})
}

// Expire forgets the history: all watches end with 410, and so does every watch
// that asks to continue from an earlier version.
func (s *Server) Expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	s.oldest = s.version
	s.events = map[string][]event{}
	close(s.changed)
	s.changed = make(chan struct{})
}

// Asked is how often there was a request of this kind: "list", "watch",
// "stream", "expired" or "forbidden", before a space and the resource.
func (s *Server) Asked(what string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[what]
}

// ServeHTTP answers a list or a watch.
func (s *Server) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	if request.URL.Path == reviews && request.Method == http.MethodPost {
		s.review(w, request)
		return
	}
	resource, namespace, ok := parsePath(request.URL.Path)
	s.mu.Lock()
	_, served := s.objects[resource]
	denied, version, oldest := s.forbidden[resource], s.version, s.oldest
	s.mu.Unlock()
	q := request.URL.Query()
	from, _ := strconv.Atoi(q.Get("resourceVersion"))
	choose, err := newSelection(namespace, q.Get("labelSelector"), q.Get("fieldSelector"))
	switch {
	case err != nil:
		status(w, http.StatusBadRequest, "BadRequest", err.Error())
	case denied:
		// Kubernetes checks the permission first, even for a resource that does not exist.
		s.count("forbidden " + resource)
		status(w, http.StatusForbidden, "Forbidden", resource+" is forbidden")
	case !ok || !served:
		status(w, http.StatusNotFound, "NotFound", "the server could not find the requested resource")
	case q.Get("watch") == "":
		s.count("list " + resource)
		s.list(w, resource, choose)
	case q.Get("sendInitialEvents") == "true" && !s.streaming:
		status(w, http.StatusUnprocessableEntity, "Invalid", "sendInitialEvents is forbidden for watch")
	case q.Get("sendInitialEvents") == "true":
		s.count("stream " + resource)
		s.watch(w, request, resource, choose, 0, true)
	case from != 0 && from < oldest:
		s.count("expired " + resource)
		status(w, http.StatusGone, "Expired", "too old resource version")
	default:
		s.count("watch " + resource)
		if from == 0 {
			from = version
		}
		s.watch(w, request, resource, choose, from, false)
	}
}

func (s *Server) count(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked[what]++
}

// parsePath reads /api/v1/... and /apis/group/version/..., with or without a
// namespace.
func parsePath(path string) (resource, namespace string, ok bool) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	var prefix string
	switch {
	case len(parts) >= 3 && parts[0] == "api":
		prefix, parts = parts[1], parts[2:]
	case len(parts) >= 4 && parts[0] == "apis":
		prefix, parts = parts[1]+"/"+parts[2], parts[3:]
	default:
		return "", "", false
	}
	if len(parts) == 3 && parts[0] == "namespaces" {
		namespace, parts = parts[1], parts[2:]
	}
	if len(parts) != 1 {
		return "", "", false
	}
	return prefix + "/" + parts[0], namespace, true
}

func status(w http.ResponseWriter, code int, reason, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(statusObject(code, reason, message))
}

func statusObject(code int, reason, message string) Object {
	return Object{
		"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason, "message": message,
	}
}

// kindOf is the kind and apiVersion of a resource's objects.
func kindOf(resource string) (kind, apiVersion string) {
	i := strings.LastIndex(resource, "/")
	if resource[i+1:] == "inferencepools" {
		return poolsKind, resource[:i]
	}
	return podKind, resource[:i]
}

func (s *Server) list(w http.ResponseWriter, resource string, choose *selection) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kind, apiVersion := kindOf(resource)
	items := []Object{}
	for _, object := range s.objects[resource] {
		if choose.matches(object) {
			items = append(items, object)
		}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(Object{
		"kind": kind + "List", "apiVersion": apiVersion, "items": items,
		"metadata": Object{"resourceVersion": strconv.Itoa(s.version)},
	})
}

// bookmarkEvery is short, so that tests meet bookmarks.
const bookmarkEvery = 50 * time.Millisecond
