package fetch

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/config/configopaque"
)

const answered = `{"id": "cmpl-1", "choices": [{"text": "2"}]}`

var plainCanary = Canary{Path: "/v1/completions", Model: "m", Timeout: 20 * time.Second}

// hang waits until the other side has gone.
func hang(_ http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	<-r.Context().Done()
}

func TestACanaryAsksForOneToken(t *testing.T) {
	const chat = `{"model":"a \"b\"","max_tokens":1,"temperature":0,"messages":[{"role":"user","content":"1"}]}`
	const plain = `{"model":"a \"b\"","max_tokens":1,"temperature":0,"prompt":"1"}`
	for path, want := range map[string]string{"/v1/completions": plain, "/v1/chat/completions": chat, "/x/chat/completions": chat} {
		calls := 0
		address := serve(t, func(w http.ResponseWriter, r *http.Request) {
			calls++
			content, err := io.ReadAll(r.Body)
			assert.NoError(t, err)
			assert.Equal(t, "POST "+path, r.Method+" "+r.URL.Path)
			assert.JSONEq(t, want, string(content))
			assert.EqualValues(t, len(content), r.ContentLength)
			assert.Equal(t, "application/json", r.Header.Get("Content-Type"))
			assert.Equal(t, "tenant", r.Header.Get("X-Tenant"))
			assert.NotContains(t, r.Header, "Idempotency-Key")
			_, _ = io.WriteString(w, answered)
		})
		c := client(t, address, func(s *Settings) { s.Headers = configopaque.MapList{{Name: "X-Tenant", Value: "tenant"}} })
		outcome, err := c.SendCanary(t.Context(), Canary{Path: path, Model: `a "b"`, Timeout: 20 * time.Second})
		require.NoError(t, err)
		assert.Equal(t, CanaryOK, outcome)
		assert.Equal(t, 1, calls)
	}
}

func TestTheCredentialsOfACanary(t *testing.T) {
	got := ""
	address := serve(t, func(w http.ResponseWriter, r *http.Request) {
		got = r.Header.Get("Authorization")
		_, _ = io.WriteString(w, answered)
	})
	send := func(c *Client, key configopaque.String) string {
		canary := plainCanary
		canary.Key = key
		_, err := c.SendCanary(t.Context(), canary)
		require.NoError(t, err)
		return got
	}
	own := func(s *Settings) { s.Headers = configopaque.MapList{{Name: "authorization", Value: "Bearer own"}} }
	assert.Empty(t, send(client(t, address), ""))
	assert.Equal(t, "Bearer key", send(client(t, address), "key"))
	assert.Equal(t, "Bearer own", send(client(t, address, own), ""))
	assert.Equal(t, "Bearer key", send(client(t, address, own), "key"))
	user := strings.Replace(address, "http://", "http://a:b@", 1)
	assert.Equal(t, "Basic YTpi", send(client(t, user), ""))
	assert.Equal(t, "Bearer key", send(client(t, user), "key"))
}

func TestTheOutcomesOfACanary(t *testing.T) {
	text := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }
	}
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(code)
			_, _ = io.WriteString(w, answered)
		}
	}
	for name, tc := range map[string]struct {
		handler http.HandlerFunc
		want    CanaryOutcome
		says    string
	}{
		"an answer":        {text(answered), CanaryOK, ""},
		"no choices":       {text(`{"choices": []}`), CanaryInvalid, ""},
		"other JSON":       {text(`{"error": "busy"}`), CanaryInvalid, ""},
		"a list":           {text(`[1]`), CanaryInvalid, ""},
		"choices that lie": {text(`{"choices": "yes"}`), CanaryInvalid, ""},
		"HTML":             {text("<html></html>"), CanaryInvalid, ""},
		"nothing":          {text(""), CanaryInvalid, ""},
		"too much":         {text(answered + strings.Repeat(" ", 64<<10)), CanaryInvalid, ""},
		"deep":             {text(strings.Repeat("[", 60<<10)), CanaryInvalid, ""},
		"no gzip": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			text(answered)(w, r)
		}, CanaryInvalid, ""},
		"another 2xx":       {status(202), CanaryInvalid, ""},
		"an error":          {status(500), CanaryHTTPError, ""},
		"unavailable":       {status(503), CanaryHTTPError, ""},
		"too many requests": {status(429), CanaryHTTPError, ""},
		"a closed one":      {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, CanaryRefused, ""},
		"no key":            {status(401), CanaryRejected, "canary::api_key"},
		"a wrong key":       {status(403), CanaryRejected, "canary::api_key"},
		"no such model":     {status(404), CanaryRejected, "canary::model"},
		"no such method":    {status(405), CanaryRejected, "canary::path"},
		"a bad request":     {status(400), CanaryRejected, "its log"},
		"a redirect to here": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/other", http.StatusTemporaryRedirect)
		}, CanaryRejected, "redirect"},
	} {
		t.Run(name, func(t *testing.T) {
			outcome, err := client(t, serve(t, tc.handler)).SendCanary(t.Context(), plainCanary)
			assert.Equal(t, tc.want, outcome)
			if tc.says == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, tc.says)
			}
		})
	}
	outcome, err := client(t, "http://127.0.0.1:1/metrics").SendCanary(t.Context(), plainCanary)
	require.NoError(t, err)
	assert.Equal(t, CanaryRefused, outcome, "nobody listens")
}

