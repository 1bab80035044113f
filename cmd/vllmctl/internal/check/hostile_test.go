package check_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/check"
	"github.com/otelcol-vllm/otelcol-vllm/internal/test/race"
)

// hostile are servers that try to hold or fill the check.
func hostile(tb testing.TB) []string {
	tb.Helper()
	chunk := bytes.Repeat([]byte("vllm:a{b=\"c\"} 1\n"), 4096)
	flood := func(c net.Conn, begin, repeated string) {
		_, _ = io.WriteString(c, begin)
		for {
			if _, err := io.WriteString(c, repeated); err != nil {
				return
			}
		}
	}
	drip := func(c net.Conn, begin, repeated string) {
		_, _ = io.WriteString(c, begin)
		for {
			time.Sleep(20 * time.Millisecond)
			if _, err := io.WriteString(c, repeated); err != nil {
				return
			}
		}
	}
	const ok = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
	many := func(i int) string { return fmt.Sprintf("vllm:odd_%d{engine=\"0\"} 1\n", i) }
	var families strings.Builder
	for i := range 40_000 {
		families.WriteString(many(i))
	}
	return []string{
		serve(tb, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			for {
				if _, err := w.Write(chunk); err != nil {
					return
				}
			}
		})),
		raw(tb, func(c net.Conn) { flood(c, ok, "X-Header: "+strings.Repeat("x", 1000)+"\r\n") }),
		raw(tb, func(c net.Conn) { drip(c, ok+"\r\n", "vllm:num_requests_running 1\n") }),
		raw(tb, func(c net.Conn) { drip(c, ok, "X-A: 1\r\n") }),
		raw(tb, func(c net.Conn) { drip(c, "", "") }),
		answers(tb, http.StatusOK, text, families.String()),
		answers(tb, http.StatusOK, text, "vllm:num_requests_running{model_name=\"\x1b[2J\u202e\\n\"} 1\n\x1b[31mvllm 1\n"),
		answers(tb, http.StatusOK, "text/html\x1b[2J", "<html>"),
		// The metrics are there, and all else hangs.
		serve(tb, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/metrics" {
				_, _ = io.WriteString(w, "vllm:num_requests_running{engine=\"0\",model_name=\"m\"} 1\n")
				return
			}
			<-r.Context().Done()
		})),
		serve(tb, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/version" {
				_, _ = io.WriteString(w, `{"version":"0.20.0`+strings.Repeat("9", 1<<20)+`"}`)
				return
			}
			_, _ = io.WriteString(w, "vllm:num_requests_running{engine=\"0\",model_name=\"m\"} 1\n")
		})),
	}
}

func TestHostileTargetsDoNotDisturbTheOthers(t *testing.T) {
	timeout := time.Second
	if race.Enabled {
		timeout = 5 * time.Second
	}
	var list strings.Builder
	good := []string{serve(t, healthy(t)), serve(t, healthy(t)), serve(t, healthy(t))}
	bad := hostile(t)
	for _, address := range append(bad, good...) {
		list.WriteString("{endpoint: \"" + address + "\"}, ")
	}
	began := time.Now()
	report := checked(t, configuration(t, "timeout: "+timeout.String()+", collection_interval: 60s, targets: ["+list.String()+"]", ""))
	took := time.Since(began)
	// Three timeouts are the most that one target takes. The machine may be busy.
	assert.Less(t, took, 3*timeout+5*time.Second)
	require.Len(t, report.Targets, len(bad)+len(good))
	for i, target := range report.Targets {
		if i < len(bad) {
			assert.NotEmpty(t, target.Findings, bad[i])
			continue
		}
		assert.Equal(t, "ok", target.Outcome)
		for _, f := range target.Findings {
			assert.Equal(t, check.Info, f.Severity, "%+v", f)
		}
	}
	var shown bytes.Buffer
	require.NoError(t, report.Write(&shown, check.Style{Verbose: true}))
	for _, r := range shown.String() {
		require.True(t, r == '\n' || unicode.IsPrint(r), "%q is in the output", r)
	}
	document, err := json.Marshal(report)
	require.NoError(t, err)
	assert.Less(t, len(document), 4<<20, "what a target sends does not fill the output")
}

// Beside the scrapes and the time between them, the check takes less than a second, for many
// servers too: they wait between their scrapes at the same time. The bound is for a machine
// that does other things as well.
func TestTheCheckTakesLittleTimeBesideTheScrapes(t *testing.T) {
	var list strings.Builder
	for range 70 {
		list.WriteString("{endpoint: " + serve(t, healthy(t)) + "}, ")
	}
	const between = 2 * time.Second
	path := configuration(t, "targets: ["+list.String()+"]", "")
	report, err := check.Configured(t.Context(), []string{path}, check.Settings{Delay: between})
	require.NoError(t, err)
	assert.Zero(t, report.Problems+report.Warnings)
	beside := report.Seconds - between.Seconds()
	t.Logf("70 servers: %.3f s beside the time between the scrapes", beside)
	assert.Less(t, beside, 1.75*between.Seconds())
}
