package vllmfleetextension

import (
	_ "embed"
	"net/http"
	"strings"
)

//go:embed schema.json
var schema []byte

const jsonType = "application/json"

// handler answers all paths. It only reads.
func (f *fleetServer) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /probe", f.answerProbe)
	mux.HandleFunc("GET /probe/", f.answerProbe)
	mux.HandleFunc("GET /api/v1/fleet", f.shared(jsonType, func(v *view) ([]byte, error) { return encode(v.fleet()) }))
	mux.HandleFunc("GET /api/v1/engines/{id}", f.answerDetail(f.engineDetail))
	mux.HandleFunc("GET /api/v1/pools/{id}", f.answerDetail(f.poolDetail))
	mux.HandleFunc("GET /api/v1/events", f.shared(jsonType, func(v *view) ([]byte, error) {
		return encode(&eventsDocument{Version: apiVersion, At: v.at, Events: f.events("", mostEvents)})
	}))
	mux.HandleFunc("GET /api/v1/schema", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/schema+json")
		_, _ = w.Write(schema)
	})
	f.handlePages(mux)
	return guarded(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// For the mux "//" and ".." in a name are a reason to redirect, and for a proxy that is not the answer 200.
		if strings.HasPrefix(r.URL.Path, "/probe/") && (r.Method == http.MethodGet || r.Method == http.MethodHead) {
			f.answerProbe(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	}))
}

// guarded sets the headers that keep what a server calls itself from being more than text in a browser.
func guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

// problem is the body of an error.
type problem struct {
	Error string `json:"error"`
}

// find returns what is known in detail about an id, nil where nothing is; busy is true where it cannot be asked now.
type find func(id string) (d *detailDocument, busy bool)

func (f *fleetServer) answerDetail(find find) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		switch d, busy := find(r.PathValue("id")); {
		case busy:
			w.Header().Set("Retry-After", "1")
			write(w, http.StatusServiceUnavailable, &problem{"too many details were asked for within a second; ask again"})
		case d == nil:
			write(w, http.StatusNotFound, &problem{"no processor knows this id now; /api/v1/fleet has all"})
		default:
			write(w, http.StatusOK, d)
		}
	}
}

func (f *fleetServer) engineDetail(id string) (*detailDocument, bool) {
	v := f.view()
	at, has := v.byID[id]
	if !has {
		return nil, false
	}
	e := v.engines[at].document()
	return f.say(&detailDocument{Version: apiVersion, At: v.at, Engine: &e}, e.Processor, id)
}

func (f *fleetServer) poolDetail(id string) (*detailDocument, bool) {
	v := f.view()
	for i := range v.pools {
		if v.pools[i].Key == id {
			p := v.pools[i].document()
			return f.say(&detailDocument{Version: apiVersion, At: v.at, Pool: &p}, p.Processor, id)
		}
	}
	return nil, false
}

func (f *fleetServer) say(d *detailDocument, processor, id string) (*detailDocument, bool) {
	detail, busy := f.detail(processor, id)
	if detail == nil {
		return nil, busy
	}
	d.say(detail)
	d.Events = f.events(id, mostOfOne)
	return d, false
}

func (f *fleetServer) events(key string, most int) []eventDocument {
	f.remembering.Lock()
	defer f.remembering.Unlock()
	return f.history.about(key, most)
}

// write answers with a document.
func write(w http.ResponseWriter, status int, document any) {
	body, err := encode(document)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", jsonType)
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n'))
}
