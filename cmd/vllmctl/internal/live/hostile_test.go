package live

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/lab/test/network"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim"
)

// inventive answers with engines whose names have control characters, more with each scrape.
func inventive(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/version":
		fmt.Fprint(w, `{"version": "\u001b]0;owned\u0007\u202e9.9"}`)
	case "/metrics":
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		now := time.Now().Unix()
		fmt.Fprintln(w, "# TYPE vllm:num_requests_running gauge\n# TYPE vllm:num_requests_waiting gauge\n# TYPE vllm:generation_tokens_total counter")
		for i := range 600 {
			labels := fmt.Sprintf("{engine=\"%d-%d\x1b[2J\u202e\x07\",model_name=\"\x1b[31mevil%s\"}", now, i, strings.Repeat("長", 300))
			fmt.Fprintf(w, "vllm:num_requests_running%s 1\nvllm:num_requests_waiting%s NaN\nvllm:generation_tokens_total%s %d\n", labels, labels, labels, now)
		}
	default:
		http.NotFound(w, r)
	}
}

func TestAHostileServerHarmsNeitherTheTerminalNorOthers(t *testing.T) {
	var most int
	virtual(t, func(at *network.Network) {
		at.Put("evil:8000", http.HandlerFunc(inventive))
		at.Put("page:8000", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, "<html>\x1b[31mno metrics here</html>")
		}))
		at.Put("well:8000", simulated(t, 8, vllmsim.Config{}))
	}, []string{"http://evil:8000", "http://page:8000", "http://well:8000"}, func(n int, s *Session, _ *network.Network) bool {
		table := tableOf(s)
		most = max(most, len(table.Rows))
		var text strings.Builder
		require.NoError(t, table.WritePlain(&text, 120))
		for i := range table.Rows {
			r := &table.Rows[i]
			if r.Address == "well:8000" && n > 2 {
				assert.Equal(t, "healthy", r.Condition)
				assert.NotEqual(t, "-", r.cell(ByTokens, table.At))
			}
			for _, p := range r.Page(table.At) {
				text.WriteString(strings.Join(p.Texts, "\n") + "\n")
			}
		}
		for _, line := range s.Log() {
			text.WriteString(line.Message + "\n")
		}
		for _, r := range text.String() {
			if r != '\n' && !unicode.IsPrint(r) {
				require.Fail(t, "a control character", "%q", r)
			}
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		assert.LessOrEqual(t, len(s.state.notes.sentences), maxNotes)
		return n < 8
	})
	assert.Greater(t, most, 3, "the engines of the hostile server are there")
	assert.LessOrEqual(t, most, maxEngines+2)
}
