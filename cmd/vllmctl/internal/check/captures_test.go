package check_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/check"
	"github.com/otelcol-vllm/otelcol-vllm/internal/test/captures"
)

// recorded serves a body as it was recorded, without a version.
func recorded(tb testing.TB, b captures.Body) string {
	tb.Helper()
	return serve(tb, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasPrefix(r.URL.Path, "/metrics"):
			w.Header().Set("Content-Type", b.ContentType)
			_, _ = w.Write(b.Text)
		case r.URL.Path == "/health":
		default:
			http.NotFound(w, r)
		}
	}))
}

// What the check says about recorded bodies was compared with them by hand. A server of which
// only the body was recorded does not say its version.
func TestRecordedBodiesHaveNoFalseProblem(t *testing.T) {
	for _, b := range append(captures.Bodies(t), captures.Recorded(t, "gateway/*.txt")...) {
		t.Run(b.Name, func(t *testing.T) {
			t.Parallel()
			report := checked(t, configuration(t, "endpoint: "+recorded(t, b), ""))
			target := report.Targets[0]
			var want []string
			switch {
			case target.Kind == "vllm" && !strings.Contains(b.Name, "ray"):
				want = []string{check.CodeVersionNone}
			case strings.Contains(b.Name, "sglang"):
				// SGLang is another server.
				want = []string{check.CodeNotVLLM}
			}
			if strings.Contains(b.Name, "aibrix") {
				// The body is an excerpt: its histogram ends before the last bucket.
				want = append([]string{check.CodeInconsistent}, want...)
			}
			assert.ElementsMatch(t, want, codesOf(report, check.Problem, check.Warning))
			assert.Equal(t, kindOfRecorded(b.Name), target.Kind)
		})
	}
}

// kindOfRecorded is what the name of a recorded body says about its server.
func kindOfRecorded(name string) string {
	switch {
	case strings.Contains(name, "lora-syncer"):
		return "lora_syncer"
	case strings.Contains(name, "epp"):
		return "gateway"
	case strings.Contains(name, "lmcache-standalone"):
		return "lmcache"
	case strings.Contains(name, "sglang"):
		return "unknown"
	}
	return "vllm"
}
