package discover

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A list is asked for with a secret. A redirect to another host gets neither this secret nor to say what is scraped; one
// on the same host is followed.
func TestARedirectToAnotherHostIsNotFollowed(t *testing.T) {
	t.Parallel()
	list := func(target string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `[{"targets": ["`+target+`"]}]`)
		}
	}
	var asked atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		asked.Add(1)
		list("stranger:8000")(w, request)
	}))
	t.Cleanup(other.Close)
	mux := http.NewServeMux()
	mux.Handle("/there", http.RedirectHandler(other.URL, http.StatusFound))
	mux.Handle("/here", http.RedirectHandler("/list", http.StatusFound))
	mux.Handle("/round", http.RedirectHandler("/round", http.StatusFound))
	mux.Handle("/list", list("mine:8000"))
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)

	r := run(t, 10, `
http_sd_configs:
  - {url: "`+server.URL+`/there", refresh_interval: 200ms, authorization: {credentials: hunter2}, http_headers: {X-Key: {secrets: [hunter2]}}}
  - {url: "`+server.URL+`/here"}
  - {url: "`+server.URL+`/round", refresh_interval: 200ms}
`)
	r.waitFor("the list of the same host", "http://mine:8000/metrics")
	r.waitForLog("it redirects to another host or away from TLS")
	r.waitForLog("it redirects more than 5 times")
	assert.Zero(t, asked.Load())
	for _, line := range r.lines() {
		require.NotContains(t, line, "hunter2")
	}
}

// The address may be unreadable because of its password.
func TestAnAddressThatCannotBeReadIsNotInTheMistake(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"http://user:hunter2%zz@host/list", "http://user:hunter2/x@host/list", "http://user:hunter2 x@host"} {
		for _, text := range []string{
			`http_sd_configs: [{url: "` + address + `"}]`, `http_sd_configs: [{url: "http://a", proxy_url: "` + address + `"}]`,
			`kubernetes_sd_configs: [{role: pod, api_server: "` + address + `"}]`, `kubernetes: {selector: a=b, api_server: "` + address + `"}`,
			`inference_pool: {name: a, namespace: b, api_server: "` + address + `"}`,
		} {
			_, mistakes := Parse(section(t, text))
			require.Len(t, mistakes, 1, text)
			assert.Contains(t, mistakes[0].Error(), "is not a URL")
			assert.NotContains(t, mistakes[0].Error(), "hunter2")
			assert.NotContains(t, mistakes[0].Error(), "zz")
		}
	}
}
