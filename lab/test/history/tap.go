package history

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"time"
)

// tapped receives the answers of servers.
type tapped func(host string, at time.Time, status int, contentType string, body []byte)

// of returns a handler that answers as another one and shows its answers.
func (tap tapped) of(host string, from http.Handler) http.Handler {
	if tap == nil {
		return from
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/metrics" {
			from.ServeHTTP(w, r)
			return
		}
		at, recorder := time.Now(), httptest.NewRecorder()
		aborted := true
		defer func() {
			if aborted {
				tap(host, at, 0, "", nil)
			}
		}()
		from.ServeHTTP(recorder, r)
		aborted = false
		tap(host, at, recorder.Code, recorder.Header().Get("Content-Type"), recorder.Body.Bytes())
		maps.Copy(w.Header(), recorder.Header())
		w.WriteHeader(recorder.Code)
		_, _ = w.Write(recorder.Body.Bytes())
	})
}
