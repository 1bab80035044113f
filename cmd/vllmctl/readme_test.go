package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/status"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim"
)

// misconfigured is the server of the README: two replicas behind one address, a proxy that
// lets only /metrics and /health pass, and a clock that is wrong.
func misconfigured(t *testing.T) string {
	t.Helper()
	var replicas []*vllmsim.Server
	for i := range 2 {
		sim, err := vllmsim.New(vllmsim.Config{Seed: uint64(i + 1), Start: time.Now().Add(-time.Hour * time.Duration(i+1))})
		require.NoError(t, err)
		replicas = append(replicas, sim)
	}
	var mu sync.Mutex
	turn := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if r.URL.Path != "/metrics" && r.URL.Path != "/health" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Date", time.Now().Add(-7*time.Minute).UTC().Format(http.TimeFormat))
		one := replicas[turn%2]
		if r.URL.Path == "/metrics" {
			one.Advance(2 * time.Minute)
			turn++
		}
		one.Targets()[0].ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// The README shows what check really prints for that server, but for numbers.
func TestTheREADMEShowsWhatCheckFinds(t *testing.T) {
	var out strings.Builder
	code := run(t.Context(), []string{"check", misconfigured(t)}, strings.NewReader(""), &out, io.Discard)
	assert.Equal(t, status.Problem, code)
	printed, _, _ := strings.Cut(out.String(), "A configuration to begin with")
	t.Log("\n" + printed)
	page, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	_, shown, found := strings.Cut(string(page), "$ bin/vllmctl check ")
	require.True(t, found)
	shown, _, _ = strings.Cut(shown, "```")
	codes := regexp.MustCompile(`\[([a-z-]+)\]`)
	words := regexp.MustCompile(`[^\s0-9]+`)
	duration := regexp.MustCompile(`^\.?(s|ms|µs)[,.]?$`)
	var got, want []string
	for _, c := range codes.FindAllStringSubmatch(printed, -1) {
		got = append(got, c[1])
	}
	for _, c := range codes.FindAllStringSubmatch(shown, -1) {
		want = append(want, c[1])
	}
	assert.Len(t, want, 3)
	assert.Equal(t, want, got)
	// Each word of the README is in the output.
	for _, word := range words.FindAllString(shown, -1) {
		if strings.Contains(word, "vllm.example.com") || duration.MatchString(word) {
			continue
		}
		assert.Contains(t, printed+" ...", word)
	}
}
