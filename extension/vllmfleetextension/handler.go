package vllmfleetextension

import (
	_ "embed"
	"net/http"
)

//go:embed schema.json
var schema []byte

// handler answers all paths. It only reads.
func (f *fleetServer) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /probe", f.answerProbe)
	mux.HandleFunc("GET /probe/{name...}", f.answerProbe)
	mux.HandleFunc("GET /api/v1/fleet", func(w http.ResponseWriter, _ *http.Request) { write(w, http.StatusOK, f.view().fleet()) })
	mux.HandleFunc("GET /api/v1/engines/{id}", f.answerDetail(f.engineDetail))
	mux.HandleFunc("GET /api/v1/pools/{id}", f.answerDetail(f.poolDetail))
	mux.HandleFunc("GET /api/v1/events", func(w http.ResponseWriter, _ *http.Request) {
		write(w, http.StatusOK, &eventsDocument{Version: apiVersion, At: f.view().at.UTC(), Events: f.events("")})
	})
	mux.HandleFunc("GET /api/v1/schema", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/schema+json")
		_, _ = w.Write(schema)
	})
	f.handlePages(mux)
	return guarded(mux)
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

// answerProbe takes the name from the path or, where the path has none, from the header Host: a health check of Envoy
// can set that for each endpoint, and the path only once.
func (f *fleetServer) answerProbe(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	if name == "" {
		name = r.Host
	}
	use := r.URL.Query().Get("for")
	if use != "" && use != "routing" && use != "liveness" {
		write(w, http.StatusBadRequest, &problem{"for is neither routing nor liveness; leave it out for routing"})
		return
	}
	a := f.view().probe(name, use == "liveness")
	w.Header().Set(fitnessHeader, a.Fitness)
	write(w, a.status(), &a)
}

// problem is the body of an error.
type problem struct {
	Error string `json:"error"`
}

func (f *fleetServer) answerDetail(find func(id string) *detailDocument) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		d := find(r.PathValue("id"))
		if d == nil {
			write(w, http.StatusNotFound, &problem{"no processor knows this id now; /api/v1/fleet has all"})
			return
		}
		write(w, http.StatusOK, d)
	}
}

func (f *fleetServer) engineDetail(id string) *detailDocument {
	v := f.view()
	at, has := v.byID[id]
	if !has {
		return nil
	}
	e := v.engines[at].document()
	return f.say(&detailDocument{Version: apiVersion, At: v.at.UTC(), Engine: &e}, e.Processor, id)
}

func (f *fleetServer) poolDetail(id string) *detailDocument {
	v := f.view()
	for i := range v.pools {
		if v.pools[i].Key == id {
			p := v.pools[i].document()
			return f.say(&detailDocument{Version: apiVersion, At: v.at.UTC(), Pool: &p}, p.Processor, id)
		}
	}
	return nil
}

func (f *fleetServer) say(d *detailDocument, processor, id string) *detailDocument {
	detail := f.detail(processor, id)
	if detail == nil {
		return nil
	}
	d.say(detail)
	d.Events = f.events(id)
	return d
}

func (f *fleetServer) events(key string) []eventDocument {
	f.remembering.Lock()
	defer f.remembering.Unlock()
	return f.history.about(key)
}

// write answers with a document.
func write(w http.ResponseWriter, status int, document any) {
	body, err := encode(document)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n'))
}
