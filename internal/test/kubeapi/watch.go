package kubeapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// selection is the objects that a request selects.
type selection struct {
	namespace string
	labels    labels.Selector
	fields    fields.Selector
}

func newSelection(namespace, label, field string) (*selection, error) {
	byLabel, err := labels.Parse(label)
	if err != nil {
		return nil, err
	}
	byField, err := fields.ParseSelector(field)
	if err != nil {
		return nil, err
	}
	return &selection{namespace, byLabel, byField}, nil
}

func (s *selection) matches(object Object) bool {
	if object == nil {
		return false
	}
	m := metadata(object)
	if s.namespace != "" && m["namespace"] != s.namespace {
		return false
	}
	set := labels.Set{}
	if all, ok := m["labels"].(Object); ok {
		for name, value := range all {
			set[name] = fmt.Sprint(value)
		}
	}
	known := fields.Set{"metadata.name": fmt.Sprint(m["name"]), "metadata.namespace": fmt.Sprint(m["namespace"])}
	if spec, ok := object["spec"].(Object); ok {
		if node, ok := spec["nodeName"].(string); ok {
			known["spec.nodeName"] = node
		}
	}
	return s.labels.Matches(set) && s.fields.Matches(known)
}

// seen returns the event that a watcher with this selection gets for a change. An object
// that begins to match is added, and one that stops matching is deleted.
func (s *selection) seen(e event) (kind string, object Object) {
	before, after := s.matches(e.before), s.matches(e.after)
	switch {
	case !before && after:
		return "ADDED", e.after
	case before && after:
		return "MODIFIED", e.after
	case before:
		gone := clone(e.before)
		metadata(gone)["resourceVersion"] = strconv.Itoa(e.version)
		return "DELETED", gone
	}
	return "", nil
}

// watch sends events as they happen, until the client disconnects or the server cuts the
// connection.
func (s *Server) watch(w http.ResponseWriter, request *http.Request, resource string, choose *selection, from int, initial bool) {
	q := request.URL.Query()
	out := &stream{w: w}
	kind, apiVersion := kindOf(resource)
	bookmark := func(version int, end bool) {
		m := Object{"resourceVersion": strconv.Itoa(version), "creationTimestamp": nil}
		if end {
			m["annotations"] = Object{"k8s.io/initial-events-end": "true"}
		}
		out.send("BOOKMARK", Object{"kind": kind, "apiVersion": apiVersion, "metadata": m})
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	s.mu.Lock()
	broken := s.broken
	if initial {
		for _, object := range s.objects[resource] {
			if choose.matches(object) {
				out.send("ADDED", object)
			}
		}
		from = s.version
		bookmark(from, true)
	}
	s.mu.Unlock()
	out.flush()
	var timeout <-chan time.Time
	if seconds, err := strconv.Atoi(q.Get("timeoutSeconds")); err == nil {
		timeout = time.After(time.Duration(seconds) * time.Second)
	}
	ticker := time.NewTicker(bookmarkEvery)
	defer ticker.Stop()
	for {
		s.mu.Lock()
		changed, version := s.changed, s.version
		expired := from < s.oldest
		for _, e := range s.events[resource] {
			if e.version > from && !expired {
				if kind, object := choose.seen(e); kind != "" {
					out.send(kind, object)
				}
			}
		}
		s.mu.Unlock()
		if expired {
			out.send("ERROR", statusObject(http.StatusGone, "Expired", "too old resource version"))
			out.flush()
			return
		}
		from = version
		out.flush()
		select {
		case <-request.Context().Done():
			return
		case <-timeout:
			return
		case <-broken:
			// Cuts the chunked body without its end.
			panic(http.ErrAbortHandler)
		case <-changed:
		case <-ticker.C:
			if q.Get("allowWatchBookmarks") == "true" {
				bookmark(version, false)
			}
		}
	}
}

// stream writes one JSON document for each event.
type stream struct{ w http.ResponseWriter }

func (s *stream) send(kind string, object Object) {
	_ = json.NewEncoder(s.w).Encode(Object{"type": kind, "object": object})
}

func (s *stream) flush() {
	if f, ok := s.w.(http.Flusher); ok {
		f.Flush()
	}
}

func metadata(object Object) Object {
	m, ok := object["metadata"].(Object)
	if !ok {
		m = Object{}
		object["metadata"] = m
	}
	return m
}

func key(object Object) string {
	m := metadata(object)
	return fmt.Sprintf("%v/%v", m["namespace"], m["name"])
}

// clone makes a copy that shares nothing, and has the types that JSON has.
func clone(object Object) Object {
	text, err := json.Marshal(object)
	if err != nil {
		panic(err)
	}
	var out Object
	if err := json.Unmarshal(text, &out); err != nil {
		panic(err)
	}
	return out
}