func TestACanaryHasADeadline(t *testing.T) {
	begun := func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, `{"choices": [`)
		w.(http.Flusher).Flush()
		hang(w, r)
	}
	for name, handler := range map[string]http.HandlerFunc{"no answer": hang, "a part of one": begun} {
		canary := plainCanary
		canary.Timeout = 50 * time.Millisecond
		outcome, err := client(t, serve(t, handler)).SendCanary(t.Context(), canary)
		require.NoError(t, err, name)
		assert.Equal(t, CanaryTimeout, outcome, name)

		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(50*time.Millisecond, cancel)
		outcome, err = client(t, serve(t, handler)).SendCanary(ctx, plainCanary)
		require.NoError(t, err, name)
		assert.Equal(t, CanaryCanceled, outcome, name)
	}
}

// The other host would get the prompt, and the key.
func TestACanaryIsNotRedirectedToAnotherHost(t *testing.T) {
	other := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("the other host was asked") })
	for _, code := range []int{301, 302, 303, 307, 308} {
		address := serve(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other, code) })
		canary := plainCanary
		canary.Key = "secret-key"
		outcome, err := client(t, address).SendCanary(t.Context(), canary)
		assert.Equal(t, CanaryRejected, outcome)
		require.ErrorContains(t, err, "redirect")
		assert.NotContains(t, err.Error(), "secret")
	}
}

func TestTheModelOfACanary(t *testing.T) {
	adapters := make([]map[string]any, 300)
	for i := range adapters {
		adapters[i] = map[string]any{"id": fmt.Sprint("adapter-", i), "parent": "base", "permission": strings.Repeat("x", 500)}
	}
	list := func(models ...map[string]any) string {
		text, err := json.Marshal(map[string]any{"object": "list", "data": models})
		require.NoError(t, err)
		return string(text)
	}
	for name, tc := range map[string]struct {
		answer string
		status int
		want   string
		says   string
	}{
		"one":                      {list(map[string]any{"id": "base"}), 200, "base", ""},
		"an adapter before":        {list(map[string]any{"id": "lora", "parent": "base"}, map[string]any{"id": "base", "parent": nil}), 200, "base", ""},
		"many adapters":            {list(append([]map[string]any{{"id": "base"}}, adapters...)...), 200, "base", ""},
		"only adapters":            {list(adapters[:2]...), 200, "", "set canary::model"},
		"none":                     {list(), 200, "", "set canary::model"},
		"no name":                  {list(map[string]any{"id": ""}), 200, "", "set canary::model"},
		"a name without end":       {list(map[string]any{"id": strings.Repeat("x", 1001)}), 200, "", "set canary::model"},
		"a list without end":       {list(map[string]any{"id": "base"}) + strings.Repeat(" ", 256<<10), 200, "", "set canary::model"},
		"no list":                  {"<html></html>", 200, "", "set canary::model"},
		"a list that does not end": {list(map[string]any{"id": "base"}) + "x", 200, "", "set canary::model"},
		"no path":                  {"", 404, "", "set canary::model"},
		"no key":                   {"", 401, "", "canary::api_key"},
	} {
		t.Run(name, func(t *testing.T) {
			address := serve(t, func(w http.ResponseWriter, r *http.Request) {
				assert.Equal(t, "GET /v1/models", r.Method+" "+r.URL.Path)
				assert.Equal(t, "Bearer key", r.Header.Get("Authorization"))
				w.WriteHeader(tc.status)
				_, _ = io.WriteString(w, tc.answer)
			})
			got, outcome, err := client(t, address).FirstModel(t.Context(), Canary{Key: "key", Timeout: 20 * time.Second})
			assert.Equal(t, tc.want, got)
			if tc.says == "" {
				require.NoError(t, err)
				assert.Equal(t, CanaryOK, outcome)
			} else {
				require.ErrorContains(t, err, tc.says)
				assert.Equal(t, CanaryRejected, outcome)
			}
		})
	}
	broken := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) })
	_, outcome, err := client(t, broken).FirstModel(t.Context(), Canary{Timeout: 20 * time.Second})
	require.NoError(t, err)
	assert.Equal(t, CanaryHTTPError, outcome, "it is asked again")
}

// A proxy may put a path before /metrics; a canary goes to the server behind it.
func TestACanaryKeepsThePathOfAProxy(t *testing.T) {
	path := ""
	address := serve(t, func(w http.ResponseWriter, r *http.Request) {
		path = r.URL.Path
		_, _ = io.WriteString(w, answered)
	})
	_, err := client(t, strings.Replace(address, "/metrics", "/a/metrics?x=y", 1)).SendCanary(t.Context(), plainCanary)
	require.NoError(t, err)
	assert.Equal(t, "/a/v1/completions", path)
}
