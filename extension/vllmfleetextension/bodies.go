package vllmfleetextension

import (
	"net/http"
	"sync"
	"time"
)

// mostBodies is how many versions of a large answer slow readers can hold. While they do, others get the newest of these,
// which write_timeout bounds in age.
const mostBodies = 4

// bodies are the versions of a large answer. Each is rendered once for a view and shared by all who ask, so that the
// memory that slow readers hold does not depend on their number.
type bodies struct {
	mu     sync.Mutex
	newest *body
	// held is how many have readers.
	held int
}

type body struct {
	content []byte
	view    *view
	// until is when it is rendered again at the earliest, so that rendering takes at most a tenth of a processor.
	until   time.Time
	readers int
}

// take returns a version for a reader, who releases it.
func (b *bodies) take(v *view, render func(*view) ([]byte, error)) (*body, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n := b.newest; n == nil || n.view != v && b.held < mostBodies && !v.at.Before(n.until) {
		began := time.Now()
		content, err := render(v)
		if err != nil {
			return nil, err
		}
		b.newest = &body{content: content, view: v, until: v.at.Add(9 * time.Since(began))}
	}
	if b.newest.readers == 0 {
		b.held++
	}
	b.newest.readers++
	return b.newest, nil
}

func (b *bodies) release(one *body) {
	b.mu.Lock()
	defer b.mu.Unlock()
	one.readers--
	if one.readers == 0 {
		b.held--
	}
}

// shared answers with what render makes of a view.
func (f *fleetServer) shared(contentType string, render func(*view) ([]byte, error)) http.HandlerFunc {
	var all bodies
	return func(w http.ResponseWriter, _ *http.Request) {
		one, err := all.take(f.view(), render)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		defer all.release(one)
		w.Header().Set("Content-Type", contentType)
		_, _ = w.Write(one.content)
	}
}
